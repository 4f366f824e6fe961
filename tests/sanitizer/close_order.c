/* Frees a protection domain that a region still needs. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_pd *pd = ibv_alloc_pd(a.context);
    struct ibv_mr *mr = ibv_reg_mr(pd, a.memory, LENGTH, 0);
    CHECK(pd && mr);
    if (wrong)
        CHECK(ibv_dealloc_pd(pd) == EBUSY); /* HERE */
    CHECK(!ibv_dereg_mr(mr));
    CHECK(!ibv_dealloc_pd(pd));
    close_both(&a, &b);
    return 0;
}
