/* To RTR with an address that no device has. */
#include <arpa/inet.h>

#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    struct ibv_qp_attr attr = rtr_to(&b);
    if (wrong)
        CHECK(inet_pton(AF_INET6, "::ffff:192.0.2.77", &attr.ah_attr.grh.dgid) == 1);
    int result = ibv_modify_qp(a.qp, &attr, RTR_MASK); /* HERE */
    CHECK(result == (wrong ? ETIMEDOUT : 0));
    close_both(&a, &b);
    return 0;
}
