/* What the library does by itself: an address handle back to the sender of a datagram (AH-02), the
 * index of a P_Key (DEV-07), the table of GIDs, fork (DEV-12).
 *
 * verbsim exec --fabric private */
#include <endian.h>
#include <netinet/ip.h>

#include "bench.h"

static const uint32_t QKEY = 0x11111111;

static void to_datagrams(struct end *end)
{
    CHECK(!ibv_destroy_qp(end->qp));
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void send_to(struct end *end, struct ibv_ah *ah, uint32_t qp_num)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, 8, end->mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp_num;
    wr.wr.ud.remote_qkey = QKEY;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
    CHECK(complete(end).status == IBV_WC_SUCCESS);
}

int main(void)
{
    CHECK(!ibv_fork_init());
    CHECK(ibv_is_fork_initialized() != IBV_FORK_DISABLED);

    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    to_datagrams(&a);
    to_datagrams(&b);

    /* Over IPv6 and over IPv4, of which the header is in the second half of the 40 bytes. */
    for (uint8_t index = 0; index < 2; ++index) {
        union ibv_gid of_a, of_b;
        CHECK(!ibv_query_gid(a.context, 1, index, &of_a));
        CHECK(!ibv_query_gid(b.context, 1, index, &of_b));
        struct ibv_ah_attr attr = {.grh = {.dgid = of_b,
                                           .sgid_index = index,
                                           .traffic_class = 0xb8,
                                           .flow_label = 0xabcde,
                                           .hop_limit = 7},
                                   .is_global = 1,
                                   .port_num = 1};
        struct ibv_ah *there = ibv_create_ah(a.pd, &attr);
        CHECK(there && there->context == a.context && there->pd == a.pd);
        post_recv(&b, 1, 48);
        send_to(&a, there, b.qp->qp_num);
        struct ibv_wc wc = complete(&b);
        CHECK(wc.byte_len == 48 && wc.wc_flags & IBV_WC_GRH && wc.src_qp == a.qp->qp_num);

        struct ibv_grh *grh = (struct ibv_grh *)b.memory;
        struct iphdr *ipv4 = (struct iphdr *)(b.memory + 20);
        CHECK(index ? ipv4->version == 4 && ipv4->tos == 0xb8 && ipv4->ttl == 7
                    : be32toh(grh->version_tclass_flow) == 0x6b8abcde && grh->hop_limit == 7);
        struct ibv_ah_attr back;
        CHECK(!ibv_init_ah_from_wc(b.context, 1, &wc, grh, &back));
        CHECK(back.is_global && !memcmp(&back.grh.dgid, &of_a, sizeof of_a));
        CHECK(back.grh.sgid_index == index && back.grh.traffic_class == 0xb8);
        CHECK(back.grh.flow_label == (index ? 0 : 0xabcde) && back.grh.hop_limit == 7);
        struct ibv_ah *home = ibv_create_ah_from_wc(b.pd, &wc, grh, 1);
        CHECK(home);
        post_recv(&a, 2, 48);
        send_to(&b, home, wc.src_qp);
        CHECK(complete(&a).src_qp == b.qp->qp_num);

        /* Not to this port, of a transport that is none, of no version of IP. */
        CHECK(ibv_init_ah_from_wc(a.context, 1, &wc, grh, &back) == -1);
        *(index ? &ipv4->protocol : &grh->next_hdr) = 6;
        CHECK(!ibv_create_ah_from_wc(b.pd, &wc, grh, 1) && errno == EPROTONOSUPPORT);
        memset(b.memory, 0, 40);
        CHECK(!ibv_create_ah_from_wc(b.pd, &wc, grh, 1) && errno == EPROTONOSUPPORT);
        CHECK(!ibv_destroy_ah(there) && !ibv_destroy_ah(home));
    }

    /* Without a destination a datagram cannot be posted. */
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    CHECK(ibv_post_send(a.qp, &wr, &bad) == EINVAL && bad == &wr);

    __be16 pkey;
    CHECK(!ibv_query_pkey(a.context, 1, 0, &pkey));
    CHECK(ibv_get_pkey_index(a.context, 1, pkey) == 0);
    CHECK(ibv_get_pkey_index(a.context, 1, htobe16(0x1234)) == -1);

    struct ibv_gid_entry table[8], entry;
    int count = ibv_query_gid_table(a.context, table, 8, 0);
    union ibv_gid first = gid_of(&a);
    CHECK(count >= 1 && !memcmp(&table[0].gid, &first, sizeof first));
    CHECK(table[0].gid_type == IBV_GID_TYPE_ROCE_V2 && table[0].port_num == 1);
    CHECK(!ibv_query_gid_ex(a.context, 1, 0, &entry, 0));
    CHECK(!memcmp(&entry, &table[0], sizeof entry));
    CHECK(ibv_query_gid_table(a.context, table, 1, 0) == -EINVAL);

    close_end(&a);
    close_end(&b);
    return 0;
}
