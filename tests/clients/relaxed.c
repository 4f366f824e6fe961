/* A program that polls memory instead of a CQ, in one process and in two. A later write is seen behind
 * an earlier one, and the last byte of a message behind the others if the device promises it. In relaxed
 * memory neither holds on a device that makes use of that.
 * verbsim exec --profile adversarial */
#include "peers.h"

enum { ROUNDS = 32, MESSAGE = 64, FLAG = MESSAGE };

/* Where a message goes: its data and its flag, and a mark in another region, whose memory keeps order. */
struct place {
    union ibv_gid gid;
    uint64_t data, mark;
    uint32_t qp_num, data_key, mark_key, padding;
};

struct target {
    struct end end;
    struct ibv_mr *mr;
    volatile char *data;
    int early, torn;
};

static struct place open_target(struct target *target, int access)
{
    open_end(&target->end, 1, 0);
    to_init(&target->end);
    target->early = target->torn = 0;
    CHECK((target->data = calloc(1, LENGTH)));
    CHECK((target->mr = ibv_reg_mr(target->end.pd, (void *)target->data, LENGTH, ALL_RIGHTS | access)));
    return (struct place){
        .gid = gid_of(&target->end),
        .data = (uintptr_t)target->data,
        .mark = (uintptr_t)target->end.memory,
        .qp_num = target->end.qp->qp_num,
        .data_key = target->mr->rkey,
        .mark_key = target->end.mr->rkey,
    };
}

static void post_write(struct end *from, uint32_t length, uint64_t to, uint32_t key)
{
    struct ibv_sge sge = {(uintptr_t)from->memory, length, from->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {to, key}},
                       *bad;
    CHECK(!ibv_post_send(from->qp, &wr, &bad));
}

/* A message whose bytes are all the number of the round, its flag, and the mark. */
static void write_round(struct end *from, const struct place *to, int round)
{
    memset(from->memory, round, MESSAGE);
    post_write(from, MESSAGE, to->data, to->data_key);
    post_write(from, 1, to->data + FLAG, to->data_key);
    post_write(from, 1, to->mark, to->mark_key);
}

static int is_whole(struct target *target, int round)
{
    for (int i = 0; i < MESSAGE; ++i)
        if (target->data[i] != round)
            return 0;
    return 1;
}

/* Waits in memory for a round. */
static void see_round(struct target *target, int round, int access)
{
    volatile char *mark = target->end.memory, *data = target->data;
    if (!access && ibv_query_qp_data_in_order(target->end.qp, IBV_WR_RDMA_WRITE, 0)) {
        while (data[MESSAGE - 1] != round)
            ;
        CHECK(is_whole(target, round));
    }
    if (!access) {
        while (data[FLAG] != round)
            ;
        CHECK(is_whole(target, round));
    }
    while (*mark != round)
        ;
    int is_early = data[FLAG] == round, is_torn = data[MESSAGE - 1] == round;
    if (!is_whole(target, round)) {
        target->early += is_early;
        target->torn += is_torn;
    }
}

static void close_target(struct target *target, int access)
{
    int is_promised = ibv_query_qp_data_in_order(target->end.qp, IBV_WR_RDMA_WRITE, 0);
    int uses_it = access && !is_promised;
    CHECK(uses_it == (target->early > 0) && uses_it == (target->torn > 0));
    CHECK(!ibv_dereg_mr(target->mr));
    free((void *)target->data);
    close_end(&target->end);
}

static void in_one_process(int access)
{
    struct end writer;
    struct target target;
    open_end(&writer, 0, 0);
    struct place place = open_target(&target, access);
    to_init(&writer);
    to_rtr(&writer, place.gid, place.qp_num);
    to_rtr(&target.end, gid_of(&writer), writer.qp->qp_num);
    to_rts(&writer, 14, 7);
    to_rts(&target.end, 14, 7);
    for (int round = 1; round <= ROUNDS; ++round) {
        write_round(&writer, &place, round);
        see_round(&target, round, access);
        for (int i = 0; i < 3; ++i)
            CHECK(complete(&writer).status == IBV_WC_SUCCESS);
        CHECK(is_whole(&target, round));
    }
    close_end(&writer);
    close_target(&target, access);
}

static void run_writer(int peer)
{
    struct end writer;
    struct place to, own = {0};
    char seen;
    open_end(&writer, 0, 0);
    to_init(&writer);
    own.gid = gid_of(&writer);
    own.qp_num = writer.qp->qp_num;
    tell(peer, &own, sizeof own);
    hear(peer, &to, sizeof to);
    to_rtr(&writer, to.gid, to.qp_num);
    to_rts(&writer, 14, 7);
    for (int round = 1; round <= ROUNDS; ++round) {
        write_round(&writer, &to, round);
        for (int i = 0; i < 3; ++i)
            CHECK(complete(&writer).status == IBV_WC_SUCCESS);
        hear(peer, &seen, 1);
    }
    post_send(&writer, 1, 1, 0);
    CHECK(complete(&writer).status == IBV_WC_SUCCESS);
    tell(peer, "", 1);
    close_end(&writer);
}

static void run_target(int peer, int access)
{
    struct target target;
    struct place place = open_target(&target, access), from;
    hear(peer, &from, sizeof from);
    to_rtr(&target.end, from.gid, from.qp_num);
    to_rts(&target.end, 14, 7);
    tell(peer, &place, sizeof place);
    for (int round = 1; round <= ROUNDS; ++round) {
        see_round(&target, round, access);
        if (round == ROUNDS)
            post_recv(&target.end, 1, 1);
        tell(peer, "", 1);
    }
    /* A receive says that all data before it is there. */
    CHECK(complete(&target.end).status == IBV_WC_SUCCESS && is_whole(&target, ROUNDS));
    char done;
    hear(peer, &done, 1);
    close_target(&target, access);
}

static void in_two_processes(int access)
{
    int peer;
    pid_t child = start_peer(&peer);
    if (!child) {
        run_target(peer, access);
        /* The sanitizer finds leaks in what fork() took along. */
        execlp("true", "true", NULL);
    }
    run_writer(peer);
    end_peer(child, peer);
}

int main(void)
{
    int flags[] = {0, IBV_ACCESS_RELAXED_ORDERING};
    for (int i = 0; i < 2; ++i)
        in_two_processes(flags[i]);
    for (int i = 0; i < 2; ++i)
        in_one_process(flags[i]);
    return 0;
}
