/*
 * A libibverbs between the suite's hardware backend and the drop-in, which makes the simulated
 * device look like another NIC. NICSHIM has words, separated by commas:
 *
 *     unknown          the driver of the device is not known
 *     WHAT=ERRNO       the device lacks this, such as uc or resize_cq, and refuses it so
 *     max_NAME=N       a limit that the device reports, whether it has that much or not
 *     gid_places=N     the table of GIDs has this number of places: those at its end are empty
 *     first_gid_is_empty
 *     down=PORT        this port is down
 *     rounded          sizes of queue pairs are rounded up
 *     locked=KIB       a region beyond this much registered memory is refused
 *     slow=MS          a verb that is not on the fast path takes this time
 *     stray            each context has events of its port that no program causes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header calls other functions by these names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* What is newer than the headers of some systems. */
enum { WR_FLUSH = 14, WR_ATOMIC_WRITE = 15 };
#define QP_EX_FLUSH (1ull << 11)
#define QP_EX_ATOMIC_WRITE (1ull << 12)
#define ACCESS_FLUSH (3 << 8)
#define CAP_FLUSH (3ull << 38)
#define CAP_ATOMIC_WRITE (1ull << 40)

/* The number behind a word, 1 if there is none, 0 without the word. */
static long word(const char *name)
{
    static const char *words;
    if (!words) {
        const char *given = getenv("NICSHIM");
        words = given ? given : "";
    }
    size_t length = strlen(name);
    for (const char *at = words; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, name, length)) {
            char end = at[length];
            if (end == '=') return strtol(at + length + 1, NULL, 10);
            if (!end || end == ',') return 1;
        }
    }
    return 0;
}

static void slow(void) { usleep((useconds_t)word("slow") * 1000); }

/* The function of the drop-in. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A verb that the device may lack, and one that takes its time. */
#define REFUSE(what, otherwise) do { \
        slow(); \
        if (word(what)) { errno = word(what); return otherwise; } \
    } while (0)

/* What the device says */

static const struct { const char *name; size_t offset; } LIMITS[] = {
#define LIMIT(name) { #name, offsetof(struct ibv_device_attr, name) }
    LIMIT(max_qp), LIMIT(max_qp_wr), LIMIT(max_sge), LIMIT(max_cq), LIMIT(max_cqe), LIMIT(max_mr),
    LIMIT(max_pd), LIMIT(max_mw), LIMIT(max_ah), LIMIT(max_srq), LIMIT(max_srq_wr),
    LIMIT(max_srq_sge), LIMIT(max_mcast_grp), LIMIT(max_mcast_qp_attach),
};

static void change_attr(struct ibv_device_attr *attr)
{
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++)
        if (word(LIMITS[i].name)) *(int *)((char *)attr + LIMITS[i].offset) = word(LIMITS[i].name);
    if (word("xrc")) attr->device_cap_flags &= ~IBV_DEVICE_XRC;
    if (word("srq_resize")) attr->device_cap_flags &= ~IBV_DEVICE_SRQ_RESIZE;
    if (word("mw_type_1")) attr->device_cap_flags &= ~IBV_DEVICE_MEM_WINDOW;
    if (word("mw_type_2")) attr->device_cap_flags &= ~IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    if (word("mw_type_1") && word("mw_type_2")) attr->max_mw = 0;
    if (word("atomics")) attr->atomic_cap = IBV_ATOMIC_NONE;
    if (word("srq")) attr->max_srq = attr->max_srq_wr = attr->max_srq_sge = 0;
    if (word("mcast")) {
        attr->max_mcast_grp = attr->max_mcast_qp_attach = 0;
        attr->max_total_mcast_qp_attach = 0;
    }
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int bad = REAL(ibv_query_device)(context, attr);
    if (!bad) change_attr(attr);
    return bad;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = REAL(ibv_get_device_list)(count);
    for (int i = 0; word("unknown") && list && list[i]; i++)
        snprintf(list[i]->ibdev_path, sizeof list[i]->ibdev_path,
                 "/sys/devices/pci0000:00/0000:00:%02x.0/infiniband/%s", i, list[i]->name);
    return list;
}

