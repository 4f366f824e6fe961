/* The peer is another process, and writes beyond the end of a region. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "two.h"

struct address {
    union ibv_gid gid;
    uint64_t memory;
    uint32_t rkey, qp_num;
};

static struct address exchange(int peer, struct end *end, struct ibv_mr *mr)
{
    struct address own = {gid_of(end), (uintptr_t)mr->addr, mr->rkey, end->qp->qp_num}, other;
    CHECK(write(peer, &own, sizeof(own)) == sizeof(own));
    CHECK(read(peer, &other, sizeof(other)) == sizeof(other));
    return other;
}

/* Both are where they say. */
static void meet(int peer)
{
    char byte = 0;
    CHECK(write(peer, &byte, 1) == 1 && read(peer, &byte, 1) == 1);
}

static struct address start(struct end *end, int peer, struct ibv_mr *mr)
{
    struct address other = exchange(peer, end, mr);
    to_init(end);
    to_rtr(end, other.gid, other.qp_num);
    to_rts(end, 14, 7);
    meet(peer);
    return other;
}

static void client(int peer, int wrong)
{
    struct end end;
    open_end(&end, 0, 0);
    struct address other = start(&end, peer, end.mr);
    uint64_t to = other.memory + (wrong ? 8 : 0);
    CHECK(!POST_WRITE(&end, 1, MESSAGE, IBV_SEND_SIGNALED, to, other.rkey)); /* HERE */
    /* It is on its way when the first is refused. */
    CHECK(!POST_WRITE(&end, 2, MESSAGE, IBV_SEND_SIGNALED, other.memory, other.rkey));
    expect(&end, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    expect(&end, wrong ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
    meet(peer);
    close_end(&end);
}

static void server(int peer)
{
    struct end end;
    open_end(&end, 1, 0);
    struct ibv_mr *mr = ibv_reg_mr(end.pd, end.memory, MESSAGE, ALL_RIGHTS); /* HERE */
    CHECK(mr);
    start(&end, peer, mr);
    meet(peer);
    hear(&end);
    CHECK(!ibv_dereg_mr(mr));
    close_end(&end);
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv), pair[2], status;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        client(pair[1], wrong);
        exit(0);
    }
    server(pair[0]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
