/* A shared receive queue: its limit raises an event, once; and batches of sends (ibv_wr_*). */
#include <poll.h>

#include "bench.h"

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 16);
    CHECK(!ibv_destroy_qp(a.qp));
    struct ibv_qp_init_attr_ex init = {
        .send_cq = a.cq,
        .recv_cq = a.cq,
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 1, 1, 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    };
    CHECK((a.qp = ibv_create_qp_ex(a.context, &init)));
    connect_ends(&a, &b);
    struct ibv_qp_ex *batch = ibv_qp_to_qp_ex(a.qp);
    CHECK(batch);

    for (int i = 0; i < 8; ++i)
        post_recv(&b, i, 64);
    struct ibv_srq_attr attr = {.srq_limit = 6};
    CHECK(!ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT));
    struct pollfd fd = {.fd = b.context->async_fd, .events = POLLIN};
    CHECK(poll(&fd, 1, 0) == 0);

    /* Two sends of inline data from the stack, and a write with immediate: one batch. */
    char one[] = "one", two[] = "two";
    ibv_wr_start(batch);
    batch->wr_id = 1;
    batch->wr_flags = 0;
    ibv_wr_send(batch);
    ibv_wr_set_inline_data(batch, one, sizeof one);
    batch->wr_id = 2;
    ibv_wr_send(batch);
    ibv_wr_set_inline_data(batch, two, sizeof two);
    batch->wr_id = 3;
    batch->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write_imm(batch, b.mr->rkey, (uintptr_t)b.memory + 128, htobe32(7));
    ibv_wr_set_sge(batch, a.mr->lkey, (uintptr_t)a.memory, 64);
    memset(a.memory, 'x', 64);
    CHECK(b.memory[0] == 0);
    CHECK(!ibv_wr_complete(batch));
    CHECK(complete(&a).wr_id == 3);
    CHECK(complete(&b).byte_len == sizeof one && complete(&b).byte_len == sizeof two);
    struct ibv_wc wc = complete(&b);
    CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && be32toh(wc.imm_data) == 7);
    CHECK(!strcmp(b.memory, two) && b.memory[128] == 'x');

    /* Five are left, below the limit. */
    CHECK(poll(&fd, 1, 0) == 1);
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(b.context, &event));
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == b.srq);
    ibv_ack_async_event(&event);
    CHECK(poll(&fd, 1, 0) == 0);
    CHECK(!ibv_query_srq(b.srq, &attr) && attr.srq_limit == 0);

    /* An aborted batch never runs, and one with an operation that was not asked for fails. */
    ibv_wr_start(batch);
    ibv_wr_send(batch);
    ibv_wr_set_sge(batch, a.mr->lkey, (uintptr_t)a.memory, 8);
    ibv_wr_abort(batch);
    ibv_wr_start(batch);
    ibv_wr_rdma_read(batch, b.mr->rkey, (uintptr_t)b.memory);
    ibv_wr_set_sge(batch, a.mr->lkey, (uintptr_t)a.memory, 8);
    CHECK(ibv_wr_complete(batch) == EINVAL);
    CHECK(ibv_poll_cq(b.cq, 1, &wc) == 0);

    /* A list of receives, on one that is made with the extended call; it has the room that it says. */
    struct ibv_srq_init_attr_ex basic = {
        .attr = {.max_wr = 5, .max_sge = 2},
        .comp_mask = IBV_SRQ_INIT_ATTR_PD,
        .pd = b.pd,
    };
    struct ibv_srq *shared = ibv_create_srq_ex(b.context, &basic);
    CHECK(shared && basic.attr.max_wr >= 5 && basic.attr.max_sge >= 2);
    struct ibv_recv_wr list[16] = {{.wr_id = 0}}, *full = NULL;
    CHECK(basic.attr.max_wr < 16);
    for (uint32_t i = 0; i < basic.attr.max_wr; ++i)
        list[i].next = &list[i + 1];
    CHECK(ibv_post_srq_recv(shared, list, &full) == ENOMEM && full == &list[basic.attr.max_wr]);
    CHECK(!ibv_destroy_srq(shared));

    close_end(&a);
    close_end(&b);
    return 0;
}
