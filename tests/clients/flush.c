/* Flushes and atomic writes: what a device reports, what a batch carries, and what is refused. */
#include "bench.h"
#include "placement.h"

static struct end a, b;
static struct ibv_qp_ex *qp;

static void start(void)
{
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
}

static void flush(uint64_t wr_id, uint32_t rkey, uint64_t addr, size_t length, int type, int level)
{
    qp->wr_id = wr_id;
    ((struct newer *)qp)->flush(qp, rkey, addr, length, type, level);
}

static void atomic_write(uint64_t wr_id, uint32_t rkey, uint64_t addr, const void *value)
{
    qp->wr_id = wr_id;
    ((struct newer *)qp)->atomic_write(qp, rkey, addr, value);
}

static void expect(uint64_t wr_id, enum ibv_wc_status status, int opcode)
{
    struct ibv_wc wc = complete(&a);
    CHECK(wc.wr_id == wr_id && wc.status == status);
    CHECK(status != IBV_WC_SUCCESS || (int)wc.opcode == opcode);
}

static void connect_again(int rights)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE) && !ibv_modify_qp(b.qp, &reset, IBV_QP_STATE));
    connect_ends(&a, &b);
    struct ibv_qp_attr attr = {.qp_access_flags = ALL_RIGHTS | rights};
    CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS));
}

static struct ibv_qp *make(enum ibv_qp_type qp_type, uint64_t ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = a.cq,
        .recv_cq = a.cq,
        .cap = {16, 16, 1, 1, 64},
        .qp_type = qp_type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a.pd,
        .send_ops_flags = ops,
    };
    return ibv_create_qp_ex(a.context, &init);
}

int main(void)
{
    CHECK(offsetof(struct newer, atomic_write) == offsetof(struct ibv_qp_ex, wr_atomic_write));
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    struct ibv_device_attr_ex device;
    CHECK(!ibv_query_device_ex(a.context, NULL, &device));
    CHECK((device.device_cap_flags_ex >> 38 & 7) == 7);
    CHECK((uint32_t)device.device_cap_flags_ex == device.orig_attr.device_cap_flags);

    CHECK(!make(IBV_QPT_UC, WITH_FLUSH) && errno == EOPNOTSUPP);
    CHECK(!make(IBV_QPT_UC, WITH_ATOMIC_WRITE) && errno == EOPNOTSUPP);
    CHECK(!ibv_destroy_qp(a.qp));
    CHECK((a.qp = make(IBV_QPT_RC, WITH_FLUSH | WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_WRITE)));
    CHECK((qp = ibv_qp_to_qp_ex(a.qp)));
    CHECK(!ibv_dereg_mr(b.mr));
    CHECK((b.mr = ibv_reg_mr(b.pd, b.memory, LENGTH, ALL_RIGHTS | FLUSH_GLOBAL)));
    connect_again(FLUSH_GLOBAL | FLUSH_PERSISTENT);
    uint64_t there = (uintptr_t)b.memory;

    /* A write, an atomic write, and flushes of a part and of all. Each byte is compared. */
    memset(a.memory, 'x', 100);
    uint64_t value = 0x0102030405060708;
    start();
    qp->wr_id = 1;
    ibv_wr_rdma_write(qp, b.mr->rkey, there);
    ibv_wr_set_sge(qp, a.mr->lkey, (uintptr_t)a.memory, 100);
    atomic_write(2, b.mr->rkey, there + 48, &value);
    flush(3, b.mr->rkey, there, 100, GLOBAL, RANGE);
    flush(4, b.mr->rkey, 12345, (size_t)-1, GLOBAL, REGION);
    value = 0;
    CHECK(!ibv_wr_complete(qp));
    expect(1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    expect(2, IBV_WC_SUCCESS, WC_ATOMIC_WRITE);
    expect(3, IBV_WC_SUCCESS, WC_FLUSH);
    expect(4, IBV_WC_SUCCESS, WC_FLUSH);
    value = 0x0102030405060708;
    memcpy(a.memory + 48, &value, 8);
    CHECK(!memcmp(a.memory, b.memory, LENGTH));

    /* What is refused at once: a level that there is not, a length beyond any request, no value, a list,
     * and a request of ibv_post_send. */
    start();
    flush(5, b.mr->rkey, there, 8, GLOBAL, 2);
    CHECK(ibv_wr_complete(qp) == EINVAL);
    start();
    flush(5, b.mr->rkey, there, (size_t)1 << 32, GLOBAL, RANGE);
    CHECK(ibv_wr_complete(qp) == EINVAL);
    start();
    atomic_write(5, b.mr->rkey, there, NULL);
    CHECK(ibv_wr_complete(qp) == EFAULT);
    start();
    flush(5, b.mr->rkey, there, 8, GLOBAL, RANGE);
    ibv_wr_set_sge(qp, a.mr->lkey, (uintptr_t)a.memory, 8);
    CHECK(ibv_wr_complete(qp) == EINVAL);
    for (int opcode = WR_FLUSH; opcode <= WR_ATOMIC_WRITE; ++opcode) {
        struct ibv_send_wr wr = {.opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
        CHECK(ibv_post_send(a.qp, &wr, &bad) == EINVAL && bad == &wr);
    }

    /* And by the peer: a type that the region does not have, or the queue pair, and an address. */
    start();
    flush(6, b.mr->rkey, there, 8, GLOBAL | PERSISTENT, RANGE);
    CHECK(!ibv_wr_complete(qp));
    expect(6, IBV_WC_REM_ACCESS_ERR, 0);
    connect_again(0);
    start();
    flush(7, b.mr->rkey, there, 8, GLOBAL, RANGE);
    CHECK(!ibv_wr_complete(qp));
    expect(7, IBV_WC_REM_ACCESS_ERR, 0);
    connect_again(0);
    start();
    atomic_write(8, b.mr->rkey, there + 4, &value);
    CHECK(!ibv_wr_complete(qp));
    expect(8, IBV_WC_REM_INV_REQ_ERR, 0);
    CHECK(!memcmp(a.memory, b.memory, LENGTH));

    close_end(&a);
    close_end(&b);
    return 0;
}
