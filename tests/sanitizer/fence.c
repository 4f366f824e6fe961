/* Sends bytes that a read before it brings, without a fence: the read may still be under way. */
#include "two.h"

/* Posts an operation of 8 bytes at `offset` of the end's memory. */
#define POST(end, number, operation, offset, flags, peer)                                          \
    ibv_post_send((end)->qp,                                                                       \
                  &(struct ibv_send_wr){                                                           \
                      .wr_id = (number),                                                           \
                      .sg_list = &(struct ibv_sge){(uintptr_t)(end)->memory + (offset), 8,         \
                                                   (end)->mr->lkey},                               \
                      .num_sge = 1,                                                                \
                      .opcode = (operation),                                                       \
                      .send_flags = IBV_SEND_SIGNALED | (flags),                                   \
                      .wr.rdma = {(uintptr_t)(peer)->memory, (peer)->mr->rkey}},                   \
                  &(struct ibv_send_wr *){NULL})

static void finish(struct end *a, struct end *b, int count)
{
    for (int i = 0; i < count; i++)
        expect(a, IBV_WC_SUCCESS);
    expect(b, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);

    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST(&a, 2, IBV_WR_RDMA_READ, 64, 0, &b));
    CHECK(!POST(&a, 3, IBV_WR_SEND, 128, 0, &b)); /* Other bytes. */
    finish(&a, &b, 2);

    CHECK(!POST_RECV(&b, 4, MESSAGE));
    CHECK(!POST(&a, 5, IBV_WR_RDMA_READ, 64, 0, &b));
    CHECK(!POST(&a, 6, IBV_WR_SEND, 68, wrong ? 0 : IBV_SEND_FENCE, &b)); /* HERE */
    finish(&a, &b, 2);

    /* A send behind a fenced one starts later still. */
    CHECK(!POST_RECV(&b, 10, MESSAGE));
    CHECK(!POST(&a, 11, IBV_WR_RDMA_READ, 64, 0, &b));
    CHECK(!POST(&a, 12, IBV_WR_RDMA_WRITE, 64, IBV_SEND_FENCE, &b));
    CHECK(!POST(&a, 13, IBV_WR_SEND, 64, 0, &b));
    finish(&a, &b, 3);

    /* A fence does not help inline data, which is taken at the post. */
    CHECK(!POST_RECV(&b, 7, MESSAGE));
    CHECK(!POST(&a, 8, IBV_WR_RDMA_READ, 64, 0, &b));
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    CHECK(!POST(&a, 9, IBV_WR_SEND, 64, IBV_SEND_INLINE | IBV_SEND_FENCE, &b)); /* HERE */
    finish(&a, &b, wrong ? 2 : 1);
    close_both(&a, &b);
    return 0;
}
