/* Deregisters a region twice. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(a.pd, a.memory, LENGTH, 0);
    CHECK(mr);
    CHECK(!ibv_dereg_mr(mr));
    if (wrong)
        CHECK(ibv_dereg_mr(mr) == EINVAL); /* HERE */
    close_both(&a, &b);
    return 0;
}
