/* What came to libibverbs and librdmacm after the headers of this machine: buffers, regions by
 * attributes, speeds, names that an id resolves, events of a program's own, and sets of
 * descriptors. */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

struct ibv_buf;

struct mr_attr {
    size_t length;
    int access;
    uint64_t comp_mask;
    uint64_t iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    void *dmah;
    struct ibv_buf *buf;
};

enum { OF_IOVA = 1, OF_ADDR = 2, OF_FD = 4, OF_FD_OFFSET = 8, OF_DMAH = 16, OF_BUF = 32 };
enum { ALLOW_UNPROTECTED = 4 };
enum { ADDRINFO_RESOLVED = 16, EVENT_OF_PROGRAM = 18, RAI_OF_SA = 16, RAI_OF_DNS = 32 };

static void *(*alloc_buf)(struct ibv_pd *, size_t, struct ibv_buf **);
static void (*free_buf)(struct ibv_buf *);
static struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *, struct ibv_buf *, void *, size_t, int);
static int (*export_buf)(struct ibv_buf *);
static struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct mr_attr *);
static int (*query_port_speed)(struct ibv_context *, uint32_t, uint64_t *);
static int (*query_caps)(struct ibv_context *, void *, size_t);
static void *(*create_comp_cntr)(struct ibv_context *, void *);
static int (*attach_comp_cntr)(struct ibv_qp *, void *, void *);
static int (*resolve_addrinfo)(struct rdma_cm_id *, const char *, const char *, const struct rdma_addrinfo *);
static int (*query_addrinfo)(struct rdma_cm_id *, struct rdma_addrinfo **);
static int (*write_cm_event)(struct rdma_cm_id *, int, int, uint64_t);
static int (*repoll_create)(int);
static int (*repoll_ctl)(int, int, int, struct epoll_event *);
static int (*repoll_wait)(int, struct epoll_event *, int, int);
static int (*close_repoll)(int);

static struct end a, b;

static void load(void *function, const char *library, const char *name, const char *version)
{
    void *opened = dlopen(library, RTLD_NOW);
    CHECK(opened);
    void *symbol = dlvsym(opened, name, version);
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(function, &symbol, sizeof symbol);
}

static void load_all(void)
{
    const char *verbs = "libibverbs.so.1", *cm = "librdmacm.so.1";
    load(&reg_mr_ex, verbs, "ibv_reg_mr_ex", "IBVERBS_1.15");
    load(&query_port_speed, verbs, "ibv_query_port_speed", "IBVERBS_1.16");
    load(&alloc_buf, verbs, "ibv_alloc_buf", "IBVERBS_1.17");
    load(&free_buf, verbs, "ibv_free_buf", "IBVERBS_1.17");
    load(&reg_buf_mr, verbs, "ibv_reg_buf_mr", "IBVERBS_1.17");
    load(&export_buf, verbs, "ibv_export_buf_dmabuf_fd", "IBVERBS_1.18");
    load(&query_caps, verbs, "_ibv_query_comp_cntr_caps", "IBVERBS_1.18");
    load(&create_comp_cntr, verbs, "ibv_create_comp_cntr", "IBVERBS_1.18");
    load(&attach_comp_cntr, verbs, "ibv_qp_attach_comp_cntr", "IBVERBS_1.18");
    load(&resolve_addrinfo, cm, "rdma_resolve_addrinfo", "RDMACM_1.4");
    load(&query_addrinfo, cm, "rdma_query_addrinfo", "RDMACM_1.4");
    load(&write_cm_event, cm, "rdma_write_cm_event", "RDMACM_1.4");
    load(&repoll_create, cm, "repoll_create", "RDMACM_1.5");
    load(&repoll_ctl, cm, "repoll_ctl", "RDMACM_1.5");
    load(&repoll_wait, cm, "repoll_wait", "RDMACM_1.5");
    load(&close_repoll, cm, "rclose", "RDMACM_1.0");
}

/* Sends what is in memory of one end to that of the other. */
static void carry(struct ibv_mr *from, char *bytes, struct ibv_mr *to, char *place)
{
    struct ibv_sge there = {(uintptr_t)place, 64, to->lkey}, here = {(uintptr_t)bytes, 64, from->lkey};
    struct ibv_recv_wr receive = {.sg_list = &there, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &here, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    struct ibv_wc wc;
    memset(bytes, 0x5a, 64);
    memset(place, 0, 64);
    CHECK(!ibv_post_recv(b.qp, &receive, &bad_receive));
    CHECK(!ibv_post_send(a.qp, &send, &bad_send));
    CHECK(complete(&a).status == IBV_WC_SUCCESS);
    wc = complete(&b);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 64);
    CHECK(!memcmp(bytes, place, 64));
}

