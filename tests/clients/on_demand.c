/* On-demand regions between two processes: memory that is mapped, unmapped and mapped again while it is
 * registered, all memory of a process as one region, and advice. */
#include <sys/mman.h>

#include "peers.h"

enum { PAGE = 4096, BYTES = 3 * PAGE };

struct place {
    union ibv_gid gid;
    uint32_t qp_num, rkey, rkey_of_all;
    uint64_t addr, later;
};

static const int RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND;
static struct end end;
static struct place own, other;
static struct ibv_mr *region, *all;
static unsigned char *memory;
static int peer;

static unsigned char byte_of(int tag, int at)
{
    return (unsigned char)(tag * 37 + at * 11 + at / 256);
}

static void fill(unsigned char *to, int tag)
{
    for (int at = 0; at < BYTES; at++)
        to[at] = byte_of(tag, at);
}

static void expect(const unsigned char *from, int tag)
{
    for (int at = 0; at < BYTES; at++)
        CHECK(from[at] == (tag ? byte_of(tag, at) : 0));
}

static void map(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(mmap(memory, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == memory);
}

static void unmap(void)
{
    CHECK(!munmap(memory, BYTES));
}

/* With another queue pair, for which no packet is left on the way. */
static void connect_again(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end.cq, .recv_cq = end.cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 64}};
    CHECK(!ibv_destroy_qp(end.qp) && (end.qp = ibv_create_qp(end.pd, &init)));
    own.qp_num = end.qp->qp_num;
    tell(peer, &own, sizeof own);
    hear(peer, &other, sizeof other);
    to_init(&end);
    to_rtr(&end, other.gid, other.qp_num);
    to_rts(&end, 14, 7);
    meet(peer);
}

static enum ibv_wc_status work(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)memory, BYTES, lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        sge.length = 8;
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    CHECK(!ibv_post_send(end.qp, &wr, &bad));
    return complete(&end).status;
}

static void receive(unsigned char *into, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)into, BYTES, lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(end.qp, &wr, &bad));
}

static void check_advice(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, BYTES, region->lkey}, pinned = {0, 8, end.mr->lkey};
    const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
    struct ibv_pd *elsewhere = ibv_alloc_pd(end.context);
    CHECK(!ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &sge, 1));
    CHECK(!ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1));
    CHECK(!ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush, &sge, 1));
    CHECK(ibv_advise_mr(end.pd, 7, flush, &sge, 1) == EOPNOTSUPP);
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 4, &sge, 1) == EINVAL);
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, NULL, 0) == EINVAL);
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &pinned, 1) == ENOENT);
    CHECK(elsewhere && ibv_advise_mr(elsewhere, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EPERM);
    sge.length++;
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &sge, 1) == EFAULT);
    CHECK(!ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
    /* Its last page is gone. */
    sge.length--;
    CHECK(!munmap(memory + 2 * PAGE, PAGE));
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &sge, 1) == EFAULT);
    sge.lkey = all->lkey;
    CHECK(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &sge, 1) == EFAULT);
    sge.length = 2 * PAGE;
    CHECK(!ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, &sge, 1));
    map();
    CHECK(!ibv_dealloc_pd(elsewhere));
}

