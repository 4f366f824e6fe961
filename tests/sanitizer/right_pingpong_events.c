/* A message goes to and fro. Both ends wait for events: arm, poll once more, and only then wait. */
#include <pthread.h>

#include "two.h"

enum { ROUNDS = 100 };

/* Completions that were polled and not asked for yet. */
struct side {
    struct end end;
    int begins, received, sent;
};

static int take(struct side *side)
{
    struct ibv_wc wc;
    int count = ibv_poll_cq(side->end.cq, 1, &wc);
    CHECK(count >= 0);
    if (count) {
        CHECK(wc.status == IBV_WC_SUCCESS);
        *(wc.opcode == IBV_WC_RECV ? &side->received : &side->sent) += 1;
    }
    return count;
}

/* Waits until as many have come. */
static void wait_for(struct side *side, int received, int sent)
{
    while (side->received < received || side->sent < sent) {
        if (take(side))
            continue;
        CHECK(!ibv_req_notify_cq(side->end.cq, 0));
        if (!take(side))
            take_event(&side->end, side->end.cq);
    }
}

static void *play(void *of)
{
    struct side *side = of;
    for (int round = 1; round <= ROUNDS; ++round) {
        if (!side->begins)
            wait_for(side, round, round - 1);
        /* The answer needs a place before the message goes. */
        if (side->begins || round < ROUNDS)
            CHECK(!POST_RECV(&side->end, round, MESSAGE));
        CHECK(!POST_SEND(&side->end, round, MESSAGE, IBV_SEND_SIGNALED));
        wait_for(side, side->begins ? round : 0, round);
    }
    return NULL;
}

/* An event may be left, of a completion that was polled before it was read. */
static void read_events(struct end *end)
{
    int fd = end->channel->fd;
    CHECK(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    struct ibv_cq *cq;
    void *context;
    while (!ibv_get_cq_event(end->channel, &cq, &context))
        ibv_ack_cq_events(cq, 1);
    CHECK(errno == EAGAIN);
}

int main(void)
{
    struct side a = {.begins = 1}, b = {0};
    start_both(&a.end, &b.end);
    CHECK(!POST_RECV(&b.end, 0, MESSAGE));
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, play, &b));
    play(&a);
    CHECK(!pthread_join(other, NULL));
    read_events(&a.end);
    read_events(&b.end);
    close_both(&a.end, &b.end);
    return 0;
}