static int refused(const void *made)
{
    return made ? 0 : errno;
}

static void buffers(void)
{
    struct ibv_buf *buf = NULL, *other = NULL;
    const size_t size = 3 * LENGTH;
    char *bytes = alloc_buf(a.pd, size, &buf), *place;
    CHECK(bytes && buf && (uintptr_t)bytes % 4096 == 0);
    memset(bytes, 1, size);
    struct ibv_mr *whole = reg_buf_mr(a.pd, buf, bytes, size, ALL_RIGHTS);
    CHECK(whole && whole->addr == bytes && whole->length == size && whole->pd == a.pd);
    struct ibv_mr *part = reg_buf_mr(a.pd, buf, bytes + 100, LENGTH, 0);
    CHECK(part && part->addr == bytes + 100 && part->length == LENGTH);
    CHECK((place = alloc_buf(b.pd, LENGTH, &other)));
    struct ibv_mr *there = reg_buf_mr(b.pd, other, place, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    CHECK(there);
    carry(whole, bytes + size - 64, there, place);
    carry(part, bytes + 100, there, place + LENGTH - 64);

    CHECK(refused(reg_buf_mr(b.pd, buf, bytes, size, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, buf, bytes - 1, LENGTH, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, buf, bytes + 1, size, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, buf, bytes, SIZE_MAX, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, NULL, bytes, size, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(NULL, buf, bytes, size, 0)) == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, buf, bytes, size, IBV_ACCESS_REMOTE_WRITE)) == EINVAL);
    CHECK(refused(alloc_buf(a.pd, LENGTH, NULL)) == EINVAL);
    CHECK(refused(alloc_buf(NULL, LENGTH, &buf)) == EINVAL);
#ifndef __SANITIZE_ADDRESS__ /* It ends a program that asks for this much. */
    CHECK(refused(alloc_buf(a.pd, SIZE_MAX / 2, &buf)) == ENOMEM);
#endif
    CHECK(export_buf(buf) == -1 && errno == ENODATA);

    /* A parent domain is another domain than the one it stands for. */
    struct ibv_parent_domain_init_attr init = {.pd = a.pd, .comp_mask = ALLOW_UNPROTECTED};
    struct ibv_pd *parent = ibv_alloc_parent_domain(a.context, &init);
    struct ibv_buf *of_parent;
    void *memory = alloc_buf(parent, LENGTH, &of_parent);
    CHECK(memory && refused(reg_buf_mr(a.pd, of_parent, memory, LENGTH, 0)) == EINVAL);
    struct ibv_mr *in_parent = reg_buf_mr(parent, of_parent, memory, LENGTH, 0);
    CHECK(in_parent && !ibv_dereg_mr(in_parent));
    free_buf(of_parent);
    CHECK(!ibv_dealloc_pd(parent));

    CHECK(!ibv_dereg_mr(whole) && !ibv_dereg_mr(part) && !ibv_dereg_mr(there));
    free_buf(buf);
    free_buf(other);
    /* Such a call crashes with the real library. */
    free_buf(buf);
    CHECK(export_buf(buf) == -1 && errno == EINVAL);
    CHECK(refused(reg_buf_mr(a.pd, buf, bytes, size, 0)) == EINVAL);
}

static int registers(struct mr_attr attr)
{
    struct ibv_mr *mr = reg_mr_ex(a.pd, &attr);
    if (!mr)
        return errno;
    CHECK(mr->addr == attr.addr && mr->length == attr.length && mr->pd == a.pd);
    CHECK(!ibv_dereg_mr(mr));
    return 0;
}

