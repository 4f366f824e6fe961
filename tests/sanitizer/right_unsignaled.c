/* Each eighth send has a completion, which frees the places of those before it. */
#include "two.h"

enum { MESSAGES = 80, EACH = 8 };

int main(void)
{
    struct end a, b;
    start_both(&a, &b);
    for (int i = 1; i <= MESSAGES; ++i) {
        int flags = i % EACH == 0 ? IBV_SEND_SIGNALED : 0;
        CHECK(!POST_RECV(&b, i, MESSAGE));
        CHECK(!POST_SEND(&a, i, MESSAGE, flags));
        expect(&b, IBV_WC_SUCCESS);
        if (flags)
            expect(&a, IBV_WC_SUCCESS);
    }
    close_both(&a, &b);
    return 0;
}
