/* Asks for completions and polls none. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    for (int i = 0; i < 4; ++i) {
        CHECK(!POST_RECV(&b, i, MESSAGE));
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
        expect(&b, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < 4 && !wrong; ++i)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