static void regions(void)
{
    struct ibv_buf *buf;
    char *bytes = alloc_buf(a.pd, LENGTH, &buf);
    CHECK(bytes);
    struct mr_attr attr = {.length = LENGTH, .access = ALL_RIGHTS, .addr = bytes, .fd = -1, .buf = buf};
    const struct {
        uint64_t comp_mask;
        int result;
    } masks[] = {
        {OF_ADDR, 0},
        {OF_ADDR | OF_IOVA, 0},
        {OF_ADDR | OF_BUF, 0},
        {0, EINVAL},
        {OF_BUF, EINVAL},
        {OF_IOVA, EINVAL},
        {OF_ADDR | OF_FD, EINVAL},
        {OF_ADDR | OF_FD_OFFSET, EINVAL},
        {OF_ADDR | OF_BUF | OF_FD, EINVAL},
        {OF_FD | OF_FD_OFFSET | OF_IOVA, EBADF},
        {OF_FD | OF_FD_OFFSET, EINVAL},
        {OF_FD | OF_IOVA, EINVAL},
        {OF_ADDR | OF_DMAH, EOPNOTSUPP},
        {OF_ADDR | 1ull << 40, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof masks / sizeof *masks; ++i) {
        attr.comp_mask = masks[i].comp_mask;
        int result = registers(attr);
        if (result != masks[i].result) {
            fprintf(stderr, "comp_mask %#llx: %d\n", (unsigned long long)attr.comp_mask, result);
            exit(1);
        }
    }
    attr.comp_mask = OF_ADDR | OF_BUF;
    attr.length = LENGTH + 1;
    CHECK(registers(attr) == EINVAL);
    CHECK(refused(reg_mr_ex(a.pd, NULL)) == EINVAL);
    CHECK(refused(reg_mr_ex(NULL, &attr)) == EINVAL);

    /* A file in memory stands for a dma-buf. */
    struct mr_attr of_file = {LENGTH, ALL_RIGHTS, OF_FD | OF_FD_OFFSET | OF_IOVA, 0, NULL, -1, LENGTH, NULL, NULL};
    of_file.fd = memfd_create("dmabuf", 0);
    CHECK(of_file.fd >= 0 && !ftruncate(of_file.fd, 2 * LENGTH));
    struct ibv_mr *file = reg_mr_ex(a.pd, &of_file);
    CHECK(file && file->addr == (void *)LENGTH && file->length == LENGTH && !ibv_dereg_mr(file));
    CHECK(!close(of_file.fd));

    /* Peers name such a region by the address that it was given. */
    struct mr_attr shifted = {LENGTH, ALL_RIGHTS, OF_ADDR | OF_IOVA, 0x1000, bytes, -1, 0, NULL, NULL};
    struct ibv_mr *mr = reg_mr_ex(a.pd, &shifted);
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)b.memory, 8, b.mr->lkey};
    struct ibv_send_wr write = {.sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.rdma = {0x1000 + 16, mr->rkey}},
                       *bad;
    memcpy(b.memory, "written.", 8);
    CHECK(!ibv_post_send(b.qp, &write, &bad));
    CHECK(complete(&b).status == IBV_WC_SUCCESS && !memcmp(bytes + 16, "written.", 8));
    CHECK(!ibv_dereg_mr(mr));
    free_buf(buf);
}

static void limits(void)
{
    uint64_t speed = 0, caps[3] = {1, 2, 3};
    CHECK(!query_port_speed(a.context, 1, &speed) && speed == 1000);
    CHECK(query_port_speed(a.context, 2, &speed) == EINVAL);
    CHECK(query_port_speed(a.context, 257, &speed) == EINVAL);
    CHECK(query_port_speed(a.context, 1, NULL) == EINVAL);
    CHECK(query_port_speed(NULL, 1, &speed) == EINVAL);
    /* No more is written than the caller has room for. */
    CHECK(!query_caps(a.context, caps, 16) && !caps[0] && !caps[1] && caps[2] == 3);
    CHECK(query_caps(a.context, NULL, 16) == EINVAL);
    CHECK(refused(create_comp_cntr(a.context, caps)) == EOPNOTSUPP);
    CHECK(attach_comp_cntr(a.qp, caps, caps) == EOPNOTSUPP);
    CHECK(mult_to_ibv_rate(40) == IBV_RATE_MAX && mult_to_ibv_rate(16) == IBV_RATE_40_GBPS);
    CHECK(mbps_to_ibv_rate(103125) == IBV_RATE_100_GBPS && mbps_to_ibv_rate(1) == IBV_RATE_MAX);
}

static void expect(struct rdma_event_channel *channel, struct rdma_cm_id *id, int kind, int status, uint64_t arg)
{
    struct rdma_cm_event *event;
    uint64_t told;
    CHECK(!rdma_get_cm_event(channel, &event));
    memcpy(&told, &event->param, sizeof told);
    CHECK(event->id == id && !event->listen_id && (int)event->event == kind && event->status == status);
    CHECK(told == arg);
    CHECK(!rdma_ack_cm_event(event));
}

