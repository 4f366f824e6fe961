/* A child posts to the queue pair of its parent. */
#include <sys/wait.h>
#include <unistd.h>

#include "two.h"

/* The first that the child does is a call of a function of the headers, which is no part of this one. */
static __attribute__((noinline, optimize("O0"))) int post(struct end *a)
{
    return POST_SEND(a, 2, MESSAGE, IBV_SEND_SIGNALED); /* HERE */
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv), status;
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (wrong)
            CHECK(post(&a) == EINVAL);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    CHECK(!POST_SEND(&a, 3, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
