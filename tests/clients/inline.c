/* A list of inline sends that is longer than the queue: those that are taken have their own bytes. */
#include "bench.h"

enum { EACH = 32 };

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init));
    unsigned taken = attr.cap.max_send_wr, all = taken + 2;
    CHECK(taken * EACH <= LENGTH);

    char(*texts)[EACH] = calloc(all, sizeof *texts);
    struct ibv_sge *sges = calloc(all, sizeof *sges);
    struct ibv_send_wr *list = calloc(all, sizeof *list), *bad;
    CHECK(texts && sges && list);
    for (unsigned i = 0; i < all; ++i) {
        snprintf(texts[i], sizeof texts[i], "message %u", i);
        sges[i] = (struct ibv_sge){(uintptr_t)texts[i], sizeof texts[i], 0};
        list[i] = (struct ibv_send_wr){
            .wr_id = i,
            .next = i + 1 < all ? &list[i + 1] : NULL,
            .sg_list = &sges[i],
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
            .wr.rdma = {(uintptr_t)b.memory + EACH * i, b.mr->rkey},
        };
    }
    CHECK(ibv_post_send(a.qp, list, &bad) == ENOMEM && bad == &list[taken]);
    for (unsigned i = 0; i < taken; ++i) {
        CHECK(complete(&a).status == IBV_WC_SUCCESS);
        CHECK(!strcmp(b.memory + EACH * i, texts[i]));
    }
    free(texts);
    free(sges);
    free(list);
    close_end(&a);
    close_end(&b);
    return 0;
}
