/* A receive of more entries than the queue pair has room for in one. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_sge list[3];
    for (int at = 0; at < 3; at++)
        list[at] = (struct ibv_sge){.addr = (uintptr_t)b.memory, .length = 1, .lkey = b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = list, .num_sge = wrong ? 3 : 1}, *bad;
    CHECK((ibv_post_recv(b.qp, &wr, &bad) != 0) == wrong); /* HERE */
    close_both(&a, &b);
    return 0;
}
