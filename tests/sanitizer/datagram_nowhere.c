/* Sends a datagram to an address that no device has, on a device of a network that does not look. */
#include "datagrams.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_datagrams(&a);
    to_datagrams(&b);
    struct ibv_ah_attr attr = {
        .grh = {.dgid = gid_of(&b), .hop_limit = 64}, .is_global = 1, .port_num = 1};
    if (wrong)
        attr.grh.dgid.raw[15] = 0xfe;
    struct ibv_ah *way = ibv_create_ah(a.pd, &attr);
    CHECK(way);
    CHECK(!POST_RECV(&b, 1, MESSAGE + HEADER));
    send_to(&a, way, b.qp->qp_num); /* HERE */
    if (!wrong)
        expect(&b, IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_ah(way));
    close_both(&a, &b);
    return 0;
}
