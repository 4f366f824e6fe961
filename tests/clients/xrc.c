/* Extended reliable connections: one target queue pair, opened by two contexts, and an SRQ in each, to
 * which the sender chooses its messages. */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

static struct ibv_xrcd *open_domain(struct ibv_context *context, int fd, int flags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
    return ibv_open_xrcd(context, &attr);
}

static struct ibv_srq *create_srq(struct end *end, struct ibv_xrcd *xrcd)
{
    struct ibv_srq_init_attr_ex init = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = end->pd,
        .xrcd = xrcd,
        .cq = end->cq,
    };
    struct ibv_srq *srq = ibv_create_srq_ex(end->context, &init);
    CHECK(srq && init.attr.max_wr >= 4);
    return srq;
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t number)
{
    struct ibv_qp_open_attr attr = {
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                     IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = number,
        .xrcd = xrcd,
        .qp_context = &attr,
        .qp_type = IBV_QPT_XRC_RECV,
    };
    struct ibv_qp *qp = ibv_open_qp(context, &attr);
    CHECK(!qp || (qp->qp_context == &attr && qp->qp_num == number && !qp->pd && !qp->send_cq));
    return qp;
}

/* The next receive of an end, which says that it came to this queue pair. */
static void expect(struct end *end, struct ibv_qp *target, uint64_t wr_id, const char *text)
{
    struct ibv_wc wc = complete(end);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.wr_id == wr_id);
    CHECK(wc.qp_num == target->qp_num && !strcmp(end->memory, text));
}

