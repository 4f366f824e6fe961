/* A thread sends messages under a lock, and notes how many. Main forks a child that reports the number.
 * Race: the child gets a copy of the lock that the thread holds, and no thread there releases it.
 * Fix: hold the lock while forking, and release it in both processes. */
#include "common.h"

enum { MESSAGES = 3 };

static struct end a, b;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *sender(void *unused)
{
    for (int i = 1; i <= MESSAGES; i++) {
        pthread_mutex_lock(&lock);
        say(&a, i);
        count++;
        pthread_mutex_unlock(&lock);
        pause_ms(10);
    }
    return unused;
}

/* A child that reports, and ends without cleaning up. */
static pid_t report(void)
{
#ifdef RIGHT
    pthread_mutex_lock(&lock);
#endif
    pid_t child = fork();
#ifdef RIGHT
    pthread_mutex_unlock(&lock);
#endif
    CHECK(child >= 0);
    if (child)
        return child;
    pthread_mutex_lock(&lock);
    int seen = count;
    pthread_mutex_unlock(&lock);
    _exit(seen <= MESSAGES ? 0 : 1);
}

int main(void)
{
    open_side(&a, 0, 8);
    open_side(&b, 1, 8);
    connect_ends(&a, &b);
    for (int i = 0; i < MESSAGES; i++)
        want(&b, i);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, sender, NULL));
    CHECK(next(&b) == 1);
    pause_ms(2);
    int status;
    pid_t child = report();
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 2; i <= MESSAGES; i++)
        CHECK(next(&b) == i);
    CHECK(!pthread_join(thread, NULL));
    close_side(&a);
    close_side(&b);
    return 0;
}
