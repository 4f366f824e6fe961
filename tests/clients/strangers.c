/* Two processes on private fabrics: each tries to reach the other, and is told that nobody answers.
 *
 * verbsim exec --fabric private */
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct address {
    union ibv_gid gid;
    uint32_t qp_num;
};

enum { SAME = 77 };

/* SAME if the two have drawn the same number, which one in 4,095 do. */
static int meet(int in, int out)
{
    struct end end;
    open_end(&end, 0, 0);
    struct address own, other;
    memset(&own, 0, sizeof own);
    own.gid = gid_of(&end);
    own.qp_num = end.qp->qp_num;
    CHECK(write(out, &own, sizeof own) == sizeof own);
    CHECK(read(in, &other, sizeof other) == sizeof other);
    if (own.qp_num == other.qp_num) {
        close_end(&end);
        return SAME;
    }
    to_init(&end);
    to_rtr(&end, other.gid, other.qp_num);
    to_rts(&end, 10, 2);
    post_recv(&end, 1, 8);
    post_send(&end, 2, 8, 0);
    struct ibv_wc wc = complete(&end);
    CHECK(wc.wr_id == 2 && wc.status == IBV_WC_RETRY_EXC_ERR && wc.qp_num == own.qp_num);
    close_end(&end);
    return 0;
}

int main(void)
{
    int there[2], back[2], met, status;
    CHECK(!pipe(there) && !pipe(back));
    do {
        pid_t child = fork();
        if (!child)
            return meet(there[0], back[1]);
        met = meet(back[0], there[1]);
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == met);
    } while (met == SAME);
    return met;
}
