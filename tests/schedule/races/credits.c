/* Two processes have two receives each for the other: a message needs a credit, and each message
 * brings back the credits of those that were read. Race: both use up their credits at once, and then
 * each waits for the other's. Fix: send credits alone into one more receive, which needs no credit. */
#include "common.h"

enum { CREDITS = 2, KEPT = 1 };
enum kind { HELLO = 1, REQUEST, REPLY, CREDIT };

struct link {
    struct end end;
    int credits, owed, requests, replies;
};

static void transmit(struct link *link, enum kind kind)
{
    say(&link->end, kind << 8 | link->owed);
    link->owed = 0;
}

static void handle(struct link *link, int message)
{
    static uint64_t number;
    enum kind kind = message >> 8;
    want(&link->end, number++ + CREDITS + KEPT);
    link->credits += message & 0xff;
    link->requests += kind == REQUEST;
    link->replies += kind == REPLY;
    if (kind != CREDIT)
        link->owed++;
#ifdef RIGHT
    if (link->owed == CREDITS)
        transmit(link, CREDIT);
#endif
}

/* Sends when there is a credit. */
static void send_one(struct link *link, enum kind kind)
{
    while (link->credits == 0)
        handle(link, next(&link->end));
    link->credits--;
    transmit(link, kind);
}

/* Says hello, and answers two requests. */
static void server(struct link *link)
{
    for (int i = 0; i < CREDITS; i++)
        send_one(link, HELLO);
    for (int i = 0; i < CREDITS; i++) {
        while (link->requests == i)
            handle(link, next(&link->end));
        send_one(link, REPLY);
    }
}

/* Reads its configuration and the messages that have arrived; then asks twice. */
static void client(struct link *link)
{
    int message;
    pause_ms(20);
    while (got(&link->end, &message))
        handle(link, message);
    for (int i = 0; i < CREDITS; i++)
        send_one(link, REQUEST);
    while (link->replies < CREDITS)
        handle(link, next(&link->end));
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    struct link link = {.credits = CREDITS};
    open_side(&link.end, 0, 8);
    connect_to_peer(&link.end, peer, 0);
    for (int i = 0; i < CREDITS + KEPT; i++)
        want(&link.end, i);
    meet(peer);
    if (child)
        server(&link);
    else
        client(&link);
    meet(peer);
    close_side(&link.end);
    end_peer(child, peer);
    return 0;
}
