/* A server handles the events of rdma_cm in one thread, and messages in another one.
 * Race: the first message is handled before the event of the established connection, which makes the
 * session. Fix: make the session before the connection is accepted. */
#include "cm.h"

static atomic_int session;

static void *handle_messages(void *end)
{
    int message = next(end);
    if (!session)
        FAIL("message %d has no session\n", message);
    say(end, message + session);
    return end;
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
    CHECK(!pthread_create(&thread, NULL, handle_messages, &end));
#ifdef RIGHT
    session = 1;
#endif
    CHECK(!rdma_accept(id, &param));
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
#ifndef RIGHT
    session = 1;
#endif
    CHECK(!pthread_join(thread, NULL));
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(id));
    close_id(id, &end);
    CHECK(!rdma_destroy_id(listener));
    rdma_destroy_event_channel(channel);
}

/* Reads what to send, and asks once. */
static void client(int peer)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct end end;
    struct rdma_cm_id *id = start_client(channel, peer, &end);
    pause_ms(40);
    say(&end, 7);
    CHECK(next(&end) == 8 && !rdma_disconnect(id));
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
