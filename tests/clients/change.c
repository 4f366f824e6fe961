/* Changes of regions: which mistakes the library finds and which the device, and that neither makes the
 * device write where the program may not. With the argument `none` on a device that changes none. */
#include <sys/mman.h>

#include "bench.h"

enum {
    ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
    PLACE = IBV_REREG_MR_CHANGE_TRANSLATION,
    DOMAIN = IBV_REREG_MR_CHANGE_PD,
};

static struct end a, b;

static void fails(int left, int why, struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                  size_t length, int access)
{
    errno = 0;
    int result = ibv_rereg_mr(mr, flags, pd, addr, length, access);
    if (result != left || errno != why)
        fprintf(stderr, "flags %#x: %d, errno %d\n", flags, result, errno);
    CHECK(result == left && errno == why);
}

/* How an RDMA Write to a region ends. */
static enum ibv_wc_status written(struct ibv_mr *mr)
{
    struct ibv_sge sge = {(uintptr_t)a.memory, 8, a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
    wr.wr.rdma.rkey = mr->rkey;
    CHECK(!ibv_post_send(a.qp, &wr, &bad));
    return complete(&a).status;
}

/* What the library finds itself; the region is as it was. */
static void by_the_library(struct ibv_mr *mr, void *page)
{
    fails(IBV_REREG_MR_ERR_INPUT, EINVAL, mr, 1 << 7 | ACCESS, NULL, NULL, 0, 0);
    fails(IBV_REREG_MR_ERR_INPUT, EINVAL, mr, PLACE, NULL, NULL, LENGTH, 0);
    fails(IBV_REREG_MR_ERR_INPUT, EINVAL, mr, PLACE, NULL, page, 0, 0);
    fails(IBV_REREG_MR_ERR_INPUT, EINVAL, mr, PLACE, NULL, page, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    fails(IBV_REREG_MR_ERR_INPUT, EINVAL, mr, 0, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
}

static void on_a_device_without(struct ibv_mr *mr, void *page)
{
    const int left = IBV_REREG_MR_ERR_CMD;
    fails(left, EOPNOTSUPP, mr, 0, NULL, NULL, 0, 0);
    fails(left, EOPNOTSUPP, mr, ACCESS, NULL, NULL, 0, ALL_RIGHTS);
    fails(left, EOPNOTSUPP, mr, PLACE, NULL, page, LENGTH, 0);
    fails(left, EOPNOTSUPP, mr, PLACE, NULL, (void *)8, LENGTH, 0);
    fails(left, EOPNOTSUPP, mr, DOMAIN, b.pd, NULL, 0, 0);
    CHECK(!ibv_dereg_mr(mr));
}

int main(int argc, char **argv)
{
    int devices;
    struct ibv_device **list = ibv_get_device_list(&devices);
    CHECK(list);
    ibv_free_device_list(list);
    open_end(&a, 0, 0);
    open_end(&b, devices > 1, 0);
    void *page, *read_only = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(!posix_memalign(&page, 4096, LENGTH) && read_only != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, page, LENGTH, ALL_RIGHTS);
    CHECK(mr);
    by_the_library(mr, page);
    if (argc > 1 && !strcmp(argv[1], "none")) {
        on_a_device_without(mr, page);
    } else {
        const int left = IBV_REREG_MR_ERR_CMD;
        connect_ends(&a, &b);
        fails(left, EINVAL, mr, 0, NULL, NULL, 0, 0);
        fails(left, EINVAL, mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE);
        fails(left, EFAULT, mr, PLACE, NULL, (void *)8, LENGTH, 0);
        /* Memory that can only be read, of a region that is written; and the other way round. */
        fails(left, EFAULT, mr, PLACE, NULL, read_only, LENGTH, 0);
        fails(left, EFAULT, mr, PLACE | ACCESS, NULL, read_only, LENGTH, ALL_RIGHTS);
        CHECK(written(mr) == IBV_WC_SUCCESS);
        CHECK(!ibv_rereg_mr(mr, PLACE | ACCESS, NULL, read_only, LENGTH, IBV_ACCESS_REMOTE_READ));
        fails(left, EACCES, mr, ACCESS, NULL, NULL, 0, ALL_RIGHTS);
        fails(left, EFAULT, mr, PLACE | ACCESS, NULL, read_only, LENGTH, ALL_RIGHTS);
        CHECK(!ibv_rereg_mr(mr, PLACE | ACCESS, NULL, page, LENGTH, ALL_RIGHTS));
        CHECK(written(mr) == IBV_WC_SUCCESS);
        CHECK(!ibv_dereg_mr(mr));
        struct ibv_mr *null = ibv_alloc_null_mr(b.pd);
        if (null) {
            fails(IBV_REREG_MR_ERR_INPUT, EINVAL, null, ACCESS, NULL, NULL, 0, 0);
            CHECK(!ibv_dereg_mr(null));
        }
    }
    munmap(read_only, LENGTH);
    free(page);
    close_end(&a);
    close_end(&b);
    return 0;
}