/* GIDs */

/* 1 if the place is one of those that only the shim has, or the empty first. */
static int is_empty(struct ibv_context *context, uint32_t port, uint32_t index)
{
    union ibv_gid gid;
    if (REAL(ibv_query_gid)(context, port, 0, &gid)) return 0;
    if (word("first_gid_is_empty") && index == 0) return 1;
    return index < (uint32_t)word("gid_places") && REAL(ibv_query_gid)(context, port, index, &gid);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (index < 0 || !is_empty(context, port, index))
        return REAL(ibv_query_gid)(context, port, index, gid);
    memset(gid, 0, sizeof *gid);
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    if (is_empty(context, port, index)) return ENODATA;
    return REAL(_ibv_query_gid_ex)(context, port, index, entry, flags, size);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t most, uint32_t flags, size_t size)
{
    struct ibv_gid_entry all[1024];
    /* Wrong arguments are refused there. */
    if (flags || size != sizeof *all)
        return REAL(_ibv_query_gid_table)(context, entries, most, flags, size);
    ssize_t count = REAL(_ibv_query_gid_table)(context, all, 1024, flags, sizeof *all);
    ssize_t kept = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (is_empty(context, all[i].port_num, all[i].gid_index)) continue;
        if ((size_t)kept == most) return -EINVAL;
        entries[kept++] = all[i];
    }
    return count < 0 ? count : kept;
}

static int names_empty_gid(const struct ibv_ah_attr *way)
{
    return way->is_global && word("first_gid_is_empty") && way->grh.sgid_index == 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    slow();
    if (!names_empty_gid(attr)) return REAL(ibv_create_ah)(pd, attr);
    errno = EINVAL;
    return NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    slow();
    if (mask & IBV_QP_AV && names_empty_gid(&attr->ah_attr)) return EINVAL;
    return REAL(ibv_modify_qp)(qp, attr, mask);
}

/* Queue pairs */

/* The number by which such a queue pair is refused, or 0. */
static int refuses_qp(enum ibv_qp_type type, uint64_t ops)
{
    const struct { uint64_t ops; const char *what; } WITH[] = {
        { ~0ull, "batches" },
        { IBV_QP_EX_WITH_BIND_MW, "bind_mw" },
        { IBV_QP_EX_WITH_LOCAL_INV, "local_inv" },
        { IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, "atomics" },
        { QP_EX_FLUSH, "flush" },
        { QP_EX_ATOMIC_WRITE, "atomic_write" },
    };
    for (size_t i = 0; i < sizeof WITH / sizeof *WITH; i++)
        if (ops & WITH[i].ops && word(WITH[i].what)) return word(WITH[i].what);
    switch (type) {
    case IBV_QPT_RC: return word("rc");
    case IBV_QPT_UC: return word("uc");
    case IBV_QPT_UD: return word("ud");
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV: return word("xrc");
    default: return 0;
    }
}

static void round_up(struct ibv_qp_cap *cap)
{
    if (!word("rounded")) return;
    uint32_t *const sizes[] = { &cap->max_send_wr, &cap->max_recv_wr };
    for (int i = 0; i < 2; i++)
        for (uint32_t size = 64, asked = *sizes[i]; size >> 16 == 0; size *= 2)
            if (size >= asked) {
                *sizes[i] = size;
                break;
            }
    if (cap->max_send_sge < 4) cap->max_send_sge = 4;
    if (cap->max_recv_sge < 4) cap->max_recv_sge = 4;
    if (cap->max_inline_data < 128) cap->max_inline_data = 128;
}

/* Other mistakes in the arguments are found first. */
static struct ibv_qp *or_refused(struct ibv_qp *made, int refusal)
{
    if (!made || !refusal) return made;
    REAL(ibv_destroy_qp)(made);
    errno = refusal;
    return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    slow();
    round_up(&attr->cap);
    return or_refused(REAL(ibv_create_qp)(pd, attr), refuses_qp(attr->qp_type, 0));
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    slow();
    return REAL(ibv_query_qp)(qp, attr, mask, init);
}

