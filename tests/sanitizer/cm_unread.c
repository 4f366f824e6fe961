/* The peer disconnects. An event reports that, which is not read: a receive is waited for. */
#include "cm.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct connection both;
    static char received[MESSAGE];
    struct ibv_wc wc;
    start_listener(&both);
    start_client(&both); /* HERE */
    accept_client(&both);
    struct ibv_mr *mr = rdma_reg_msgs(both.client, received, sizeof received);
    CHECK(mr && !rdma_post_recv(both.client, NULL, received, sizeof received, mr));

    CHECK(!rdma_disconnect(both.server));
    if (!wrong) {
        expect_event(both.clients, RDMA_CM_EVENT_DISCONNECTED);
        CHECK(!rdma_disconnect(both.client));
    }
    while (!ibv_poll_cq(both.client->recv_cq, 1, &wc)) /* HERE */
        ;
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && !rdma_dereg_mr(mr));
    close_cm(&both);
    return 0;
}
