/* A length without memory: each entry point that takes a pointer and a length, or a structure, refuses a pointer at which
 * there can be nothing. Nothing is sent. */
#include "bench.h"

#include <rdma/rdma_cma.h>

static struct end a, b;
static struct ibv_qp_ex *batches;
static struct ibv_dm *dm;
static struct rdma_cm_id *id;

/* What a call returned or left in errno. */
static int told(int result)
{
    return result < 0 ? errno : result;
}

static int refused(const void *made)
{
    return made ? 0 : errno;
}

static void *misaligned(void *pointer)
{
    return (char *)pointer + 1;
}

static int sends(struct ibv_sge *list, int count, int flags)
{
    struct ibv_send_wr wr = {.sg_list = list,
                             .num_sge = count,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | flags},
                       *bad = NULL;
    int result = ibv_post_send(a.qp, &wr, &bad);
    CHECK(bad == &wr);
    return result;
}

static int inline_data(void)
{
    struct ibv_sge sge = {.length = 8};
    return sends(&sge, 1, IBV_SEND_INLINE);
}

static int inline_data_of_two(void)
{
    struct ibv_sge list[] = {{(uintptr_t)a.memory, 8, 0}, {.length = 8}};
    return sends(list, 2, IBV_SEND_INLINE);
}

static int inline_data_behind_the_end(void)
{
    struct ibv_sge sge = {.addr = UINT64_MAX - 3, .length = 8};
    return sends(&sge, 1, IBV_SEND_INLINE);
}

static int list_of_send(void)
{
    return sends(NULL, 1, 0);
}

static int list_of_inline_send(void)
{
    return sends(NULL, 2, IBV_SEND_INLINE);
}

static int list_of_send_misaligned(void)
{
    struct ibv_sge list[2] = {{0}};
    return sends(misaligned(list), 1, 0);
}

static int send_misaligned(void)
{
    struct ibv_send_wr list[2] = {{0}}, *bad = NULL;
    int result = ibv_post_send(a.qp, misaligned(list), &bad);
    CHECK(bad == misaligned(list));
    return result;
}

static int receives(struct ibv_sge *list)
{
    struct ibv_recv_wr wr = {.sg_list = list, .num_sge = 1}, *bad = NULL;
    int result = ibv_post_recv(a.qp, &wr, &bad);
    CHECK(bad == &wr);
    return result;
}

static int list_of_receive(void)
{
    return receives(NULL);
}

static int list_of_receive_misaligned(void)
{
    struct ibv_sge list[2] = {{0}};
    return receives(misaligned(list));
}

static int list_of_shared_receive(void)
{
    struct ibv_recv_wr wr = {.num_sge = 1}, *bad = NULL;
    int result = ibv_post_srq_recv(b.srq, &wr, &bad);
    CHECK(bad == &wr);
    return result;
}

static void begin(void)
{
    ibv_wr_start(batches);
    batches->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(batches);
}

static int batch_inline_data(void)
{
    begin();
    ibv_wr_set_inline_data(batches, NULL, 8);
    return ibv_wr_complete(batches);
}

static int batch_inline_list(void)
{
    begin();
    ibv_wr_set_inline_data_list(batches, 2, NULL);
    return ibv_wr_complete(batches);
}

static int batch_inline_of_two(void)
{
    struct ibv_data_buf list[] = {{a.memory, 8}, {NULL, 8}};
    begin();
    ibv_wr_set_inline_data_list(batches, 2, list);
    return ibv_wr_complete(batches);
}

static int batch_inline_sum_wraps(void)
{
    struct ibv_data_buf list[] = {{a.memory, SIZE_MAX}, {a.memory, 9}};
    begin();
    ibv_wr_set_inline_data_list(batches, 2, list);
    return ibv_wr_complete(batches);
}

static int batch_inline_too_many(void)
{
    struct ibv_data_buf one = {a.memory, 8};
    begin();
    ibv_wr_set_inline_data_list(batches, SIZE_MAX / 8, &one);
    return ibv_wr_complete(batches);
}

static int batch_list(void)
{
    begin();
    ibv_wr_set_sge_list(batches, 1, NULL);
    return ibv_wr_complete(batches);
}

static int copy_to_dm(void)
{
    return ibv_memcpy_to_dm(dm, 0, NULL, 8);
}

static int copy_from_dm(void)
{
    return ibv_memcpy_from_dm(NULL, dm, 0, 8);
}

static int gid_table(void)
{
    return -(int)ibv_query_gid_table(a.context, NULL, 4, 0);
}

static int polled(void)
{
    return ibv_poll_cq(a.cq, 4, NULL) < 0 ? EINVAL : 0;
}

static int init_of_qp(void)
{
    return refused(ibv_create_qp(a.pd, NULL));
}

static int init_of_qp_misaligned(void)
{
    struct ibv_qp_init_attr init[2] = {{0}};
    return refused(ibv_create_qp(a.pd, misaligned(init)));
}

