/* The bytes of writes are changed before the completion is polled that stands for both: the device may still read them.
 * Needs --memory. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    /* Inline data are taken when they are posted. */
    CHECK(!POST_WRITE(&a, 0, MESSAGE, IBV_SEND_INLINE, b.memory, b.mr->rkey));
    a.memory[0] = 'x';
    CHECK(!POST_WRITE(&a, 1, MESSAGE, 0, b.memory, b.mr->rkey)); /* HERE */
    if (wrong)
        a.memory[MESSAGE - 1] = 'x';
    CHECK(!POST_WRITE(&a, 2, 8, IBV_SEND_SIGNALED, b.memory, b.mr->rkey)); /* HERE */
    if (wrong)
        a.memory[0] = 'y';
    expect(&a, IBV_WC_SUCCESS);
    a.memory[0] = 'z';
    close_both(&a, &b);
    return 0;
}
