/* Closes a device without destroying all that it has made there. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_cq *cq = ibv_create_cq(a.context, 16, NULL, NULL, 0); /* HERE */
    CHECK(cq);
    if (!wrong)
        CHECK(!ibv_destroy_cq(cq));
    close_both(&a, &b);
    return 0;
}