static int attr_of_qp(void)
{
    return ibv_modify_qp(a.qp, NULL, IBV_QP_STATE);
}

static int attr_of_qp_misaligned(void)
{
    struct ibv_qp_attr attr[2] = {{.qp_state = IBV_QPS_ERR}};
    return ibv_modify_qp(a.qp, misaligned(attr), IBV_QP_STATE);
}

static int attr_of_query(void)
{
    struct ibv_qp_init_attr init;
    return ibv_query_qp(a.qp, NULL, IBV_QP_STATE, &init);
}

static int attr_of_srq(void)
{
    return ibv_modify_srq(b.srq, NULL, IBV_SRQ_LIMIT);
}

static int attr_of_ah(void)
{
    return refused(ibv_create_ah(a.pd, NULL));
}

static int attr_of_device(void)
{
    return ibv_query_device(a.context, NULL);
}

static int value_of_option(void)
{
    return told(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1));
}

static int address(void)
{
    return told(rdma_bind_addr(id, NULL));
}

static int multicast(void)
{
    return told(rdma_join_multicast(id, NULL, NULL));
}

static int hints_misaligned(void)
{
    struct rdma_addrinfo hints[2] = {{0}}, *found;
    return told(rdma_getaddrinfo("127.0.0.1", NULL, misaligned(hints), &found));
}

static const struct {
    const char *name;
    int (*call)(void);
    int errno_value;
} CALLS[] = {
#define CALL(call, errno_value) {#call, call, errno_value}
    CALL(inline_data, EFAULT),
    CALL(inline_data_of_two, EFAULT),
    CALL(inline_data_behind_the_end, EFAULT),
    CALL(list_of_send, EFAULT),
    CALL(list_of_inline_send, EFAULT),
    CALL(list_of_send_misaligned, EFAULT),
    CALL(send_misaligned, EFAULT),
    CALL(list_of_receive, EFAULT),
    CALL(list_of_receive_misaligned, EFAULT),
    CALL(list_of_shared_receive, EFAULT),
    CALL(batch_inline_data, EFAULT),
    CALL(batch_inline_list, EFAULT),
    CALL(batch_inline_of_two, EFAULT),
    CALL(batch_inline_sum_wraps, EINVAL),
    CALL(batch_inline_too_many, EFAULT),
    CALL(batch_list, EFAULT),
    CALL(copy_to_dm, EFAULT),
    CALL(copy_from_dm, EFAULT),
    CALL(gid_table, EINVAL),
    CALL(polled, EINVAL),
    CALL(init_of_qp, EINVAL),
    CALL(init_of_qp_misaligned, EINVAL),
    CALL(attr_of_qp, EINVAL),
    CALL(attr_of_qp_misaligned, EINVAL),
    CALL(attr_of_query, EINVAL),
    CALL(attr_of_srq, EINVAL),
    CALL(attr_of_ah, EINVAL),
    CALL(attr_of_device, EINVAL),
    CALL(value_of_option, EINVAL),
    CALL(address, EINVAL),
    CALL(multicast, EINVAL),
    CALL(hints_misaligned, EINVAL),
};

/* A pair whose first end takes batches. */
static void open_ends(void)
{
    open_end(&a, 0, 0);
    open_end(&b, 1, 4);
    CHECK(!ibv_destroy_qp(a.qp));
    struct ibv_qp_init_attr_ex init = {
        .send_cq = a.cq,
        .recv_cq = a.cq,
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 2, 2, 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    CHECK((a.qp = ibv_create_qp_ex(a.context, &init)) && (batches = ibv_qp_to_qp_ex(a.qp)));
    connect_ends(&a, &b);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    CHECK((dm = ibv_alloc_dm(a.context, &attr)));
    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
}

int main(void)
{
    open_ends();
    post_recv(&b, 1, 64);
    unsigned wrong = 0;
    for (unsigned i = 0; i < sizeof CALLS / sizeof *CALLS; ++i) {
        int got = CALLS[i].call();
        if (got != CALLS[i].errno_value) {
            fprintf(stderr, "%s: %d, not %d\n", CALLS[i].name, got, CALLS[i].errno_value);
            ++wrong;
        }
    }
    CHECK(!wrong);
    struct ibv_wc wc;
    CHECK(!ibv_poll_cq(a.cq, 1, &wc) && !ibv_poll_cq(b.cq, 1, &wc));

    /* Nothing is no memory. */
    struct ibv_send_wr nothing = {.wr_id = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    CHECK(!ibv_post_send(a.qp, &nothing, &bad));
    CHECK(complete(&a).wr_id == 2 && complete(&b).byte_len == 0);

    CHECK(!rdma_destroy_id(id) && !ibv_free_dm(dm));
    close_end(&a);
    close_end(&b);
    return 0;
}
