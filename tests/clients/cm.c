/* Connections by librdmacm: what a server and a client see of each other, ids that wait by themselves, endpoints, and
 * calls that make no sense. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { MESSAGE = 64, TIMEOUT_MS = 2000, REFUSED = 28, NOBODY = 8 };

static struct sockaddr_in at(const char *ip, uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = port};
    CHECK(inet_pton(AF_INET, ip, &addr.sin_addr) == 1);
    return addr;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
    struct rdma_cm_id *id;
    CHECK(!rdma_create_id(channel, &id, channel, ps));
    CHECK(id->context == channel && id->ps == ps && !id->verbs && !id->qp && !id->port_num);
    return id;
}

static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type kind)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event));
    if (event->event != kind)
        fprintf(stderr, "%s, not %s\n", rdma_event_str(event->event), rdma_event_str(kind));
    CHECK(event->event == kind);
    return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type kind, int status)
{
    struct rdma_cm_event *event = next(channel, kind);
    CHECK(event->status == status);
    CHECK(!rdma_ack_cm_event(event));
}

static void refused(int result, int wanted)
{
    CHECK(result == -1 && errno == wanted);
    errno = 0;
}

static struct rdma_cm_id *listener(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
    struct rdma_cm_id *id = make_id(channel, ps);
    struct sockaddr_in any = at("0.0.0.0", 0);
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&any));
    CHECK(!id->verbs && rdma_get_src_port(id));
    CHECK(!rdma_listen(id, 4));
    return id;
}

static struct rdma_cm_id *routed(struct rdma_event_channel *channel, enum rdma_port_space ps,
                                 uint16_t port)
{
    struct rdma_cm_id *id = make_id(channel, ps);
    struct sockaddr_in dst = at("127.0.0.1", port);
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, TIMEOUT_MS));
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    CHECK(id->verbs && id->pd && id->port_num == 1 && rdma_get_dst_port(id) == port);
    CHECK(!rdma_resolve_route(id, TIMEOUT_MS));
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    CHECK(id->route.num_paths == 1 && id->route.path_rec && id->route.path_rec->mtu);
    return id;
}

/* With CQs that the library makes. */
static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0},
                                    .qp_type = id->ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
                                    .qp_context = id};
    CHECK(!rdma_create_qp(id, NULL, &init));
    CHECK(id->qp && id->qp->pd == id->pd && id->qp->qp_context == id);
    CHECK(init.send_cq == id->send_cq && init.recv_cq == id->recv_cq && id->send_cq && id->recv_cq);
    CHECK(id->send_cq->channel == id->send_cq_channel && id->recv_cq->cq_context == id);
    CHECK(id->qp->state == (id->ps == RDMA_PS_TCP ? IBV_QPS_INIT : IBV_QPS_RTS));
    refused(rdma_create_qp(id, NULL, &init), EINVAL);
}

static void remove_id(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    CHECK(!id->qp && !id->send_cq && !id->recv_cq_channel);
    CHECK(!rdma_destroy_id(id));
}

static void exchange(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
    static char sent[MESSAGE], received[MESSAGE];
    snprintf(sent, sizeof sent, "from port %d", ntohs(rdma_get_src_port(from)));
    memset(received, 0, sizeof received);
    struct ibv_mr *source = rdma_reg_msgs(from, sent, sizeof sent);
    struct ibv_mr *target = rdma_reg_msgs(to, received, sizeof received);
    CHECK(source && target);
    CHECK(!rdma_post_recv(to, NULL, received, sizeof received, target));
    CHECK(!rdma_post_send(from, NULL, sent, sizeof sent, source, IBV_SEND_SIGNALED));
    struct ibv_wc wc;
    CHECK(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!strcmp(sent, received));
    CHECK(!rdma_dereg_mr(source) && !rdma_dereg_mr(target));
}

