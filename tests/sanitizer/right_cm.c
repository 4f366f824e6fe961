/* A connection by librdmacm, in one process: each event is acknowledged, and all is destroyed. */
#include "cm.h"

static void exchange(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
    static char text[MESSAGE] = "hello", received[MESSAGE];
    struct ibv_mr *sends = rdma_reg_msgs(from, text, sizeof text);
    struct ibv_mr *receives = rdma_reg_msgs(to, received, sizeof received);
    struct ibv_wc wc;
    CHECK(sends && receives);
    CHECK(!rdma_post_recv(to, NULL, received, sizeof received, receives));
    CHECK(!rdma_post_send(from, NULL, text, sizeof text, sends, IBV_SEND_SIGNALED));
    CHECK(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!strcmp(received, text));
    CHECK(!rdma_dereg_mr(sends) && !rdma_dereg_mr(receives));
}

int main(void)
{
    struct connection both;
    connect_cm(&both);
    exchange(both.client, both.server);
    CHECK(!rdma_disconnect(both.client));
    expect_event(both.servers, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(both.server));
    expect_event(both.clients, RDMA_CM_EVENT_DISCONNECTED);
    close_cm(&both);
    return 0;
}
