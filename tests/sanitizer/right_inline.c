/* Inline sends: their memory needs no region, and is free as soon as they are posted. */
#include "two.h"

int main(void)
{
    struct end a, b;
    start_both(&a, &b);
    for (int i = 0; i < 4; ++i) {
        char text[MESSAGE];
        snprintf(text, sizeof text, "message %d", i);
        struct ibv_sge sge = {(uintptr_t)text, sizeof text, 0};
        struct ibv_send_wr wr = {.wr_id = i,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
                           *bad;
        CHECK(!POST_RECV(&b, i, MESSAGE));
        CHECK(!ibv_post_send(a.qp, &wr, &bad));
        memset(text, 0, sizeof text);
        expect(&a, IBV_WC_SUCCESS);
        expect(&b, IBV_WC_SUCCESS);
        snprintf(text, sizeof text, "message %d", i);
        CHECK(!strcmp(b.memory, text));
    }
    close_both(&a, &b);
    return 0;
}