static void connections(void)
{
    struct rdma_event_channel *servers = rdma_create_event_channel();
    struct rdma_event_channel *clients = rdma_create_event_channel();
    CHECK(servers && clients);
    struct rdma_cm_id *passive = listener(servers, RDMA_PS_TCP);
    struct rdma_cm_id *client = routed(clients, RDMA_PS_TCP, rdma_get_src_port(passive));
    make_qp(client);
    struct rdma_conn_param param = {.private_data = "hello",
                                    .private_data_len = 5,
                                    .responder_resources = 3,
                                    .initiator_depth = 2,
                                    .retry_count = 5,
                                    .rnr_retry_count = 6};
    CHECK(!rdma_connect(client, &param));
    struct rdma_cm_event *event = next(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param *told = &event->param.conn;
    struct rdma_cm_id *server = event->id;
    CHECK(event->listen_id == passive && server != passive && server->context == servers);
    CHECK(server->channel == servers && server->verbs && server->pd && server->port_num == 1);
    CHECK(told->private_data_len == 56 && !memcmp(told->private_data, "hello\0\0", 7));
    CHECK(told->responder_resources == 2 && told->initiator_depth == 3);
    CHECK(told->retry_count == 5 && told->rnr_retry_count == 6);
    CHECK(told->qp_num == client->qp->qp_num);
    CHECK(!memcmp(rdma_get_peer_addr(server), rdma_get_local_addr(client), sizeof(struct sockaddr_in)));
    make_qp(server);
    param.private_data = "welcome";
    param.private_data_len = 7;
    CHECK(!rdma_accept(server, &param));
    CHECK(server->qp->state == IBV_QPS_RTS && client->qp->state == IBV_QPS_INIT);
    CHECK(!rdma_ack_cm_event(event));
    event = next(clients, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(event->id == client && !event->listen_id && client->qp->state == IBV_QPS_RTS);
    CHECK(event->param.conn.private_data_len == 196);
    CHECK(!memcmp(event->param.conn.private_data, "welcome", 8));
    CHECK(!rdma_ack_cm_event(event));
    refused(rdma_ack_cm_event(event), EINVAL);
    expect(servers, RDMA_CM_EVENT_ESTABLISHED, 0);
    exchange(client, server);
    exchange(server, client);
    CHECK(!rdma_disconnect(client) && client->qp->state == IBV_QPS_ERR);
    expect(servers, RDMA_CM_EVENT_DISCONNECTED, 0);
    CHECK(server->qp->state == IBV_QPS_RTS);
    CHECK(!rdma_disconnect(server) && server->qp->state == IBV_QPS_ERR);
    expect(clients, RDMA_CM_EVENT_DISCONNECTED, 0);
    remove_id(client);
    remove_id(server);

    /* Refused, by the program and since nobody listens. */
    client = routed(clients, RDMA_PS_TCP, rdma_get_src_port(passive));
    make_qp(client);
    CHECK(!rdma_connect(client, NULL));
    event = next(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(event->param.conn.rnr_retry_count == 7);
    CHECK(!rdma_reject(event->id, "full", 4));
    server = event->id;
    CHECK(!rdma_ack_cm_event(event) && !rdma_destroy_id(server));
    event = next(clients, RDMA_CM_EVENT_REJECTED);
    CHECK(event->status == REFUSED && event->param.conn.private_data_len == 148);
    CHECK(!strcmp(event->param.conn.private_data, "full") && client->qp->state == IBV_QPS_ERR);
    CHECK(!rdma_ack_cm_event(event));
    remove_id(client);
    client = routed(clients, RDMA_PS_TCP, htons(1));
    make_qp(client);
    CHECK(!rdma_connect(client, &param));
    expect(clients, RDMA_CM_EVENT_REJECTED, NOBODY);
    remove_id(client);
    CHECK(!rdma_destroy_id(passive));
    rdma_destroy_event_channel(servers);
    rdma_destroy_event_channel(clients);
}

/* librdmacm uses what the field qp names: a queue pair of another id, or of ibv_create_qp. */
static void queue_pairs_that_move(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *passive = listener(channel, RDMA_PS_TCP);
    struct rdma_cm_id *own = routed(channel, RDMA_PS_TCP, htons(7));
    make_qp(own);
    for (int is_plain = 0; is_plain < 2; ++is_plain) {
        struct rdma_cm_id *client = routed(channel, RDMA_PS_TCP, rdma_get_src_port(passive));
        make_qp(client);
        CHECK(!rdma_connect(client, NULL));
        struct rdma_cm_event *event = next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
        struct rdma_cm_id *server = event->id;
        CHECK(!rdma_ack_cm_event(event));
        struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0},
                                        .qp_type = IBV_QPT_RC,
                                        .send_cq = own->send_cq,
                                        .recv_cq = own->recv_cq};
        server->qp = is_plain ? ibv_create_qp(server->pd, &init) : own->qp;
        own->qp = NULL;
        server->send_cq = own->send_cq;
        server->recv_cq = own->recv_cq;
        server->send_cq_channel = own->send_cq_channel;
        server->recv_cq_channel = own->recv_cq_channel;
        CHECK(server->qp && !rdma_accept(server, NULL) && server->qp->state == IBV_QPS_RTS);
        event = next(channel, RDMA_CM_EVENT_ESTABLISHED);
        CHECK(event->id == client && event->param.conn.qp_num == server->qp->qp_num);
        CHECK(!rdma_ack_cm_event(event));
        expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
        exchange(client, server);
        exchange(server, client);
        CHECK(!rdma_disconnect(server) && server->qp->state == IBV_QPS_ERR);
        expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
        CHECK(!rdma_disconnect(client));
        expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
        remove_id(client);
        struct ibv_qp *qp = server->qp;
        server->qp = (struct ibv_qp *)&init;
        refused(rdma_disconnect(server), EINVAL);
        server->qp = qp;
        remove_id(server);
    }
    struct ibv_cq *cqs[] = {own->send_cq, own->recv_cq};
    struct ibv_comp_channel *channels[] = {own->send_cq_channel, own->recv_cq_channel};
    CHECK(!rdma_destroy_id(own) && !rdma_destroy_id(passive));
    for (int i = 0; i < 2; ++i)
        CHECK(!ibv_destroy_cq(cqs[i]) && !ibv_destroy_comp_channel(channels[i]));
    rdma_destroy_event_channel(channel);
}

static void datagrams_and_groups(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *passive = listener(channel, RDMA_PS_UDP);
    struct rdma_cm_id *client = routed(channel, RDMA_PS_UDP, rdma_get_src_port(passive));
    make_qp(client);
    CHECK(!rdma_connect(client, NULL));
    struct rdma_cm_event *event = next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    CHECK(event->param.ud.private_data_len == 180);
    CHECK(!rdma_ack_cm_event(event));
    make_qp(server);
    CHECK(!rdma_accept(server, NULL));
    event = next(channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(event->id == client && event->param.ud.qp_num == server->qp->qp_num);
    CHECK(event->param.ud.qkey == RDMA_UDP_QKEY && event->param.ud.ah_attr.is_global);
    struct ibv_ah *ah = ibv_create_ah(client->pd, &event->param.ud.ah_attr);
    CHECK(ah && !ibv_destroy_ah(ah));
    CHECK(!rdma_ack_cm_event(event));

    struct rdma_cm_id *member = make_id(channel, RDMA_PS_UDP);
    struct sockaddr_in dst = at("127.0.0.1", htons(7)), group = at("239.1.2.3", 0);
    struct sockaddr *addr = (struct sockaddr *)&group;
    CHECK(!rdma_resolve_addr(member, NULL, (struct sockaddr *)&dst, TIMEOUT_MS));
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    make_qp(member);
    refused(rdma_join_multicast(server, addr, NULL), EINVAL);
    CHECK(!rdma_join_multicast(member, addr, &group));
    event = next(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK(event->param.ud.private_data == &group && event->param.ud.qp_num == 0xffffff);
    CHECK(!rdma_ack_cm_event(event));
    CHECK(!rdma_leave_multicast(member, addr));
    refused(rdma_leave_multicast(member, addr), EADDRNOTAVAIL);
    struct rdma_cm_join_mc_attr_ex attr = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
        .addr = addr};
    CHECK(!rdma_join_multicast_ex(member, &attr, NULL));
    expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    remove_id(client);
    remove_id(server);
    rdma_destroy_qp(member);
    CHECK(errno == EBUSY && member->qp && !rdma_leave_multicast(member, addr));
    remove_id(member);
    CHECK(!rdma_destroy_id(passive));
    rdma_destroy_event_channel(channel);
}

/* Descriptors, contexts of the library, an id that moves. */
static void channels_and_devices(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_event_channel *other = rdma_create_event_channel();
    int flags = fcntl(channel->fd, F_GETFL);
    CHECK(!(flags & O_NONBLOCK) && !fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK));
    struct rdma_cm_event *event;
    refused(rdma_get_cm_event(channel, &event), EAGAIN);
    struct rdma_cm_id *id = make_id(channel, RDMA_PS_TCP);
    struct sockaddr_in dst = at("127.0.0.1", htons(7));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, TIMEOUT_MS));
    struct pollfd poll_for = {.fd = channel->fd, .events = POLLIN};
    CHECK(poll(&poll_for, 1, TIMEOUT_MS) == 1);
    CHECK(!rdma_migrate_id(id, other) && id->channel == other);
    CHECK(poll(&poll_for, 1, 0) == 0);
    expect(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    int count;
    struct ibv_context **contexts = rdma_get_devices(&count);
    CHECK(contexts && count == 2 && !contexts[2]);
    CHECK(id->verbs == contexts[0] || id->verbs == contexts[1]);
    struct ibv_device_attr attr;
    CHECK(!ibv_query_device(contexts[1], &attr));
    rdma_free_devices(contexts);
    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    CHECK(!rdma_init_qp_attr(id, &qp_attr, &mask) && mask & IBV_QP_PORT && qp_attr.port_num == 1);
    uint8_t tos = 0x20;
    CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    rdma_destroy_event_channel(other);
    CHECK(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
    CHECK(!strcmp(rdma_event_str(99), "UNKNOWN EVENT"));
}

struct waiters {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    atomic_int threads[2];
    sem_t is_gone;
};

/* Of two threads that wait for one event, the one that gets it destroys the channel. The other is cancelled, and
   the address sanitizer does not forget the frames of a thread that is: this one must have no red zones. */
__attribute__((no_sanitize("address"))) static void *wait_for_event(void *argument)
{
    struct waiters *waiters = argument;
    int none = 0;
    if (!atomic_compare_exchange_strong(&waiters->threads[0], &none, gettid()))
        waiters->threads[1] = gettid();
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(waiters->channel, &event));
    CHECK(!rdma_ack_cm_event(event) && !rdma_destroy_id(waiters->id));
    rdma_destroy_event_channel(waiters->channel);
    CHECK(!sem_post(&waiters->is_gone));
    return NULL;
}

