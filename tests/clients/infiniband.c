/* InfiniBand: the LID of a port leads to it, without a GID or with one.
 *
 * verbsim exec --link-layer infiniband */
#include "bench.h"

static const uint32_t QKEY = 0x11111111;

static uint16_t lid_of(struct end *end)
{
    struct ibv_port_attr port;
    CHECK(!ibv_query_port(end->context, 1, &port));
    CHECK(port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.state == IBV_PORT_ACTIVE);
    CHECK(port.lid && port.sm_lid && !(port.flags & IBV_QPF_GRH_REQUIRED));
    return port.lid;
}

/* To RTS, with a peer at this LID. */
static void to_lid(struct end *end, uint16_t lid, uint32_t qp_num)
{
    struct ibv_ah_attr path = {.dlid = lid, .port_num = 1};
    to_rtr_by(end, path, qp_num);
    to_rts(end, 8, 3); /* 1 ms */
}

static struct ibv_qp *datagrams(struct end *end)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(end->pd, &init);
    CHECK(qp);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return qp;
}

/* Sends a datagram from one to the other; how it arrived. */
static struct ibv_wc datagram(struct end *from, struct ibv_qp *qp, struct ibv_ah_attr *attr,
                              struct end *to, struct ibv_qp *peer)
{
    struct ibv_sge sge = {(uintptr_t)to->memory, 48, to->mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    CHECK(!ibv_post_recv(peer, &recv, &bad_recv));
    struct ibv_ah *ah = ibv_create_ah(from->pd, attr);
    CHECK(ah);
    struct ibv_sge bytes = {(uintptr_t)from->memory, 8, from->mr->lkey};
    struct ibv_send_wr send = {
        .sg_list = &bytes, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    send.wr.ud.ah = ah;
    send.wr.ud.remote_qpn = peer->qp_num;
    send.wr.ud.remote_qkey = QKEY;
    CHECK(!ibv_post_send(qp, &send, &bad) && complete(from).status == IBV_WC_SUCCESS);
    struct ibv_wc wc = complete(to);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 48 && wc.src_qp == qp->qp_num);
    CHECK(!ibv_destroy_ah(ah));
    return wc;
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    uint16_t of_a = lid_of(&a), of_b = lid_of(&b);
    CHECK(of_a != of_b);

    struct ibv_gid_entry entry;
    CHECK(!ibv_query_gid_ex(a.context, 1, 0, &entry, 0) && entry.gid_type == IBV_GID_TYPE_IB);
    CHECK(ibv_query_gid_ex(a.context, 1, 1, &entry, 0) == ENODATA);

    /* Connected by LIDs. */
    to_init(&a);
    to_init(&b);
    to_lid(&a, of_b, b.qp->qp_num);
    to_lid(&b, of_a, a.qp->qp_num);
    post_recv(&b, 1, 8);
    post_send(&a, 2, 8, 0);
    CHECK(complete(&b).status == IBV_WC_SUCCESS && complete(&a).status == IBV_WC_SUCCESS);

    /* A datagram without a GRH, and back by its completion; then both with one. */
    struct ibv_qp *qp_a = datagrams(&a), *qp_b = datagrams(&b);
    struct ibv_ah_attr there = {.dlid = of_b, .port_num = 1}, back;
    memset(b.memory, 0x5a, 40);
    struct ibv_wc wc = datagram(&a, qp_a, &there, &b, qp_b);
    CHECK(!(wc.wc_flags & IBV_WC_GRH) && wc.slid == of_a && b.memory[0] == 0x5a);
    CHECK(!ibv_init_ah_from_wc(b.context, 1, &wc, NULL, &back));
    CHECK(!back.is_global && back.dlid == of_a);
    datagram(&b, qp_b, &back, &a, qp_a);
    there.is_global = 1;
    there.grh = (struct ibv_global_route){
        .dgid = gid_of(&b), .traffic_class = 0xb8, .flow_label = 0xabcde, .hop_limit = 7};
    wc = datagram(&a, qp_a, &there, &b, qp_b);
    struct ibv_grh *grh = (struct ibv_grh *)b.memory;
    union ibv_gid own = gid_of(&a);
    CHECK(wc.wc_flags & IBV_WC_GRH && grh->next_hdr == 0x1b && !memcmp(&grh->sgid, &own, 16));
    CHECK(!ibv_init_ah_from_wc(b.context, 1, &wc, grh, &back));
    CHECK(back.is_global && back.dlid == of_a && !memcmp(&back.grh.dgid, &own, 16));
    CHECK(back.grh.traffic_class == 0xb8 && back.grh.flow_label == 0xabcde);
    CHECK(back.grh.hop_limit == 7);
    wc = datagram(&b, qp_b, &back, &a, qp_a);
    CHECK(wc.wc_flags & IBV_WC_GRH && wc.slid == of_b);
    CHECK(!ibv_destroy_qp(qp_a) && !ibv_destroy_qp(qp_b));

    /* Nobody has this LID. */
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
    to_init(&a);
    to_lid(&a, 0x77, 77);
    post_send(&a, 3, 8, 0);
    CHECK(complete(&a).status == IBV_WC_RETRY_EXC_ERR);

    close_end(&a);
    close_end(&b);
    return 0;
}
