/* Memory that is registered for writing must be there, and the program must be able to write it itself. */
#include "two.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a;
    open_end(&a, 0, 0);
    char *memory = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    int rights = wrong ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_REMOTE_READ;
    struct ibv_mr *mr = ibv_reg_mr(a.pd, memory, LENGTH, rights); /* HERE */
    CHECK(wrong ? !mr && errno == EFAULT : !!mr);
    if (wrong)
        CHECK((mr = ibv_reg_mr(a.pd, memory, LENGTH, 0)));
    CHECK(!ibv_dereg_mr(mr));
    CHECK(!munmap(memory, LENGTH));
    mr = wrong ? ibv_reg_mr(a.pd, memory, LENGTH, 0) : NULL;
    CHECK(!mr);
    close_end(&a);
    return 0;
}
