/* A mistake in a function that is a part of its callers: they are named too. */
#include "two.h"

static struct end end;

__attribute__((always_inline)) static inline void release(void)
{
    CHECK(ibv_dealloc_pd(end.pd) == (end.mr ? EBUSY : 0)); /* HERE */
}

__attribute__((noinline)) static void finish(int wrong)
{
    CHECK(!ibv_destroy_qp(end.qp));
    if (wrong)
        release();
    CHECK(!ibv_dereg_mr(end.mr));
    end.mr = NULL;
    release();
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    open_end(&end, 0, 0);
    finish(wrong);
    CHECK(!ibv_destroy_cq(end.cq) && !ibv_destroy_comp_channel(end.channel));
    CHECK(!ibv_close_device(end.context));
    return 0;
}
