/* Inline data is copied when it is posted, so it must have an address. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    char *memory = a.memory;
    if (wrong)
        a.memory = NULL;
    int flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    int result = POST_SEND(&a, 2, MESSAGE, flags); /* HERE */
    CHECK(result == (wrong ? EFAULT : 0));
    a.memory = memory;
    if (wrong)
        CHECK(!POST_SEND(&a, 2, MESSAGE, flags));
    expect(&a, IBV_WC_SUCCESS);
    CHECK(complete(&b).byte_len == MESSAGE);
    close_both(&a, &b);
    return 0;
}
