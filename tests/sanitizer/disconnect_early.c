/* The server disconnects while its message waits for a receive: it never arrives. */
#include "cm.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct connection both;
    static char text[MESSAGE] = "bye", received[MESSAGE];
    struct ibv_wc wc;
    connect_cm(&both);
    struct ibv_mr *sends = rdma_reg_msgs(both.server, text, sizeof text);
    struct ibv_mr *receives = rdma_reg_msgs(both.client, received, sizeof received);
    CHECK(sends && receives);
    if (!wrong)
        CHECK(!rdma_post_recv(both.client, NULL, received, sizeof received, receives));

    CHECK(!rdma_post_send(both.server, NULL, text, MESSAGE, sends, IBV_SEND_SIGNALED)); /* HERE */
    if (!wrong) {
        CHECK(rdma_get_send_comp(both.server, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
        CHECK(rdma_get_recv_comp(both.client, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    }
    CHECK(!rdma_disconnect(both.server));
    expect_event(both.clients, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(both.client));
    CHECK(!strcmp(received, wrong ? "" : text));
    CHECK(!rdma_dereg_mr(sends) && !rdma_dereg_mr(receives));
    close_cm(&both);
    return 0;
}
