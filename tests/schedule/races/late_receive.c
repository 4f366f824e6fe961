/* A server of datagrams tells its address, looks at its port, and then posts the receive.
 * Race: the datagram of a quick client finds no receive and is dropped. The server waits without end.
 * Fix: post the receive before sending the address. */
#include "common.h"

enum { QKEY = 0x1234, HEADER = 40 };

struct address {
    union ibv_gid gid;
    uint32_t qp_num;
};

static void open_datagrams(struct end *end)
{
    open_end(end, 0, 0);
    CHECK(!ibv_destroy_qp(end->qp));
    struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {4, 4, 1, 1, 0}};
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void server(int peer)
{
    struct end end;
    open_datagrams(&end);
    struct address own = {gid_of(&end), end.qp->qp_num};
    struct ibv_port_attr port;
#ifdef RIGHT
    want(&end, 0);
#endif
    tell(peer, &own, sizeof own);
    CHECK(!ibv_query_port(end.context, 1, &port) && port.state == IBV_PORT_ACTIVE);
#ifndef RIGHT
    want(&end, 0);
#endif
    next(&end);
    CHECK(received(&end, 0)[HEADER / sizeof(int)] == 5);
    close_end(&end);
}

/* Reads the address, finds out what to send, and sends one datagram. */
static void client(int peer)
{
    struct address to;
    struct end end;
    open_datagrams(&end);
    hear(peer, &to, sizeof to);
    pause_ms(4);
    struct ibv_ah_attr path = {
        .grh = {.dgid = to.gid, .hop_limit = 64}, .is_global = 1, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(end.pd, &path);
    CHECK(ah);
    *(int *)end.memory = 5;
    struct ibv_sge sge = {(uintptr_t)end.memory, sizeof(int), end.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {ah, to.qp_num, QKEY}},
                       *bad;
    CHECK(!ibv_post_send(end.qp, &wr, &bad));
    CHECK(complete(&end).status == IBV_WC_SUCCESS && !ibv_destroy_ah(ah));
    close_end(&end);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    if (child)
        server(peer);
    else
        client(peer);
    end_peer(child, peer);
    return 0;
}
