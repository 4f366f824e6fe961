/* Calls that devices of this kind cannot do, or not with these arguments. */
#include "two.h"

#include <rdma/rdma_cma.h>

static struct end a, b;
static struct rdma_cm_id *id;

/* A call that is refused, with the errno value that it leaves. */
#define REFUSED(call, value)                                                                       \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK((call) && errno == (value));                                                         \
    } while (0)

#define NO_POINTER(call, value) REFUSED(!(call), value)

/* These make nothing, and return no number. */
static void make_wrongly(void)
{
    struct ibv_cq_init_attr_ex cq = {.cqe = 4, .comp_mask = 1u << 31};
    NO_POINTER(ibv_create_cq_ex(a.context, &cq), EOPNOTSUPP); /* HERE */
    cq.comp_mask = 0;
    cq.wc_flags = 1u << 31;
    NO_POINTER(ibv_create_cq_ex(a.context, &cq), EOPNOTSUPP); /* HERE */
    struct ibv_qp_init_attr_ex qp = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .pd = a.pd, .cap = {1, 1, 1, 1, 0}};
    NO_POINTER(ibv_create_qp_ex(a.context, &qp), EINVAL);
    qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    NO_POINTER(ibv_create_qp_ex(a.context, &qp), EOPNOTSUPP);
    qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    NO_POINTER(ibv_create_qp_ex(b.context, &qp), EINVAL);
    qp.qp_type = 77;
    NO_POINTER(ibv_create_qp_ex(a.context, &qp), EINVAL);
    struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 1, .max_sge = 1}};
    NO_POINTER(ibv_create_srq_ex(a.context, &srq), EINVAL);
    srq.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
    srq.pd = a.pd;
    srq.srq_type = IBV_SRQT_TM;
    NO_POINTER(ibv_create_srq_ex(a.context, &srq), EOPNOTSUPP);
    struct ibv_xrcd_init_attr xrcd = {.fd = -1};
    NO_POINTER(ibv_open_xrcd(a.context, &xrcd), EINVAL);
    struct ibv_qp_open_attr open = {.qp_type = IBV_QPT_RC};
    NO_POINTER(ibv_open_qp(a.context, &open), EINVAL);
    struct ibv_td_init_attr td = {.comp_mask = 1};
    NO_POINTER(ibv_alloc_td(a.context, &td), EINVAL);
    struct ibv_parent_domain_init_attr parent = {.pd = b.pd};
    NO_POINTER(ibv_alloc_parent_domain(a.context, &parent), EINVAL);
    struct ibv_alloc_dm_attr dm = {.length = 0};
    NO_POINTER(ibv_alloc_dm(a.context, &dm), EINVAL);
    dm.length = 1 << 30;
    NO_POINTER(ibv_alloc_dm(a.context, &dm), EINVAL);
    NO_POINTER(ibv_reg_dmabuf_mr(a.pd, 0, LENGTH, 0, -1, 0), EBADF); /* HERE */
    NO_POINTER(ibv_reg_mr(a.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB), EINVAL); /* HERE */
    NO_POINTER(ibv_import_pd(a.context, 9999), EINVAL);
    NO_POINTER(ibv_import_mr(a.pd, 9999), EINVAL);
    NO_POINTER(ibv_import_device(-1), EINVAL);
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
    NO_POINTER(ibv_create_wq(a.context, &wq), EOPNOTSUPP);
    struct ibv_counters_init_attr counters = {0};
    NO_POINTER(ibv_create_counters(a.context, &counters), EOPNOTSUPP);
    struct ibv_flow_attr flow = {0};
    NO_POINTER(ibv_create_flow(a.qp, &flow), EOPNOTSUPP);
}

static void call_wrongly(void)
{
    REFUSED(ibv_rereg_mr(a.mr, 1 << 30, NULL, NULL, 0, 0), EINVAL); /* HERE */
    struct ibv_sge sge = {(uintptr_t)a.memory, LENGTH, a.mr->lkey};
    REFUSED(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT); /* HERE */
    struct ibv_modify_cq_attr moderate = {0};
    REFUSED(ibv_modify_cq(a.cq, &moderate), EINVAL);
    REFUSED(ibv_poll_cq(a.cq, -1, NULL), EINVAL);
    struct ibv_gid_entry entry;
    REFUSED(ibv_query_gid_ex(a.context, 1, 0, &entry, 1), EINVAL);
    REFUSED(ibv_query_gid_ex(a.context, 1000, 0, &entry, 0), EINVAL);
    union ibv_gid gid;
    REFUSED(ibv_query_gid(a.context, 1, -1, &gid), EINVAL);
    REFUSED(ibv_get_pkey_index(a.context, 1, htons(0x1234)) < 0, ENOENT);
    struct ibv_values_ex values = {.comp_mask = 1u << 31};
    REFUSED(ibv_query_rt_values_ex(a.context, &values), EINVAL);
    struct ibv_ece ece = {.vendor_id = 1};
    REFUSED(ibv_set_ece(a.qp, &ece), EINVAL);
    NO_POINTER(ibv_qp_to_qp_ex(a.qp), EINVAL);

    /* The second of a list; the first is posted. */
    struct ibv_send_wr list[] = {{.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .next = &list[1]},
                                 {.wr_id = 2, .opcode = 99}},
                       *bad = NULL;
    CHECK(!POST_RECV(&b, 3, MESSAGE));
    REFUSED(ibv_post_send(a.qp, list, &bad), EINVAL); /* HERE */
    CHECK(bad == &list[1]);
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
}

static void call_of_cm_wrongly(void)
{
    struct sockaddr other = {.sa_family = AF_UNIX};
    REFUSED(rdma_bind_addr(id, &other), EINVAL);
    REFUSED(rdma_set_option(id, RDMA_OPTION_IB, 1, &other, 1), ENOSYS);
    REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &other, 3), EINVAL);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    REFUSED(rdma_create_qp(id, NULL, &init), EINVAL);
    struct rdma_addrinfo *found;
    REFUSED(rdma_getaddrinfo(NULL, NULL, NULL, &found), EINVAL);
    struct rdma_cm_id *request;
    REFUSED(rdma_get_request(id, &request), EINVAL);
}

/* A program that looks for what there is makes one hint of each place. */
static void probe(void)
{
    for (unsigned bit = 12; bit < 20; ++bit)
        CHECK(!ibv_reg_mr(a.pd, a.memory, LENGTH, 1 << bit));
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    if (wrong) {
        make_wrongly();
        call_wrongly();
        call_of_cm_wrongly();
        probe();
    }
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    close_both(&a, &b);
    return 0;
}
