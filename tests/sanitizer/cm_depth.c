/* A read on a connection that was made without reads: initiator_depth was left 0. */
#include "cm_sync.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct side client;
    struct server server = {.param = {.responder_resources = !wrong, .rnr_retry_count = 7}};
    struct rdma_conn_param param = {
        .initiator_depth = !wrong, .retry_count = 7, .rnr_retry_count = 7};
    connect_sides(&client, &server, param);
    CHECK(!POST(&client, IBV_WR_RDMA_READ, &server.side)); /* HERE */
    CHECK(next_status(client.id->send_cq) == (wrong ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS));
    disconnect_sides(&client, &server);
    return 0;
}
