/* Memory is unmapped and its region stays: at the target of a write, at its source, of a read too, and under a
 * receive. A real device uses pages that the program does not see any more. Needs --memory. */
#include <sys/mman.h>

#include "two.h"

enum { PAGE = 4096 };

struct mapped {
    char *memory;
    struct ibv_mr *mr;
};

/* Registers a page, and unmaps it. */
static struct mapped map(struct end *end, int wrong)
{
    struct mapped mapped;
    mapped.memory =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped.memory != MAP_FAILED);
    CHECK((mapped.mr = ibv_reg_mr(end->pd, mapped.memory, PAGE, ALL_RIGHTS))); /* HERE */
    if (wrong)
        CHECK(!munmap(mapped.memory, PAGE));
    return mapped;
}

/* Other queue pairs, in the place of those that have failed. */
static void start_again(struct end *a, struct end *b)
{
    use_cqs(a, a->cq, a->cq);
    use_cqs(b, b->cq, b->cq);
    connect_ends(a, b);
}

/* Between two places; how it ends. */
static enum ibv_wc_status move(struct end *a, uint64_t number, enum ibv_wr_opcode opcode,
                               struct mapped *local, struct mapped *remote)
{
    struct ibv_sge sge = {(uintptr_t)local->memory, MESSAGE, local->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)remote->memory + 8, remote->mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a->qp, &wr, &bad)); /* HERE */
    return complete(a).status;
}

static void unmap(struct mapped *mapped, int wrong)
{
    CHECK(!ibv_dereg_mr(mapped->mr));
    if (!wrong)
        CHECK(!munmap(mapped->memory, PAGE));
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);

    struct mapped near = {a.memory, a.mr}, far = {b.memory, b.mr};
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    for (int n = 0; n < 2; n++) {
        struct mapped remote = map(&b, wrong);
        CHECK(move(&a, 2 * n, opcodes[n], &near, &remote) ==
              (wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS));
        unmap(&remote, wrong);
        start_again(&a, &b);
        struct mapped local = map(&a, wrong);
        CHECK(move(&a, 2 * n + 1, opcodes[n], &local, &far) ==
              (wrong ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS));
        unmap(&local, wrong);
        start_again(&a, &b);
    }

    struct mapped received = map(&b, wrong);
    struct ibv_sge room = {(uintptr_t)received.memory, MESSAGE, received.mr->lkey};
    CHECK(!ibv_post_recv(b.qp, &(struct ibv_recv_wr){.wr_id = 5, .sg_list = &room, .num_sge = 1},
                         &(struct ibv_recv_wr *){NULL}));
    CHECK(!POST_SEND(&a, 6, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, wrong ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
    expect(&b, wrong ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    unmap(&received, wrong);
    hear(&a);
    hear(&b);
    close_both(&a, &b);
    return 0;
}
