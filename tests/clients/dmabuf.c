/* Regions of a dma-buf, here a file in memory: every byte between two processes, what is refused, and
 * what is withdrawn. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "peers.h"

enum { PAGE = 4096, SIZE = 16 * PAGE, OFFSET = PAGE + 24, BYTES = SIZE - 2 * PAGE };

/* Where work names the first byte: at the same place of its page. */
static const uint64_t IOVA = (3ull << 40) + 24;

static int export(size_t length)
{
    int fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && !ftruncate(fd, (off_t)length));
    return fd;
}

/* A dma-buf of the kernel, where there are some. */
static int export_real(void)
{
    struct udmabuf_create create = {.memfd = export(SIZE), .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE};
    int kernel = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (kernel < 0)
        return (int)create.memfd;
    CHECK(!fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
    int fd = ioctl(kernel, UDMABUF_CREATE, &create);
    CHECK(fd >= 0 && !close(kernel) && !close((int)create.memfd));
    return fd;
}

static char *map(int fd)
{
    char *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(bytes != MAP_FAILED);
    return bytes;
}

static char pattern(size_t at, int round)
{
    return (char)(at * 7 + at / 251 + (size_t)round * 31);
}

static void fill(char *bytes, int round)
{
    for (size_t at = 0; at < BYTES; at++)
        bytes[at] = pattern(at, round);
}

/* All bytes of the region, and none around it. */
static void check(const char *whole, int round)
{
    for (size_t at = 0; at < SIZE; at++) {
        int is_in = at >= OFFSET && at < OFFSET + BYTES;
        CHECK(whole[at] == (is_in ? pattern(at - OFFSET, round) : 0));
    }
}

static void is_refused(struct ibv_mr *made, int value)
{
    CHECK(!made && errno == value);
}

static void refusals(void)
{
    struct end end;
    open_end(&end, 0, 0);
    int fd = export(SIZE), ends[2];
    CHECK(!pipe(ends));
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, -1, 0), EBADF);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, 1000, 0), EBADF);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, ends[0], 0), EINVAL);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, SIZE + 1, 0, fd, 0), EINVAL);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 24, PAGE, 0, fd, 0), EINVAL);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, fd, IBV_ACCESS_ON_DEMAND), EINVAL);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, fd, IBV_ACCESS_MW_BIND), EINVAL);

    /* A file that is open for reading only can be read. */
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FILE *file = fopen(path, "r");
    CHECK(file);
    is_refused(ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, fileno(file), IBV_ACCESS_LOCAL_WRITE), EACCES);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(end.pd, 0, PAGE, 0, fileno(file), IBV_ACCESS_REMOTE_READ);
    CHECK(mr && !ibv_dereg_mr(mr) && !fclose(file));

    CHECK((mr = ibv_reg_dmabuf_mr(end.pd, OFFSET, BYTES, IOVA, fd, ALL_RIGHTS)));
    CHECK(mr->addr == (void *)(uintptr_t)OFFSET && mr->length == BYTES && mr->pd == end.pd);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
    CHECK(errno == EINVAL && ibv_dealloc_pd(end.pd) == EBUSY && !ibv_dereg_mr(mr));
    CHECK(ibv_dereg_mr(mr) == EINVAL);
    CHECK(!close(fd) && !close(ends[0]) && !close(ends[1]));
    close_end(&end);
}

static void post(struct end *end, enum ibv_wr_opcode opcode, struct ibv_mr *mr, uint32_t rkey)
{
    struct ibv_sge sge = {IOVA, BYTES, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 2,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = IOVA;
    wr.wr.rdma.rkey = rkey;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
}

static void post_into(struct end *end, struct ibv_mr *mr)
{
    struct ibv_sge sge = {IOVA, BYTES, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

/* The first process posts; the second one has what it names. */
static void talk(int is_first, int peer)
{
    struct end end;
    open_end(&end, 0, 0);
    int fd = export_real();
    char *whole = map(fd);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(end.pd, OFFSET, BYTES, IOVA, fd, ALL_RIGHTS);
    CHECK(mr && !close(fd));
    uint32_t rkey = connect_to_peer(&end, peer, mr->rkey);
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    for (int round = 0; round < 3; round++) {
        int reads = opcodes[round] == IBV_WR_RDMA_READ;
        fill(whole + OFFSET, is_first != reads ? round + 1 : 77);
        if (!is_first && opcodes[round] == IBV_WR_SEND)
            post_into(&end, mr);
        meet(peer);
        if (is_first) {
            post(&end, opcodes[round], mr, rkey);
            CHECK(complete(&end).status == IBV_WC_SUCCESS);
        } else if (opcodes[round] == IBV_WR_SEND) {
            CHECK(complete(&end).status == IBV_WC_SUCCESS);
        }
        meet(peer);
        check(whole, round + 1);
        meet(peer);
    }
    CHECK(!ibv_dereg_mr(mr) && !munmap(whole, SIZE));
    close_end(&end);
}

/* Work on memory that its exporter has withdrawn. */
static void withdrawals(void)
{
    for (int is_local = 0; is_local < 2; is_local++) {
        struct end a, b;
        open_end(&a, 0, 0);
        open_end(&b, 1, 0);
        connect_ends(&a, &b);
        int fd = export(SIZE);
        struct end *owner = is_local ? &a : &b;
        struct ibv_mr *mr = ibv_reg_dmabuf_mr(owner->pd, OFFSET, BYTES, IOVA, fd, ALL_RIGHTS);
        CHECK(mr && !ftruncate(fd, PAGE));
        struct ibv_sge own = {(uintptr_t)a.memory, 8, a.mr->lkey}, gone = {IOVA, 8, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = is_local ? &gone : &own,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        wr.wr.rdma.remote_addr = is_local ? (uintptr_t)b.memory : IOVA;
        wr.wr.rdma.rkey = is_local ? b.mr->rkey : mr->rkey;
        CHECK(!ibv_post_send(a.qp, &wr, &bad));
        CHECK(complete(&a).status == (is_local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR));
        CHECK(!ibv_dereg_mr(mr) && !close(fd));
        close_end(&a);
        close_end(&b);
    }
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    talk(child, peer);
    end_peer(child, peer);
    if (!child)
        return 0;
    refusals();
    withdrawals();
    return 0;
}
