/* A server looks from time to time into the memory where a message will come, while another thread
 * polls its completion and notes the length.
 * Race: the message is in memory before its completion is polled. Fix: wait for the length. */
#include "common.h"

static struct end end;
static atomic_int length;

/* Waits for one message. */
static void *poller(void *unused)
{
    struct ibv_wc wc;
    take(&end);
    CHECK(ibv_poll_cq(end.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    length = wc.byte_len;
    return unused;
}

static void server(int peer)
{
    volatile int *message = received(&end, 0);
    pthread_t thread;
    CHECK(!ibv_req_notify_cq(end.cq, 0));
    CHECK(!pthread_create(&thread, NULL, poller, NULL));
    meet(peer);
#ifdef RIGHT
    while (!length)
#else
    while (!*message)
#endif
        pause_ms(40);
    if (length != sizeof *message)
        FAIL("message %d has %d bytes\n", *message, length);
    CHECK(!pthread_join(thread, NULL));
}

static void client(int peer)
{
    meet(peer);
    pause_ms(10);
    say(&end, 9);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    open_side(&end, 0, 4);
    connect_to_peer(&end, peer, 0);
    want(&end, 0);
    if (child)
        server(peer);
    else
        client(peer);
    meet(peer);
    close_side(&end);
    end_peer(child, peer);
    return 0;
}
