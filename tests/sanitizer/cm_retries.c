/* A server allows its client no retries: rnr_retry_count was left 0 in rdma_accept. */
#include "cm_sync.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct side client;
    struct server server = {.param = {.rnr_retry_count = wrong ? 0 : 7}};
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    connect_sides(&client, &server, param);
    struct ibv_recv_wr receive = {.sg_list = SGE(&server.side, MESSAGE), .num_sge = 1}, *bad;
    if (!wrong)
        CHECK(!ibv_post_recv(server.side.id->qp, &receive, &bad));
    CHECK(!POST(&client, IBV_WR_SEND, &server.side)); /* HERE */
    CHECK(next_status(client.id->send_cq) == (wrong ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS));
    if (!wrong)
        CHECK(next_status(server.side.id->recv_cq) == IBV_WC_SUCCESS);
    disconnect_sides(&client, &server);
    return 0;
}
