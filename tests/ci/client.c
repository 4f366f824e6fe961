/* A program of C that uses libibverbs: it sends a message to itself. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void connect_to_itself(struct ibv_context *context, struct ibv_qp *qp)
{
    union ibv_gid gid;
    check(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    check(!ibv_modify_qp(qp, &attr, mask), "ibv_modify_qp to INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}},
    };
    mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    check(!ibv_modify_qp(qp, &attr, mask), "ibv_modify_qp to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
    check(!ibv_modify_qp(qp, &attr, mask), "ibv_modify_qp to RTS");
}

int main(void)
{
    static char memory[128] = "hello";
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list && list[0], "ibv_get_device_list");
    struct ibv_context *context = ibv_open_device(list[0]);
    check(context != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    check(mr && qp, "ibv_create_qp");
    connect_to_itself(context, qp);

    struct ibv_sge from = {(uintptr_t)memory, 64, mr->lkey}, to = {(uintptr_t)memory + 64, 64, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    check(!ibv_post_recv(qp, &recv, &bad_recv), "ibv_post_recv");
    check(!ibv_post_send(qp, &send, &bad_send), "ibv_post_send");
    for (int completions = 0; completions < 2;) {
        struct ibv_wc wc;
        int count = ibv_poll_cq(cq, 1, &wc);
        check(count >= 0 && (count == 0 || wc.status == IBV_WC_SUCCESS), "ibv_poll_cq");
        completions += count;
    }
    check(!strcmp(memory + 64, "hello"), "the message");

    check(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) &&
              !ibv_close_device(context),
          "the end");
    return 0;
}
