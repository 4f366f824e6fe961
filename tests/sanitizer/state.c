/* Posts a send before the queue pair is connected, in INIT. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    if (wrong)
        to_init(&a);
    else
        connect_ends(&a, &b);

    int result = POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey); /* HERE */
    CHECK(result == (wrong ? EINVAL : 0));
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
