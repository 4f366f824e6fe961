/* A write that goes beyond the end of the peer's region. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    char *to = b.memory + LENGTH - (wrong ? MESSAGE / 2 : MESSAGE);
    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, to, b.mr->rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
