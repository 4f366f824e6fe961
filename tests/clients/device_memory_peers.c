/* Device memory between two processes: the first works on that of the second, with its own at the
 * other end of the work. After each step, each process compares every byte of its memory. */
#include "peers.h"

/* The regions are parts of the memories: the bytes around them never change. */
enum { SIZE = 1024, START = 64, BYTES = 512 };
enum { NUMBER = 0x1234, ADDEND = 77 };

/* What the first process posts. The places are those in the regions. */
static const struct step {
    enum ibv_wr_opcode opcode;
    uint32_t here, there, length;
    /* Whether a compare-and-swap finds another word than it looks for. */
    int differs;
    enum ibv_wc_status status;
} STEPS[] = {
    {IBV_WR_RDMA_WRITE, 0, 0, BYTES, 0, IBV_WC_SUCCESS},
    {IBV_WR_RDMA_WRITE, 3, 101, 77, 0, IBV_WC_SUCCESS},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 8, 201, 61, 0, IBV_WC_SUCCESS},
    {IBV_WR_RDMA_READ, 33, 7, 301, 0, IBV_WC_SUCCESS},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, 16, 8, 8, 0, IBV_WC_SUCCESS},
    {IBV_WR_ATOMIC_CMP_AND_SWP, 24, 40, 8, 0, IBV_WC_SUCCESS},
    {IBV_WR_ATOMIC_CMP_AND_SWP, 24, 40, 8, 1, IBV_WC_SUCCESS},
    {IBV_WR_SEND, 1, 5, 99, 0, IBV_WC_SUCCESS},
    {IBV_WR_SEND_WITH_IMM, 0, 0, BYTES, 0, IBV_WC_SUCCESS},
    {IBV_WR_RDMA_WRITE, 0, BYTES - 1, 1, 0, IBV_WC_SUCCESS},
    {IBV_WR_RDMA_WRITE, 0, BYTES - 1, 2, 0, IBV_WC_REM_ACCESS_ERR},
};

/* What the memories of the first and the second process have to be. */
static unsigned char first[SIZE], second[SIZE];

static void fill(int round)
{
    for (int at = 0; at < SIZE; at++) {
        first[at] = at * 7 + at / 251 + round * 31;
        second[at] = ~(at * 5 + at / 241 + round * 29);
    }
}

static uint64_t word(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* What a step does to the memories. */
static void predict(const struct step *step)
{
    unsigned char *here = first + START + step->here, *there = second + START + step->there;
    uint64_t before = word(there), sum = before + ADDEND, number = NUMBER;
    if (step->status != IBV_WC_SUCCESS)
        return;
    switch (step->opcode) {
    case IBV_WR_RDMA_READ:
        memcpy(here, there, step->length);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        memcpy(there, &sum, sizeof sum);
        memcpy(here, &before, sizeof before);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        if (!step->differs)
            memcpy(there, &number, sizeof number);
        memcpy(here, &before, sizeof before);
        break;
    default:
        memcpy(there, here, step->length);
    }
}

static int has_immediate(const struct step *step)
{
    return step->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || step->opcode == IBV_WR_SEND_WITH_IMM;
}

static int has_receive(const struct step *step)
{
    return has_immediate(step) || step->opcode == IBV_WR_SEND;
}

static void post(struct end *end, const struct step *step, uint32_t lkey, uint32_t rkey)
{
    struct ibv_sge sge = {step->here, step->length, lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = step->opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = NUMBER},
                       *bad;
    if (step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || step->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        uint64_t found = word(second + START + step->there) + step->differs;
        wr.wr.atomic.remote_addr = step->there;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? ADDEND : found;
        wr.wr.atomic.swap = NUMBER;
    } else {
        wr.wr.rdma.remote_addr = step->there;
        wr.wr.rdma.rkey = rkey;
    }
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
    CHECK(complete(end).status == step->status);
}

static void receive_into(struct end *end, const struct step *step, uint32_t lkey)
{
    struct ibv_sge sge = {step->there, step->length, lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

static void received(struct end *end, const struct step *step)
{
    struct ibv_wc wc = complete(end);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == step->length);
    CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM) == !has_immediate(step));
    CHECK(!has_immediate(step) || wc.imm_data == NUMBER);
}

static void talk(int is_first, int peer)
{
    struct end end;
    unsigned char *expected = is_first ? first : second, found[SIZE];
    open_end(&end, 0, 0);
    struct ibv_alloc_dm_attr attr = {.length = SIZE, .log_align_req = 3};
    struct ibv_dm *dm = ibv_alloc_dm(end.context, &attr);
    CHECK(dm);
    struct ibv_mr *mr = ibv_reg_dm_mr(end.pd, dm, START, BYTES, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);
    CHECK(mr);
    uint32_t rkey = connect_to_peer(&end, peer, mr->rkey);
    for (int round = 0; round < (int)(sizeof STEPS / sizeof *STEPS); round++) {
        const struct step *step = &STEPS[round];
        fill(round);
        CHECK(!ibv_memcpy_to_dm(dm, 0, expected, SIZE));
        if (!is_first && has_receive(step))
            receive_into(&end, step, mr->lkey);
        meet(peer);
        if (is_first)
            post(&end, step, mr->lkey, rkey);
        else if (has_receive(step))
            received(&end, step);
        meet(peer);
        predict(step);
        CHECK(!ibv_memcpy_from_dm(found, dm, 0, SIZE) && !memcmp(found, expected, SIZE));
    }
    CHECK(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
    close_end(&end);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    talk(child, peer);
    end_peer(child, peer);
    return 0;
}
