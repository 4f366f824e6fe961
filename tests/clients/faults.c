/* Faults and limits reach a program: by calls, memory, packets, completions, and the time of the machine.
 *
 * verbsim exec --faults tests/clients/faults.toml --limits max_qp=2,max_cqe=255 */
#include "bench.h"

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);

    /* The first query alone fails: no call of the library itself has been counted. */
    struct ibv_device_attr device;
    CHECK(ibv_query_device(a.context, &device) == EIO);
    CHECK(!ibv_query_device(a.context, &device));
    CHECK(device.max_qp == 2 && device.max_cqe == 255);
    CHECK(!ibv_create_cq(a.context, 256, NULL, NULL, 0) && errno == EINVAL);
    struct ibv_qp_init_attr init = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *second = ibv_create_qp(a.pd, &init);
    CHECK(second);
    CHECK(!ibv_create_qp(a.pd, &init) && errno == ENOMEM);
    CHECK(!ibv_destroy_qp(second));

    CHECK(!ibv_create_comp_channel(a.context) && errno == EMFILE);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(a.context);
    CHECK(channel && !ibv_destroy_comp_channel(channel));

    enum { MUCH = 1 << 20 };
    char *memory = malloc(MUCH);
    CHECK(memory && !ibv_reg_mr(a.pd, memory, MUCH, 0) && errno == ENOMEM);
    free(memory);

    /* The port is down, and comes up by itself. */
    struct ibv_port_attr port;
    CHECK(!ibv_query_port(b.context, 1, &port) && port.state == IBV_PORT_DOWN);
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(b.context, &event));
    CHECK(event.event_type == IBV_EVENT_PORT_ACTIVE && event.element.port_num == 1);
    ibv_ack_async_event(&event);
    connect_ends(&a, &b);

    post_recv(&b, 1, 8);
    post_send(&a, 1, 8, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).wr_id == 1);

    struct ibv_sge sge = {(uintptr_t)a.memory, 8, a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    CHECK(ibv_post_send(a.qp, &wr, &bad) == ENOMEM && bad == &wr);

    /* Its packet is lost, and is sent again. */
    post_recv(&b, 2, 8);
    post_send(&a, 2, 8, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).wr_id == 2);

    post_recv(&b, 3, 8);
    post_send(&a, 3, 8, 0);
    CHECK(complete(&a).status == IBV_WC_LOC_PROT_ERR);

    close_end(&a);
    close_end(&b);
    return 0;
}