/* Whether a thread is in a call of the system that waits for a descriptor. */
static bool is_polling(int thread)
{
    char path[64];
    long number = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *file = fopen(path, "r");
    CHECK(file);
    bool is_number = fscanf(file, "%ld", &number) == 1;
    fclose(file);
#ifdef SYS_poll
    if (number == SYS_poll)
        return true;
#endif
    return is_number && number == SYS_ppoll;
}

/* A thread that waits for an event stays in its call when another thread destroys the channel. */
static void channels_that_go_under_a_thread(void)
{
    for (int round = 0; round < 100; ++round) {
        struct waiters waiters = {.channel = rdma_create_event_channel()};
        waiters.id = make_id(waiters.channel, RDMA_PS_TCP);
        CHECK(!sem_init(&waiters.is_gone, 0, 0));
        pthread_t threads[2];
        for (int i = 0; i < 2; ++i)
            CHECK(!pthread_create(&threads[i], NULL, wait_for_event, &waiters));
        for (int i = 0; i < 2; ++i)
            while (!waiters.threads[i] || !is_polling(waiters.threads[i]))
                sched_yield();
        struct sockaddr_in dst = at("127.0.0.1", htons(7));
        CHECK(!rdma_resolve_addr(waiters.id, NULL, (struct sockaddr *)&dst, TIMEOUT_MS));
        while (sem_wait(&waiters.is_gone))
            ;
        for (int i = 0; i < 2; ++i)
            CHECK(!pthread_cancel(threads[i]) && !pthread_join(threads[i], NULL));
        CHECK(!sem_destroy(&waiters.is_gone));
    }
}

