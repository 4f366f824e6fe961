/* The peer disconnects. An event reports that, which is not read, and a message fails. */
#include "cm.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct connection both;
    static char text[MESSAGE];
    struct ibv_wc wc;
    start_listener(&both);
    start_client(&both); /* HERE */
    accept_client(&both);
    struct ibv_mr *mr = rdma_reg_msgs(both.client, text, sizeof text);

    CHECK(mr && !rdma_disconnect(both.server));
    if (wrong) {
        CHECK(!rdma_post_send(both.client, NULL, text, MESSAGE, mr, IBV_SEND_SIGNALED)); /* HERE */
        CHECK(rdma_get_send_comp(both.client, &wc) == 1 && wc.status == IBV_WC_RETRY_EXC_ERR);
    } else {
        expect_event(both.clients, RDMA_CM_EVENT_DISCONNECTED);
    }
    CHECK(!rdma_disconnect(both.client));
    CHECK(!rdma_dereg_mr(mr));
    close_cm(&both);
    return 0;
}
