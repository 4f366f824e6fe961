/* A server ends a connection under a lock, which the thread that reads events of rdma_cm takes too.
 * Race: that thread has got the DISCONNECTED event and waits for the lock; rdma_destroy_id waits until
 * the event is acknowledged. Fix: acknowledge the event before taking the lock. */
#include "cm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_over, over[2];

/* Reads events until the connection is over. */
static void *handle_events(void *channel)
{
    struct pollfd fds[] = {{.fd = ((struct rdma_event_channel *)channel)->fd, .events = POLLIN},
                           {.fd = over[0]}};
    struct rdma_cm_event *event;
    while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
        if (rdma_get_cm_event(channel, &event))
            continue;
        enum rdma_cm_event_type kind = event->event;
#ifdef RIGHT
        rdma_ack_cm_event(event);
#endif
        pthread_mutex_lock(&lock);
        is_over |= kind == RDMA_CM_EVENT_DISCONNECTED;
        pthread_mutex_unlock(&lock);
#ifndef RIGHT
        rdma_ack_cm_event(event);
#endif
    }
    return channel;
}

static void server(int peer)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener = start_listener(channel, peer);
    struct rdma_cm_id *id = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    struct end end;
    pthread_t thread;
    open_id(id, &end);
    CHECK(!rdma_accept(id, &param));
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(!pipe(over) && !fcntl(channel->fd, F_SETFL, O_NONBLOCK));
    CHECK(!pthread_create(&thread, NULL, handle_events, channel));
    CHECK(next(&end) == 7);
    say(&end, 8);
    pthread_mutex_lock(&lock);
    if (!is_over)
        rdma_disconnect(id);
    close_id(id, &end);
    pthread_mutex_unlock(&lock);
    CHECK(!close(over[1]) && !pthread_join(thread, NULL));
    CHECK(!rdma_destroy_id(listener));
    rdma_destroy_event_channel(channel);
}

/* Asks once. Leaves after a while. */
static void client(int peer)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct end end;
    struct rdma_cm_id *id = start_client(channel, peer, &end);
    say(&end, 7);
    CHECK(next(&end) == 8);
    pause_ms(20);
    rdma_disconnect(id);
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    close_id(id, &end);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    if (child)
        server(peer);
    else
        client(peer);
    end_peer(child, peer);
    return 0;
}