int ibv_destroy_qp(struct ibv_qp *qp) { slow(); return REAL(ibv_destroy_qp)(qp); }

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    REFUSE("ece", errno);
    return REAL(ibv_query_ece)(qp, ece);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    REFUSE("ece", errno);
    return REAL(ibv_set_ece)(qp, ece);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    REFUSE("mcast", errno);
    return REAL(ibv_attach_mcast)(qp, gid, lid);
}

/* Completion queues and shared receive queues */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    slow();
    return REAL(ibv_create_cq)(context, cqe, cq_context, channel, vector);
}

int ibv_destroy_cq(struct ibv_cq *cq) { slow(); return REAL(ibv_destroy_cq)(cq); }

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    REFUSE("resize_cq", errno);
    return REAL(ibv_resize_cq)(cq, cqe);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    REFUSE("srq", NULL);
    return REAL(ibv_create_srq)(pd, attr);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    slow();
    if (mask & IBV_SRQ_MAX_WR && word("srq_resize")) return word("srq_resize");
    return REAL(ibv_modify_srq)(srq, attr, mask);
}

/* Regions */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long locked;

/* Whole pages: 1 if these are too many. */
static int pin(size_t length, int sign)
{
    long most = word("locked") * 1024, bytes = (long)((length + 4095) / 4096 * 4096);
    if (!most) return 0;
    pthread_mutex_lock(&lock);
    int is_full = sign > 0 && bytes > most - locked;
    if (!is_full) locked += sign * bytes;
    pthread_mutex_unlock(&lock);
    return is_full;
}

/* The number by which a region with these rights is refused, or 0. */
static int refuses_access(int access)
{
    if (access & IBV_ACCESS_ON_DEMAND && word("odp")) return word("odp");
    return access & ACCESS_FLUSH ? word("flush") : 0;
}

static struct ibv_mr *pinned(struct ibv_mr *mr, size_t length, int access)
{
    if (!mr) return NULL;
    int refusal = refuses_access(access);
    if (!refusal && pin(length, 1)) refusal = ENOMEM;
    if (!refusal) return mr;
    REAL(ibv_dereg_mr)(mr);
    errno = refusal;
    return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    slow();
    return pinned(REAL(ibv_reg_mr)(pd, addr, length, access), length, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
    REFUSE("reg_mr_iova", NULL);
    return pinned(REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access), length, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    REFUSE("dmabuf", NULL);
    return REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
    REFUSE("rereg_mr", IBV_REREG_MR_ERR_CMD);
    return REAL(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    slow();
    size_t length = mr->length;
    int bad = REAL(ibv_dereg_mr)(mr);
    if (!bad) pin(length, -1);
    return bad;
}

/* Events that no program causes: two for each context */

static struct { struct ibv_context *of; int events; } contexts[1024];
static const enum ibv_event_type STRAY[] = { IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE };

static int is_stray(const struct ibv_async_event *event)
{
    return word("stray") &&
           (event->event_type == STRAY[0] || event->event_type == STRAY[1]);
}

static void forget(struct ibv_context *context)
{
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++)
        if (contexts[i].of == context) contexts[i].of = NULL, contexts[i].events = 0;
}

/* Counts an event of a context: how many it had before. */
static int another(struct ibv_context *context)
{
    size_t free = 0;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        if (contexts[i].of == context) return contexts[i].events++;
        if (!contexts[i].of) free = i;
    }
    contexts[free].of = context;
    return contexts[free].events++;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (word("stray")) {
        pthread_mutex_lock(&lock);
        int number = another(context);
        pthread_mutex_unlock(&lock);
        if (number < 2) {
            event->event_type = STRAY[number];
            event->element.port_num = 1;
            return 0;
        }
    }
    return REAL(ibv_get_async_event)(context, event);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    if (!is_stray(event)) REAL(ibv_ack_async_event)(event);
}