int main(void)
{
    struct end a, b, c;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    open_end(&c, 1, 0);
    struct ibv_device_attr device;
    CHECK(!ibv_query_device(b.context, &device) && device.device_cap_flags & IBV_DEVICE_XRC);

    /* A file names a domain by whatever descriptor and path; it is made and found as the flags say. */
    char path[] = "/tmp/verbsim-xrc-XXXXXX", second[sizeof path + 1];
    int file = mkstemp(path), other = open(path, O_RDONLY);
    CHECK(file >= 0 && other >= 0);
    snprintf(second, sizeof second, "%s2", path);
    CHECK(!link(path, second));
    int linked = open(second, O_RDONLY);
    CHECK(!unlink(path) && !unlink(second));
    CHECK(!open_domain(b.context, file, 0) && errno == EAGAIN);
    struct ibv_xrcd *xrcd_b = open_domain(b.context, file, O_CREAT | O_EXCL);
    CHECK(xrcd_b && xrcd_b->context == b.context && !close(file));
    CHECK(!open_domain(b.context, other, O_CREAT | O_EXCL) && errno == EINVAL);
    CHECK(!open_domain(b.context, file, O_CREAT) && errno == EBADF);
    struct ibv_xrcd *xrcd_c = open_domain(c.context, linked, 0);
    struct ibv_xrcd *private = open_domain(b.context, -1, O_CREAT);
    CHECK(xrcd_c && private && xrcd_c != xrcd_b && !close(other) && !close(linked));
    struct ibv_xrcd_init_attr nothing = {.comp_mask = IBV_XRCD_INIT_ATTR_FD};
    CHECK(!ibv_open_xrcd(b.context, &nothing) && errno == EINVAL);

    struct ibv_srq *srq_b = create_srq(&b, xrcd_b), *srq_c = create_srq(&c, xrcd_c);
    uint32_t number_b, number_c;
    CHECK(!ibv_get_srq_num(srq_b, &number_b) && !ibv_get_srq_num(srq_c, &number_c));
    CHECK(number_b != number_c);

    /* The ends of the connection. */
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd_b};
    struct ibv_qp *own[3] = {a.qp, b.qp, c.qp};
    CHECK((b.qp = ibv_create_qp_ex(b.context, &target)));
    struct ibv_qp_init_attr_ex sender = {
        .send_cq = a.cq,
        .qp_type = IBV_QPT_XRC_SEND,
        .cap = {.max_send_wr = 16, .max_send_sge = 1, .max_inline_data = 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    CHECK((a.qp = ibv_create_qp_ex(a.context, &sender)) && !a.qp->recv_cq);
    /* Each is given the attributes of both halves, as perftest does: the other's are left out. */
    connect_ends(&a, &b);
    CHECK((c.qp = open_qp(c.context, xrcd_c, b.qp->qp_num)) && c.qp != b.qp);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(c.qp, &attr, IBV_QP_STATE, &init));
    CHECK(attr.qp_state == IBV_QPS_RTS && init.qp_type == IBV_QPT_XRC_RECV && !init.send_cq);
    CHECK(!open_qp(b.context, private, b.qp->qp_num) && errno == EINVAL);
    struct ibv_qp_open_attr wrong = {
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = b.qp->qp_num,
        .xrcd = xrcd_c,
        .qp_type = IBV_QPT_RC,
    };
    CHECK(!ibv_open_qp(c.context, &wrong) && errno == EINVAL);
    wrong.qp_type = IBV_QPT_XRC_RECV;
    wrong.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
    CHECK(!ibv_open_qp(c.context, &wrong) && errno == EOPNOTSUPP);
    wrong.comp_mask &= ~IBV_QP_OPEN_ATTR_RESERVED;
    wrong.comp_mask &= ~IBV_QP_OPEN_ATTR_XRCD;
    CHECK(!ibv_open_qp(c.context, &wrong) && errno == EINVAL);

    /* Each message takes a receive of the SRQ that it names. */
    b.srq = srq_b;
    c.srq = srq_c;
    post_recv(&b, 1, 64);
    post_recv(&b, 2, 64);
    post_recv(&c, 3, 64);
    strcpy(a.memory, "to b");
    struct ibv_sge sge = {(uintptr_t)a.memory, 16, a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 4,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .qp_type.xrc.remote_srqn = number_b},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &wr, &bad));
    CHECK(complete(&a).wr_id == 4);
    expect(&b, b.qp, 1, "to b");
    struct ibv_qp_ex *batch = ibv_qp_to_qp_ex(a.qp);
    static char texts[][5] = {"to c", "more"};
    uint32_t numbers[] = {number_c, number_b};
    ibv_wr_start(batch);
    for (int i = 0; i < 2; ++i) {
        batch->wr_id = 5 + i;
        batch->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(batch);
        ibv_wr_set_xrc_srqn(batch, numbers[i]);
        ibv_wr_set_inline_data(batch, texts[i], sizeof texts[i]);
    }
    CHECK(!ibv_wr_complete(batch));
    CHECK(complete(&a).wr_id == 5 && complete(&a).wr_id == 6);
    expect(&c, b.qp, 3, texts[0]);
    expect(&b, b.qp, 2, texts[1]);

    /* The target lives as long as somebody has it open. */
    struct ibv_qp *first = b.qp;
    CHECK(!ibv_destroy_qp(first) && ibv_destroy_qp(first) == EINVAL);
    post_recv(&c, 7, 64);
    wr.qp_type.xrc.remote_srqn = number_c;
    CHECK(!ibv_post_send(a.qp, &wr, &bad) && complete(&a).status == IBV_WC_SUCCESS);
    expect(&c, c.qp, 7, "to b");
    CHECK((b.qp = open_qp(b.context, xrcd_b, c.qp->qp_num)) && b.qp != first);

    /* Events come to both contexts, each with its own queue pair. */
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)c.memory;
    wr.wr.rdma.rkey = ~c.mr->rkey;
    CHECK(!ibv_post_send(a.qp, &wr, &bad) && complete(&a).status == IBV_WC_REM_ACCESS_ERR);
    struct end *ends[] = {&b, &c};
    for (int i = 0; i < 2; ++i) {
        struct ibv_async_event event;
        do {
            CHECK(!ibv_get_async_event(ends[i]->context, &event));
            CHECK(event.element.qp == ends[i]->qp);
            ibv_ack_async_event(&event);
        } while (event.event_type == IBV_EVENT_COMM_EST);
        CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
    }

    /* There are no queues to post to, and batches name a queue only on XRC_SEND. */
    struct ibv_recv_wr recv = {.wr_id = 8}, *bad_recv;
    CHECK(ibv_post_recv(b.qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
    CHECK(ibv_post_send(c.qp, &wr, &bad) == EINVAL && bad == &wr);
    ibv_wr_start(batch);
    ibv_wr_send(batch);
    CHECK(ibv_wr_complete(batch) == EINVAL);

    /* What is not meant for XRC, or for this context, or is not there. */
    struct ibv_srq_init_attr plain = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *basic = ibv_create_srq(b.pd, &plain);
    uint32_t number;
    CHECK(basic && ibv_get_srq_num(basic, &number) == EINVAL && !ibv_destroy_srq(basic));
    CHECK(ibv_get_srq_num(basic, &number) == EINVAL);
    struct ibv_srq_init_attr_ex tags = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = b.pd,
        .cq = b.cq,
    };
    CHECK(!ibv_create_srq_ex(b.context, &tags) && errno == EOPNOTSUPP);
    tags.comp_mask ^= IBV_SRQ_INIT_ATTR_TM;
    CHECK(!ibv_create_srq_ex(b.context, &tags) && errno == EOPNOTSUPP);
    tags.comp_mask ^= IBV_SRQ_INIT_ATTR_TM;
    tags.srq_type = IBV_SRQT_XRC;
    tags.comp_mask &= ~IBV_SRQ_INIT_ATTR_TM;
    CHECK(!ibv_create_srq_ex(b.context, &tags) && errno == EINVAL);
    tags.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
    tags.xrcd = xrcd_c;
    CHECK(!ibv_create_srq_ex(b.context, &tags) && errno == EINVAL);
    CHECK(!ibv_create_qp_ex(c.context, &target) && errno == EINVAL);
    target.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    target.pd = b.pd;
    CHECK(!ibv_create_qp_ex(b.context, &target) && errno == EINVAL);
    sender.send_ops_flags |= IBV_QP_EX_WITH_TSO;
    CHECK(!ibv_create_qp_ex(a.context, &sender) && errno == EOPNOTSUPP);
    srq_c->handle ^= 0x1000;
    CHECK(ibv_destroy_srq(srq_c) == ENOENT);
    srq_c->handle ^= 0x1000;

    /* In use, then closed. */
    CHECK(ibv_close_xrcd(xrcd_b) == EBUSY && ibv_destroy_cq(b.cq) == EBUSY);
    CHECK(!ibv_destroy_srq(srq_b) && ibv_close_xrcd(xrcd_b) == EBUSY);
    CHECK(!ibv_destroy_qp(b.qp) && !ibv_close_xrcd(xrcd_b));
    CHECK(ibv_close_xrcd(xrcd_b) == EINVAL);
    CHECK(!open_qp(b.context, xrcd_b, c.qp->qp_num) && errno == EINVAL);
    CHECK(!ibv_destroy_qp(c.qp) && !ibv_destroy_srq(srq_c) && !ibv_close_xrcd(xrcd_c));
    CHECK(!ibv_close_xrcd(private) && !ibv_destroy_qp(a.qp));

    struct end *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; ++i) {
        all[i]->srq = NULL;
        all[i]->qp = own[i];
        close_end(all[i]);
    }
    return 0;
}