static void names(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id, *sync;
    struct rdma_addrinfo *info = NULL, hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_NUMERICHOST};
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(query_addrinfo(id, &info) == -1 && errno == ENOENT);
    CHECK(!resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
    CHECK(resolve_addrinfo(id, "127.0.0.1", "7471", NULL) == -1 && errno == EBUSY);
    expect(channel, id, ADDRINFO_RESOLVED, 0, 0);
    CHECK(query_addrinfo(id, NULL) == -1 && errno == EINVAL);
    CHECK(!query_addrinfo(id, &info) && info && info->ai_port_space == RDMA_PS_TCP);
    const struct sockaddr_in *dst = (void *)info->ai_dst_addr;
    CHECK(dst->sin_port == htons(7471) && dst->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    rdma_freeaddrinfo(info);
    CHECK(query_addrinfo(id, &info) == -1 && errno == ENOENT);

    /* A failure leaves nothing behind. */
    CHECK(resolve_addrinfo(id, "no address", "7471", &hints) == -1 && errno == ENOENT);
    CHECK(resolve_addrinfo(id, NULL, NULL, NULL) == -1 && errno == EINVAL);
    hints.ai_flags = RAI_OF_SA;
    CHECK(resolve_addrinfo(id, NULL, "service", &hints) == -1 && errno == EOPNOTSUPP);
    hints.ai_flags = RAI_OF_SA | RAI_OF_DNS;
    CHECK(resolve_addrinfo(id, NULL, "service", &hints) == -1 && errno == EOPNOTSUPP);
    CHECK(rdma_getaddrinfo(NULL, "service", &hints, &info) == -1 && errno == EOPNOTSUPP);
    hints.ai_flags = RAI_PASSIVE | RAI_OF_DNS;
    CHECK(!resolve_addrinfo(id, "127.0.0.1", "7471", &hints));
    expect(channel, id, ADDRINFO_RESOLVED, 0, 0);
    CHECK(resolve_addrinfo(NULL, "127.0.0.1", "7471", NULL) == -1 && errno == EINVAL);

    /* One that waits by itself has the event when the call is over. */
    CHECK(!rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
    CHECK(!resolve_addrinfo(sync, "127.0.0.1", "7471", NULL));
    CHECK(sync->event && (int)sync->event->event == ADDRINFO_RESOLVED);
    CHECK(!query_addrinfo(sync, &info));
    rdma_freeaddrinfo(info);
    CHECK(!rdma_destroy_id(sync));
    CHECK(!strcmp(rdma_event_str((enum rdma_cm_event_type)ADDRINFO_RESOLVED), "RDMA_CM_EVENT_ADDRINFO_RESOLVED"));
    /* What was not queried goes with the id. */
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
}

static void *writes(void *id)
{
    CHECK(!write_cm_event(id, EVENT_OF_PROGRAM, -7, 0x123456789abcdef0));
    return NULL;
}

static void events(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    pthread_t thread;
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_UDP));
    CHECK(!pthread_create(&thread, NULL, writes, id));
    expect(channel, id, EVENT_OF_PROGRAM, -7, 0x123456789abcdef0);
    CHECK(!pthread_join(thread, NULL));
    for (uint64_t i = 0; i < 3; ++i)
        CHECK(!write_cm_event(id, EVENT_OF_PROGRAM, 0, i));
    for (uint64_t i = 0; i < 3; ++i)
        expect(channel, id, EVENT_OF_PROGRAM, 0, i);
    CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
    CHECK(write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0) == -1 && errno == EINVAL);
    CHECK(write_cm_event(id, ADDRINFO_RESOLVED, 0, 0) == -1 && errno == EINVAL);
    CHECK(write_cm_event(NULL, EVENT_OF_PROGRAM, 0, 0) == -1 && errno == EINVAL);
    /* What was not read goes with the id. */
    CHECK(!write_cm_event(id, EVENT_OF_PROGRAM, 0, 0));
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
}

static void sets(void)
{
    int set = repoll_create(O_CLOEXEC), ends[2];
    struct epoll_event want = {.events = EPOLLIN, .data.u64 = 42}, got[2];
    CHECK(set >= 0 && !pipe(ends));
    CHECK(!repoll_ctl(set, EPOLL_CTL_ADD, ends[0], &want));
    CHECK(repoll_ctl(set, EPOLL_CTL_ADD, ends[0], &want) == EEXIST);
    CHECK(repoll_wait(set, got, 2, 0) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(repoll_wait(set, got, 2, -1) == 1 && got[0].data.u64 == 42 && got[0].events == EPOLLIN);
    CHECK(!repoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL));
    CHECK(repoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL) == ENOENT);
    CHECK(repoll_ctl(set, EPOLL_CTL_ADD, -1, &want) == EBADF);
    CHECK(repoll_ctl(ends[0], EPOLL_CTL_ADD, ends[1], &want) == EINVAL);
    CHECK(repoll_wait(ends[0], got, 2, 0) == -1 && errno == EINVAL);
    CHECK(!close_repoll(set) && fcntl(set, F_GETFD) == -1);
    CHECK(close_repoll(set) == -1);
    CHECK(!close(ends[0]) && !close(ends[1]));
}

int main(void)
{
    load_all();
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    buffers();
    regions();
    limits();
    names();
    events();
    sets();
    close_end(&a);
    close_end(&b);
    return 0;
}
