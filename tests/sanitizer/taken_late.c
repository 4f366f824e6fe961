/* Destroys a queue pair before its completion is polled. Some devices remove the completion then. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED));
    expect(&b, IBV_WC_SUCCESS);
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    use_cqs(&a, a.cq, a.cq); /* HERE */
    if (wrong)
        expect(&a, IBV_WC_SUCCESS); /* HERE */
    close_both(&a, &b);
    return 0;
}