int ibv_close_device(struct ibv_context *context)
{
    pthread_mutex_lock(&lock);
    forget(context);
    pthread_mutex_unlock(&lock);
    return REAL(ibv_close_device)(context);
}

/* Functions that programs call through the tables of a context. `in_VERB` is the drop-in's. */

#define OPERATION(name, returned, ...) \
    static returned (*in_##name)(__VA_ARGS__); \
    static returned our_##name(__VA_ARGS__)

OPERATION(query_device_ex, int, struct ibv_context *context,
          const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
          size_t size)
{
    int bad = in_query_device_ex(context, input, attr, size);
    if (bad) return bad;
    change_attr(&attr->orig_attr);
    if (word("odp")) memset(&attr->odp_caps, 0, sizeof attr->odp_caps);
    if (word("uc")) attr->odp_caps.per_transport_caps.uc_odp_caps = 0;
    if (word("ud")) attr->odp_caps.per_transport_caps.ud_odp_caps = 0;
    if (word("odp") || word("xrc")) attr->xrc_odp_caps = 0;
    if (word("odp_implicit")) attr->odp_caps.general_caps &= ~(uint64_t)IBV_ODP_SUPPORT_IMPLICIT;
    if (word("device_memory")) attr->max_dm_size = 0;
    if (word("wc_timestamp")) attr->completion_timestamp_mask = 0;
    if (word("rt_values")) attr->hca_core_clock = 0;
    if (word("cq_moderation")) memset(&attr->cq_mod_caps, 0, sizeof attr->cq_mod_caps);
    if (word("flush")) attr->device_cap_flags_ex &= ~CAP_FLUSH;
    if (word("atomic_write")) attr->device_cap_flags_ex &= ~CAP_ATOMIC_WRITE;
    return 0;
}

OPERATION(query_port, int, struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
          size_t size)
{
    int bad = in_query_port(context, port, attr, size);
    if (bad) return bad;
    if (word("gid_places") > attr->gid_tbl_len) attr->gid_tbl_len = word("gid_places");
    if (word("down") == port) attr->state = IBV_PORT_DOWN;
    return 0;
}

OPERATION(create_qp_ex, struct ibv_qp *, struct ibv_context *context,
          struct ibv_qp_init_attr_ex *attr)
{
    slow();
    round_up(&attr->cap);
    uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
    return or_refused(in_create_qp_ex(context, attr), refuses_qp(attr->qp_type, ops));
}

OPERATION(create_cq_ex, struct ibv_cq_ex *, struct ibv_context *context,
          struct ibv_cq_init_attr_ex *attr)
{
    const uint64_t times = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                           IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    REFUSE("cq_ex", NULL);
    if (attr->wc_flags & times) REFUSE("wc_timestamp", NULL);
    if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
        attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
        REFUSE("ignore_overrun", NULL);
    return in_create_cq_ex(context, attr);
}

OPERATION(modify_cq, int, struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    REFUSE("cq_moderation", errno);
    return in_modify_cq(cq, attr);
}

OPERATION(create_srq_ex, struct ibv_srq *, struct ibv_context *context,
          struct ibv_srq_init_attr_ex *attr)
{
    REFUSE("srq", NULL);
    return in_create_srq_ex(context, attr);
}

OPERATION(open_xrcd, struct ibv_xrcd *, struct ibv_context *context,
          struct ibv_xrcd_init_attr *attr)
{
    REFUSE("xrc", NULL);
    return in_open_xrcd(context, attr);
}

OPERATION(alloc_null_mr, struct ibv_mr *, struct ibv_pd *pd)
{
    REFUSE("null_mr", NULL);
    return in_alloc_null_mr(pd);
}

OPERATION(alloc_td, struct ibv_td *, struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    REFUSE("parent_domain", NULL);
    return in_alloc_td(context, attr);
}

OPERATION(alloc_parent_domain, struct ibv_pd *, struct ibv_context *context,
          struct ibv_parent_domain_init_attr *attr)
{
    REFUSE("parent_domain", NULL);
    return in_alloc_parent_domain(context, attr);
}

OPERATION(alloc_dm, struct ibv_dm *, struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    REFUSE("device_memory", NULL);
    return in_alloc_dm(context, attr);
}

OPERATION(query_rt_values, int, struct ibv_context *context, struct ibv_values_ex *values)
{
    REFUSE("rt_values", errno);
    return in_query_rt_values(context, values);
}

OPERATION(advise_mr, int, struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
          struct ibv_sge *list, uint32_t count)
{
    REFUSE("odp", errno);
    return in_advise_mr(pd, advice, flags, list, count);
}

OPERATION(alloc_mw, struct ibv_mw *, struct ibv_pd *pd, enum ibv_mw_type type)
{
    REFUSE(type == IBV_MW_TYPE_1 ? "mw_type_1" : "mw_type_2", NULL);
    return in_alloc_mw(pd, type);
}

OPERATION(post_send, int, struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
    for (struct ibv_send_wr *wr = list; wr; wr = wr->next) {
        const char *what = NULL;
        switch ((int)wr->opcode) {
        case IBV_WR_ATOMIC_CMP_AND_SWP:
        case IBV_WR_ATOMIC_FETCH_AND_ADD: what = "atomics"; break;
        case IBV_WR_BIND_MW:
        case IBV_WR_LOCAL_INV:
        case IBV_WR_SEND_WITH_INV: what = word("mw_type_1") ? "mw_type_2" : NULL; break;
        case WR_FLUSH: what = "flush"; break;
        case WR_ATOMIC_WRITE: what = "atomic_write"; break;
        }
        if (what && word(what)) {
            *bad = wr;
            return EINVAL;
        }
    }
    return in_post_send(qp, list, bad);
}

static void disguise(struct ibv_context *context)
{
    struct verbs_context *more = context ? verbs_get_ctx(context) : NULL;
    if (!more) return;
#define REPLACE(table, name) do { \
        if ((table)->name && (table)->name != our_##name) { \
            in_##name = (table)->name; \
            (table)->name = our_##name; \
        } \
    } while (0)
    pthread_mutex_lock(&lock);
    REPLACE(&context->ops, alloc_mw);
    REPLACE(&context->ops, post_send);
    REPLACE(more, query_device_ex);
    REPLACE(more, query_port);
    REPLACE(more, create_qp_ex);
    REPLACE(more, create_cq_ex);
    REPLACE(more, modify_cq);
    REPLACE(more, create_srq_ex);
    REPLACE(more, open_xrcd);
    REPLACE(more, alloc_null_mr);
    REPLACE(more, alloc_td);
    REPLACE(more, alloc_parent_domain);
    REPLACE(more, alloc_dm);
    REPLACE(more, query_rt_values);
    REPLACE(more, advise_mr);
    pthread_mutex_unlock(&lock);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    slow();
    struct ibv_context *context = REAL(ibv_open_device)(device);
    disguise(context);
    return context;
}

/* rdma_cm opens devices by itself. */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space space)
{
    REFUSE("cm", -1);
    return REAL(rdma_create_id)(channel, id, context, space);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    int bad = REAL(rdma_bind_addr)(id, addr);
    disguise(id->verbs);
    return bad;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    int bad = REAL(rdma_get_cm_event)(channel, event);
    if (!bad) disguise((*event)->id->verbs);
    return bad;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    slow();
    round_up(&attr->cap);
    errno = refuses_qp(attr->qp_type, 0);
    return errno ? -1 : REAL(rdma_create_qp)(id, pd, attr);
}

struct ibv_context **rdma_get_devices(int *count)
{
    struct ibv_context **list = REAL(rdma_get_devices)(count);
    for (int i = 0; list && list[i]; i++) disguise(list[i]);
    return list;
}
