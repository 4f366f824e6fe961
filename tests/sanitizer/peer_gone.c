/* Destroys a queue pair to which its peer still sends, and ends when that fails. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    if (wrong)
        use_cqs(&b, b.cq, b.cq);
    CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    expect(&a, wrong ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
    if (!wrong)
        expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
