/* What clients of two processes share. Each process has one end of a connection, and a socket to
 * the other process. */
#ifndef PEERS_H
#define PEERS_H

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* Starts the second process. Returns 0 in it, and stores the socket to the peer. */
static inline pid_t start_peer(int *peer)
{
    int ends[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t child = fork();
    CHECK(child >= 0);
    *peer = ends[!child];
    CHECK(!close(ends[!!child]));
    return child;
}

/* Ends the conversation. The first process waits until the second one has succeeded. */
static inline void end_peer(pid_t child, int peer)
{
    int status = 0;
    CHECK(!close(peer));
    CHECK(!child || (waitpid(child, &status, 0) == child && status == 0));
}

static inline void tell(int peer, const void *what, size_t length)
{
    CHECK(write(peer, what, length) == (ssize_t)length);
}

static inline void hear(int peer, void *what, size_t length)
{
    CHECK(read(peer, what, length) == (ssize_t)length);
}

/* Returns when both processes have come here. */
static inline void meet(int peer)
{
    char byte = 0;
    tell(peer, &byte, 1);
    hear(peer, &byte, 1);
}

/* Connects the ends of the two processes. Returns the rkey of the other. */
static inline uint32_t connect_to_peer(struct end *end, int peer, uint32_t rkey)
{
    struct address {
        union ibv_gid gid;
        uint32_t qp_num, rkey;
    } own = {gid_of(end), end->qp->qp_num, rkey}, other;
    tell(peer, &own, sizeof own);
    hear(peer, &other, sizeof other);
    to_init(end);
    to_rtr(end, other.gid, other.qp_num);
    to_rts(end, 14, 7);
    return other.rkey;
}

#endif
