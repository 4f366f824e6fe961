/* A write with the key of the writer's own region in the place of the peer's. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    uint32_t rkey = wrong ? a.mr->rkey : b.mr->rkey;
    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
