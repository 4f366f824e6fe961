/* Parent domains do what their protection domain does, and keep it, their thread domain and themselves
 * in use. Functions for memory are accepted, and not called. */
#include "bench.h"

static int calls;

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
    (void)pd, (void)context, (void)size, (void)alignment, (void)type;
    ++calls;
    return IBV_ALLOCATOR_USE_DEFAULT;
}

static void release(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
    (void)pd, (void)context, (void)memory, (void)type;
    ++calls;
}

static struct ibv_pd *parent_of(struct ibv_context *context, struct ibv_pd *pd, struct ibv_td *td)
{
    struct ibv_parent_domain_init_attr attr = {
        .pd = pd,
        .td = td,
        .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
        .alloc = allocate,
        .free = release,
        .pd_context = &calls,
    };
    return ibv_alloc_parent_domain(context, &attr);
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    struct ibv_td_init_attr init = {0};
    struct ibv_td *td = ibv_alloc_td(a.context, &init), *foreign = ibv_alloc_td(b.context, &init);
    CHECK(td && td->context == a.context && foreign);
    struct ibv_pd *pd = ibv_alloc_pd(a.context);
    struct ibv_pd *parent = parent_of(a.context, pd, td);
    CHECK(parent && parent != pd && parent->context == a.context && parent->handle == pd->handle);
    CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dealloc_td(td) == EBUSY);

    /* Everything that takes a protection domain: a region of the one is good on a queue of the other. */
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(parent, &srq_init);
    CHECK(srq && srq->pd == parent && ibv_dealloc_pd(parent) == EBUSY && !ibv_destroy_srq(srq));
    struct ibv_ah_attr to_b = {
        .grh = {.dgid = gid_of(&b), .hop_limit = 64}, .is_global = 1, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(parent, &to_b);
    CHECK(ah && ibv_dealloc_pd(parent) == EBUSY && !ibv_destroy_ah(ah));
    struct ibv_mw *mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
    CHECK(mw && ibv_dealloc_pd(parent) == EBUSY && !ibv_dealloc_mw(mw));
    struct ibv_cq_init_attr_ex cq_init = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(a.context, &cq_init);
    CHECK(cq && ibv_dealloc_pd(parent) == EBUSY && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    cq_init.parent_domain = pd;
    CHECK(!ibv_create_cq_ex(a.context, &cq_init) && errno == EINVAL);
    cq_init.parent_domain = parent;
    CHECK(!ibv_create_cq_ex(b.context, &cq_init) && errno == EINVAL);

    struct ibv_qp *own = a.qp;
    struct ibv_mr *own_mr = a.mr;
    struct ibv_qp_init_attr qp_init = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 64}};
    CHECK((a.qp = ibv_create_qp(parent, &qp_init)) && a.qp->pd == parent);
    CHECK((a.mr = ibv_reg_mr(pd, a.memory, LENGTH, ALL_RIGHTS)));
    connect_ends(&a, &b);
    for (int round = 0; round < 2; ++round) {
        post_recv(&b, 1, 16);
        snprintf(a.memory, LENGTH, "round %d", round);
        post_send(&a, 2, 16, 0);
        CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).status == IBV_WC_SUCCESS);
        CHECK(!strcmp(a.memory, b.memory));
        /* Regions change between domains. */
        if (round == 0)
            CHECK(!ibv_rereg_mr(a.mr, IBV_REREG_MR_CHANGE_PD, parent, NULL, 0, 0) &&
                  a.mr->pd == parent);
    }
    CHECK(!ibv_destroy_qp(a.qp) && ibv_dealloc_pd(parent) == EBUSY);
    CHECK(!ibv_rereg_mr(a.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));

    /* A parent domain of a parent domain. */
    struct ibv_pd *grand = parent_of(a.context, parent, NULL);
    CHECK(grand && ibv_dealloc_pd(parent) == EBUSY && !ibv_dealloc_pd(grand));

    /* What was refused does not count. */
    CHECK(!ibv_reg_mr(parent, NULL, LENGTH, 0));
    to_b.port_num = 9;
    CHECK(!ibv_create_ah(parent, &to_b) && !parent_of(a.context, parent, foreign));
    CHECK(errno == EINVAL && !parent_of(b.context, pd, NULL) && errno == EINVAL);
    CHECK(!parent_of(a.context, NULL, td) && errno == EINVAL);
    CHECK(!parent_of(a.context, (struct ibv_pd *)td, NULL) && errno == EINVAL);
    init.comp_mask = 1;
    CHECK(!ibv_alloc_td(a.context, &init) && errno == EINVAL);
    struct ibv_parent_domain_init_attr newer = {.pd = pd, .comp_mask = 1 << 3};
    CHECK(!ibv_alloc_parent_domain(a.context, &newer) && errno == EINVAL);
    parent->handle ^= 0x10000;
    CHECK(!ibv_reg_mr(parent, a.memory, LENGTH, 0) && errno == ENOENT);
    parent->handle ^= 0x10000;

    /* One after the other, and each once. */
    CHECK(!ibv_dealloc_pd(parent) && ibv_dealloc_pd(parent) == EINVAL);
    CHECK(!ibv_reg_mr(parent, a.memory, LENGTH, 0) && errno == EINVAL);
    CHECK(!parent_of(a.context, parent, NULL) && errno == EINVAL);
    CHECK(ibv_dealloc_pd(pd) == EBUSY && !ibv_dereg_mr(a.mr));
    CHECK(!ibv_dealloc_pd(pd) && ibv_dealloc_pd(pd) == EINVAL);
    CHECK(!ibv_dealloc_td(td) && ibv_dealloc_td(td) == EINVAL && !ibv_dealloc_td(foreign));
    CHECK(calls == 0);

    a.qp = own;
    a.mr = own_mr;
    close_end(&a);
    close_end(&b);
    return 0;
}