static void open_all(void)
{
    open_end(&end, 0, 0);
    struct ibv_device_attr_ex device;
    CHECK(!ibv_query_device_ex(end.context, NULL, &device));
    CHECK(device.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
    CHECK(device.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC);
    CHECK(device.odp_caps.per_transport_caps.ud_odp_caps && device.xrc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV);
    /* It is registered while it is not there. */
    memory = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    unmap();
    CHECK(!ibv_reg_mr(end.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
    CHECK((region = ibv_reg_mr(end.pd, memory, BYTES, RIGHTS)));
    CHECK(region->addr == memory && region->length == BYTES);
    map();
    CHECK(!ibv_reg_mr_iova(end.pd, NULL, SIZE_MAX, PAGE, RIGHTS) && errno == EINVAL);
    CHECK(!ibv_reg_mr(end.pd, NULL, SIZE_MAX, RIGHTS | IBV_ACCESS_HUGETLB) && errno == EINVAL);
    CHECK(!ibv_reg_mr(end.pd, NULL, SIZE_MAX, ALL_RIGHTS));
    CHECK((all = ibv_reg_mr(end.pd, NULL, SIZE_MAX, RIGHTS)) && !all->addr && all->length == SIZE_MAX);
}

int main(void)
{
    pid_t child = start_peer(&peer);
    open_all();
    /* It is mapped after all memory was registered. */
    unsigned char *later = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(later != MAP_FAILED);
    memset(&own, 0, sizeof own);
    own.gid = gid_of(&end);
    own.rkey = region->rkey;
    own.rkey_of_all = all->rkey;
    own.addr = (uintptr_t)memory;
    own.later = (uintptr_t)later;
    connect_again();

    /* From one on-demand region to another. */
    if (child) {
        fill(memory, 1);
        CHECK(work(IBV_WR_RDMA_WRITE, other.rkey, other.addr, region->lkey) == IBV_WC_SUCCESS);
    }
    meet(peer);
    if (!child) {
        expect(memory, 1);
        unmap();
    }
    meet(peer);
    /* The peer's memory is gone: for each operation the connection ends. */
    const enum ibv_wr_opcode operations[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (int at = 0; at < 3; at++) {
        if (child)
            CHECK(work(operations[at], other.rkey, other.addr, region->lkey) == IBV_WC_REM_ACCESS_ERR);
        meet(peer);
        connect_again();
    }
    if (!child)
        map();
    meet(peer);
    /* There again, with other bytes. */
    for (int tag = 0; tag < 3; tag++) {
        if (child) {
            fill(memory, 9);
            CHECK(work(IBV_WR_RDMA_READ, other.rkey, other.addr, region->lkey) == IBV_WC_SUCCESS);
            expect(memory, tag);
        }
        meet(peer);
        if (!child && tag < 2)
            fill(memory, tag + 1);
        meet(peer);
    }
    /* Pages that the program gives back are zeros. */
    if (!child)
        CHECK(!madvise(memory, BYTES, MADV_DONTNEED));
    meet(peer);
    if (child) {
        CHECK(work(IBV_WR_RDMA_READ, other.rkey, other.addr, region->lkey) == IBV_WC_SUCCESS);
        expect(memory, 0);
        CHECK(work(IBV_WR_ATOMIC_FETCH_AND_ADD, other.rkey, other.addr, region->lkey) == IBV_WC_SUCCESS);
    }
    meet(peer);
    if (!child)
        CHECK(*(uint64_t *)memory == 1);

    /* Own memory that is gone, and of a receive. */
    if (child) {
        unmap();
        CHECK(work(IBV_WR_SEND, 0, 0, region->lkey) == IBV_WC_LOC_PROT_ERR);
        map();
    }
    meet(peer);
    connect_again();
    if (!child) {
        CHECK(!mprotect(memory + PAGE, PAGE, PROT_READ));
        receive(memory, region->lkey);
    }
    meet(peer);
    if (child) {
        fill(memory, 4);
        CHECK(work(IBV_WR_SEND, 0, 0, region->lkey) == IBV_WC_REM_OP_ERR);
    } else {
        CHECK(complete(&end).status == IBV_WC_LOC_PROT_ERR);
        CHECK(!mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE));
    }
    meet(peer);
    connect_again();

    /* All memory is one region, by the addresses of the process. */
    if (!child)
        receive(later, all->lkey);
    meet(peer);
    if (child)
        CHECK(work(IBV_WR_SEND, 0, 0, all->lkey) == IBV_WC_SUCCESS);
    else
        CHECK(complete(&end).status == IBV_WC_SUCCESS);
    meet(peer);
    if (child) {
        fill(memory, 5);
        CHECK(work(IBV_WR_RDMA_WRITE, other.rkey_of_all, other.addr, all->lkey) == IBV_WC_SUCCESS);
        CHECK(work(IBV_WR_RDMA_READ, other.rkey_of_all, other.later, all->lkey) == IBV_WC_SUCCESS);
        expect(memory, 4);
        CHECK(work(IBV_WR_RDMA_WRITE, other.rkey_of_all, PAGE / 2, all->lkey) == IBV_WC_REM_ACCESS_ERR);
    }
    meet(peer);
    if (!child) {
        expect(later, 4);
        expect(memory, 5);
    }
    check_advice();

    /* It is changed as other regions are. */
    const int rights = IBV_ACCESS_LOCAL_WRITE;
    const int memory_too = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, rights) == IBV_REREG_MR_ERR_CMD);
    CHECK(errno == EOPNOTSUPP);
    CHECK(!ibv_rereg_mr(region, memory_too, NULL, memory, BYTES, rights));
    unmap();
    CHECK(!ibv_rereg_mr(region, memory_too, NULL, memory, BYTES, RIGHTS));
    CHECK(ibv_rereg_mr(region, memory_too, NULL, memory, BYTES, rights) == IBV_REREG_MR_ERR_CMD);
    CHECK(errno == EFAULT);
    CHECK(!ibv_dereg_mr(region) && !ibv_dereg_mr(all) && !munmap(later, BYTES));
    close_end(&end);
    end_peer(child, peer);
    return 0;
}