/* A server with endpoints and a client, which wait by themselves. */
static void *serve(void *argument)
{
    struct rdma_cm_id *passive = argument, *id;
    CHECK(!rdma_get_request(passive, &id));
    CHECK(id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST && id->qp && id->send_cq);
    CHECK(!rdma_accept(id, NULL) && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

static struct rdma_addrinfo *look_up(const char *service, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    CHECK(!rdma_getaddrinfo(flags & RAI_PASSIVE ? NULL : "localhost", service, &hints, &found));
    CHECK(found->ai_qp_type == IBV_QPT_RC && !found->ai_next);
    CHECK(flags & RAI_PASSIVE ? found->ai_src_len && !found->ai_dst_len
                              : found->ai_dst_len && !found->ai_src_len);
    return found;
}

static void endpoints(void)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}};
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE}, *info;
    CHECK(rdma_getaddrinfo("no such host.", NULL, NULL, &info) != 0);
    refused(rdma_getaddrinfo(NULL, NULL, NULL, &info), EINVAL);
    struct sockaddr_in src = at("127.0.0.1", 0);
    hints.ai_src_addr = (struct sockaddr *)&src;
    hints.ai_src_len = sizeof src;
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_qp_type = IBV_QPT_RC;
    CHECK(!rdma_getaddrinfo(NULL, NULL, &hints, &info));
    struct rdma_cm_id *passive, *client, *server;
    CHECK(!rdma_create_ep(&passive, info, NULL, &init) && !passive->qp);
    rdma_freeaddrinfo(info);
    CHECK(!rdma_listen(passive, 1));
    char service[8];
    snprintf(service, sizeof service, "%d", ntohs(rdma_get_src_port(passive)));
    rdma_freeaddrinfo(look_up(service, RAI_PASSIVE));
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, serve, passive));
    info = look_up(service, 0);
    struct ibv_qp_init_attr own = {.cap = {4, 4, 1, 1, 0}};
    CHECK(!rdma_create_ep(&client, info, NULL, &own) && client->qp);
    CHECK(client->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
    CHECK(!rdma_connect(client, NULL) && client->event->event == RDMA_CM_EVENT_ESTABLISHED);
    CHECK(!pthread_join(thread, (void **)&server));
    exchange(client, server);
    CHECK(client->event->event == RDMA_CM_EVENT_ESTABLISHED);
    rdma_destroy_ep(server);
    rdma_destroy_ep(client);
    rdma_destroy_ep(passive);
    /* Nobody listens any more. */
    struct ibv_qp_init_attr again = {.cap = {4, 4, 1, 1, 0}};
    CHECK(!rdma_create_ep(&client, info, NULL, &again));
    refused(rdma_connect(client, NULL), ECONNREFUSED);
    CHECK(client->event->event == RDMA_CM_EVENT_REJECTED && client->event->status == NOBODY);
    rdma_destroy_ep(client);
    rdma_freeaddrinfo(info);
}

