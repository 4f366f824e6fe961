/* Numbers that meet those of another process by mistake differ from process to process, though the id is
 * the same, as that of the first process of each container: the program runs itself again and again. */
#include <unistd.h>

#include "bench.h"

int main(int argc, char **argv)
{
    struct end end;
    open_end(&end, 0, 0);
    uint32_t qp_num = end.qp->qp_num, rkey = end.mr->rkey, lkey = end.mr->lkey;
    close_end(&end);
    CHECK(lkey && lkey != rkey);
    int run = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 1) {
        uint32_t qp_num_before = strtoul(argv[2], NULL, 0), rkey_before = strtoul(argv[3], NULL, 0);
        if (run < 8) {
            CHECK(rkey != rkey_before);
            /* One in 4,095 is the same. */
            if (qp_num != qp_num_before)
                run = 8;
            CHECK(run != 7);
        } else if (run == 10) {
            /* A seed that was asked for decides the keys. */
            CHECK(rkey == rkey_before);
            return 0;
        }
    }
    if (run == 8)
        CHECK(!setenv("VERBSIM_SEED", "7", 1));
    char texts[3][16];
    snprintf(texts[0], sizeof texts[0], "%d", run + 1);
    snprintf(texts[1], sizeof texts[1], "%u", qp_num);
    snprintf(texts[2], sizeof texts[2], "%u", rkey);
    execl(argv[0], argv[0], texts[0], texts[1], texts[2], NULL);
    CHECK(!"exec");
}
