/* A receive that is too small for the message. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, wrong ? 8 : MESSAGE)); /* HERE */
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
    expect(&b, wrong ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