/* SRQs of ids. */
static void shared_receives(void)
{
    struct rdma_cm_id *id = make_id(NULL, RDMA_PS_TCP);
    struct sockaddr_in src = at("127.0.0.1", 0), dst = at("127.0.0.1", htons(7));
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    refused(rdma_create_srq(id, NULL, &init), EINVAL);
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&src));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, TIMEOUT_MS));
    CHECK(!rdma_create_srq(id, NULL, &init) && id->srq && id->srq->pd == id->pd);
    struct ibv_qp_init_attr qp_init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &qp_init) && id->qp->srq == id->srq);
    rdma_destroy_ep(id);
}

static void nonsense(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = make_id(channel, RDMA_PS_TCP), *stale = make_id(channel, RDMA_PS_TCP);
    struct sockaddr_in nobody = at("203.0.113.1", 0), own = at("127.0.0.1", 0);
    struct sockaddr family = {.sa_family = AF_UNIX};
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct rdma_conn_param param = {.responder_resources = 1};
    struct rdma_cm_event *event = NULL;
    struct rdma_cm_id *made;
    char bytes[255] = {0};
    CHECK(!rdma_destroy_id(stale));
    refused(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
    refused(rdma_create_id(channel, &made, NULL, 0x999), EINVAL);
    refused(rdma_create_id((struct rdma_event_channel *)bytes, &made, NULL, RDMA_PS_TCP), EINVAL);
    refused(rdma_destroy_id(stale), EINVAL);
    refused(rdma_destroy_id(NULL), EINVAL);
    refused(rdma_destroy_id((struct rdma_cm_id *)bytes), EINVAL);
    refused(rdma_bind_addr(id, NULL), EINVAL);
    refused(rdma_bind_addr(id, &family), EINVAL);
    refused(rdma_bind_addr(id, (struct sockaddr *)&nobody), EADDRNOTAVAIL);
    refused(rdma_bind_addr(stale, (struct sockaddr *)&own), EINVAL);
    refused(rdma_resolve_addr(id, NULL, NULL, TIMEOUT_MS), EINVAL);
    refused(rdma_resolve_route(id, TIMEOUT_MS), EINVAL);
    refused(rdma_create_qp(id, NULL, &init), EINVAL);
    refused(rdma_create_qp(id, NULL, NULL), EINVAL);
    refused(rdma_connect(id, &param), EINVAL);
    refused(rdma_connect(id, NULL), EINVAL);
    refused(rdma_accept(id, &param), EINVAL);
    refused(rdma_reject(id, bytes, sizeof bytes), EINVAL);
    refused(rdma_disconnect(id), EINVAL);
    refused(rdma_establish(id), EINVAL);
    refused(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
    refused(rdma_get_request(id, &made), EINVAL);
    refused(rdma_join_multicast(id, (struct sockaddr *)&own, NULL), EINVAL);
    refused(rdma_leave_multicast(id, (struct sockaddr *)&own), EADDRNOTAVAIL);
    refused(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes, 3), EINVAL);
    refused(rdma_set_option(id, 7, 0, bytes, 1), ENOSYS);
    refused(rdma_migrate_id(stale, channel), EINVAL);
    refused(rdma_get_cm_event(NULL, &event), EINVAL);
    refused(rdma_get_cm_event(channel, NULL), EINVAL);
    refused(rdma_ack_cm_event(NULL), EINVAL);
    refused(rdma_ack_cm_event((struct rdma_cm_event *)bytes), EINVAL);
    refused(rdma_create_ep(&made, NULL, NULL, NULL), EINVAL);
    refused(rdma_listen(stale, 1), EINVAL);
    rdma_destroy_qp(id);
    rdma_destroy_srq(stale);
    rdma_destroy_ep(stale);
    rdma_destroy_ep(NULL);
    /* A channel that an id has stays. */
    rdma_destroy_event_channel(channel);
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&own));
    struct rdma_cm_id *second = make_id(channel, RDMA_PS_TCP);
    struct sockaddr_in same = *(struct sockaddr_in *)rdma_get_local_addr(id);
    refused(rdma_bind_addr(second, (struct sockaddr *)&same), EADDRINUSE);
    CHECK(!rdma_destroy_id(second));
    struct rdma_cm_id *passive = listener(channel, RDMA_PS_TCP);
    struct rdma_cm_id *client = routed(channel, RDMA_PS_TCP, rdma_get_src_port(passive));
    param.private_data = bytes;
    param.private_data_len = 57;
    refused(rdma_connect(client, &param), EINVAL);
    param.private_data_len = 56;
    param.initiator_depth = 254;
    refused(rdma_connect(client, &param), EINVAL);
    CHECK(!rdma_destroy_id(client) && !rdma_destroy_id(passive));
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    refused(rsocket(AF_INET, SOCK_STREAM, 0), ENOTSUP);
}

int main(void)
{
    connections();
    queue_pairs_that_move();
    datagrams_and_groups();
    channels_and_devices();
    channels_that_go_under_a_thread();
    endpoints();
    shared_receives();
    nonsense();
    return 0;
}
