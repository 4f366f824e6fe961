/* Programs of some lines each, one for each call that the schedule knows: `calls NAME` runs one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

static long seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static long start;
    if (!start)
        start = now.tv_sec;
    return now.tv_sec - start;
}

static void say(const char *what, long value) { printf("%s %ld at %ld\n", what, value, seconds()); fflush(stdout); }

static int ends[2];
static void *late(void *bytes) { sleep(3); if (write(ends[1], "abcdefgh", (size_t)bytes) < 0) exit(1); return 0; }
static void later(long bytes) { pthread_t thread; pthread_create(&thread, 0, late, (void *)bytes); }
static void a_pipe(void) { if (pipe(ends)) exit(1); }
static void a_pair(int type) { if (socketpair(AF_UNIX, type, 0, ends)) exit(1); }

static void read_(void) { char c[8]; a_pipe(); later(3); say("read", read(ends[0], c, 8)); }
static void readv_(void) { char c[8]; struct iovec v = {c, 8}; a_pipe(); later(3); say("readv", readv(ends[0], &v, 1)); }
static void recv_(void) { char c[8]; a_pair(SOCK_STREAM); later(3); say("recv", recv(ends[0], c, 8, 0)); }
static void recvmsg_(void) { char c[8]; struct iovec v = {c, 8}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}; a_pair(SOCK_DGRAM); later(3); say("recvmsg", recvmsg(ends[0], &m, 0)); }
static void recvmmsg_(void) { char c[8]; struct iovec v = {c, 8}; struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}}; a_pair(SOCK_DGRAM); later(3); say("recvmmsg", recvmmsg(ends[0], &m, 1, 0, 0)); }
static void dontwait(void) { char c[8]; a_pair(SOCK_STREAM); later(3); long looks = 0; while (recv(ends[0], c, 8, MSG_DONTWAIT) < 0) { looks = 1; sched_yield(); } say("looked", looks); }
static void rcvtimeo(void) { char c; struct timeval t = {4, 0}; a_pair(SOCK_STREAM); setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t); long r = recv(ends[0], &c, 1, 0); say("recv", r < 0 && errno == EAGAIN); }
static void write_(void) { a_pipe(); char *much = calloc(1, 300000); pid_t pid = fork(); if (!pid) { char c[4096]; long all = 0, got; sleep(2); close(ends[1]); while ((got = read(ends[0], c, sizeof c)) > 0) all += got; say("read", all); _exit(0); } for (long left = 300000; left > 0; left -= 4096) if (write(ends[1], much, left < 4096 ? left : 4096) < 0) exit(1); close(ends[1]); wait(0); say("written", 300000); }

static void *joins(void *to) { sleep(1); int fd = socket(AF_INET, SOCK_STREAM, 0); if (connect(fd, to, sizeof(struct sockaddr_in))) exit(1); sleep(1); if (write(fd, "x", 1) < 0) exit(1); return 0; }
static void accept_(void) { int fd = socket(AF_INET, SOCK_STREAM, 0); static struct sockaddr_in a; a.sin_family = AF_INET; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK); socklen_t n = sizeof a; bind(fd, (void *)&a, n); listen(fd, 1); getsockname(fd, (void *)&a, &n); pthread_t t; pthread_create(&t, 0, joins, &a); int peer = accept(fd, 0, 0); say("accept", peer > 0); char c; say("read", read(peer, &c, 1)); pthread_join(t, 0); }

static void poll_(void) { a_pipe(); struct pollfd p = {ends[0], POLLIN, 7}; say("poll", poll(&p, 1, 2000)); say("revents", p.revents); later(1); say("poll", poll(&p, 1, -1)); say("revents", p.revents); }
static void ppoll_(void) { a_pipe(); struct pollfd p = {ends[0], POLLIN, 0}; struct timespec t = {2, 0}; say("ppoll", ppoll(&p, 1, &t, 0)); later(1); say("ppoll", ppoll(&p, 1, 0, 0)); }
static void select_(void) { a_pipe(); fd_set s; FD_ZERO(&s); FD_SET(ends[0], &s); struct timeval t = {2, 0}; say("select", select(ends[0] + 1, &s, 0, 0, &t)); say("set", FD_ISSET(ends[0], &s)); FD_SET(ends[0], &s); later(1); say("select", select(ends[0] + 1, &s, 0, 0, 0)); say("set", FD_ISSET(ends[0], &s)); }
static void pselect_(void) { a_pipe(); fd_set s; FD_ZERO(&s); FD_SET(ends[0], &s); struct timespec t = {2, 0}; say("pselect", pselect(ends[0] + 1, &s, 0, 0, &t, 0)); FD_SET(ends[0], &s); later(1); say("pselect", pselect(ends[0] + 1, &s, 0, 0, 0, 0)); }
static void epoll_(void) { a_pipe(); int fd = epoll_create1(0); struct epoll_event e = {.events = EPOLLIN}; epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &e); say("epoll_wait", epoll_wait(fd, &e, 1, 2000)); later(1); say("epoll_pwait", epoll_pwait(fd, &e, 1, -1, 0)); }
static void epoll_pwait2_(void) { a_pipe(); int fd = epoll_create1(0); struct epoll_event e = {.events = EPOLLIN}; struct timespec t = {2, 0}; epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &e); say("epoll_pwait2", syscall(SYS_epoll_pwait2, fd, &e, 1, &t, 0, 0)); later(1); say("epoll_pwait2", syscall(SYS_epoll_pwait2, fd, &e, 1, 0, 0, 0)); }
static void eventfd_(void) { ends[0] = ends[1] = eventfd(0, 0); uint64_t v; later(8); if (read(ends[0], &v, 8) != 8) exit(1); say("eventfd", v == 0x6867666564636261); }
static void timerfd_(void) { int fd = timerfd_create(CLOCK_MONOTONIC, 0); struct itimerspec s = {{2, 0}, {1, 0}}, old; timerfd_settime(fd, 0, &s, 0); uint64_t v; for (int i = 0; i < 3; i++) { if (read(fd, &v, 8) != 8) exit(1); say("timerfd", v); } timerfd_gettime(fd, &old); say("interval", old.it_interval.tv_sec); }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int flag;
static void *signals(void *a) { sleep(1); pthread_mutex_lock(&mutex); flag = 1; pthread_cond_signal(&condition); pthread_mutex_unlock(&mutex); return a; }
static void condition_(void) { pthread_t t; pthread_create(&t, 0, signals, (void *)5); pthread_mutex_lock(&mutex); while (!flag) pthread_cond_wait(&condition, &mutex); pthread_mutex_unlock(&mutex); void *r; pthread_join(t, &r); say("joined", (long)r); struct timespec until; clock_gettime(CLOCK_REALTIME, &until); until.tv_sec += 5; pthread_mutex_lock(&mutex); say("timedwait", pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT); }
static void *broadcast(void *a) { sleep(2); pthread_mutex_lock(&mutex); flag = 1; pthread_cond_broadcast(&condition); pthread_mutex_unlock(&mutex); return a; }
static int count;
static void *waits(void *a) { pthread_mutex_lock(&mutex); while (!flag) pthread_cond_wait(&condition, &mutex); count++; pthread_mutex_unlock(&mutex); return a; }
static void threads(void) { pthread_t t[200]; for (int i = 0; i < 199; i++) pthread_create(&t[i], 0, waits, 0); pthread_create(&t[199], 0, broadcast, 0); for (int i = 0; i < 200; i++) pthread_join(t[i], 0); say("threads", count); }
static void semaphore(void) { sem_t *s = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); sem_init(s, 1, 0); if (!fork()) { sleep(3); sem_post(s); _exit(0); } sem_wait(s); say("sem_wait", 0); wait(0); }
static pthread_barrier_t barrier;
static void *meets(void *a) { sleep((long)a); pthread_barrier_wait(&barrier); return 0; }
static void barrier_(void) { pthread_barrier_init(&barrier, 0, 4); pthread_t t[4]; for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, meets, (void *)i); for (int i = 0; i < 4; i++) pthread_join(t[i], 0); say("met", 4); }
static void *never(void *a) { pause(); return a; }
static void cancel(void) { pthread_t t; void *r; pthread_create(&t, 0, never, 0); sleep(1); pthread_cancel(t); pthread_join(t, &r); say("canceled", r == PTHREAD_CANCELED); }
static void *leaves(void *a) { sleep(2); say("last", 0); return a; }
static void leader(void) { pthread_t t; pthread_create(&t, 0, leaves, 0); pthread_exit(0); }

static void sleeps(void) { struct timespec t = {3, 0}; nanosleep(&t, 0); say("nanosleep", 0); t.tv_sec = 2; clock_nanosleep(CLOCK_REALTIME, 0, &t, 0); say("clock_nanosleep", 0); clock_gettime(CLOCK_MONOTONIC, &t); t.tv_sec += 4; clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0); say("absolute", 0); usleep(1000000); say("usleep", 0); }
static void clocks(void) { long busy = 0; struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); long until = t.tv_sec * 1000000000 + t.tv_nsec + 50000000; do { clock_gettime(CLOCK_MONOTONIC, &t); busy = 1; } while (t.tv_sec * 1000000000 + t.tv_nsec < until); say("busy", busy); struct timeval v; gettimeofday(&v, 0); say("same", v.tv_sec == time(0)); }
static void forks(void) { for (int i = 0; i < 3; i++) if (!fork()) { sleep(3 - i); _exit(i); } int status; for (int i = 0; i < 3; i++) { wait(&status); say("child", WEXITSTATUS(status)); } say("none", wait(0) < 0 && errno == ECHILD); }
static void nohang(void) { pid_t pid = fork(); if (!pid) { sleep(2); _exit(7); } int status, looks = 0; while (!waitpid(pid, &status, WNOHANG)) { looks = 1; usleep(500000); } say("looked", looks); say("status", WEXITSTATUS(status)); }
static void waitid_(void) { siginfo_t i; if (!fork()) { sleep(2); _exit(9); } waitid(P_ALL, 0, &i, WEXITED); say("waitid", i.si_status); }
static void killed(void) { pid_t pid = fork(); if (!pid) { pause(); _exit(1); } sleep(1); kill(pid, SIGKILL); int status; waitpid(pid, &status, 0); say("signal", WTERMSIG(status)); }
static void crash(void) { pid_t pid = fork(); if (!pid) abort(); int status; waitpid(pid, &status, 0); say("signal", WTERMSIG(status)); }
static void spawns(void) { char *a[] = {"sh", "-c", "sleep 2; exit 4", 0}; pid_t pid; extern char **environ; posix_spawnp(&pid, "sh", 0, 0, a, environ); int status; waitpid(pid, &status, 0); say("spawned", WEXITSTATUS(status)); char *none[] = {"no-such-program", 0}; say("no program", posix_spawnp(&pid, none[0], 0, 0, none, environ) == ENOENT); say("system", WEXITSTATUS(system("sleep 1; exit 5"))); }
static void *runs(void *a) { execl("/bin/sh", "sh", "-c", "sleep 1; echo other program", (char *)0); return a; }
static void exec_(void) { pthread_t t; pthread_create(&t, 0, runs, 0); pthread_join(t, 0); }
static void daemon_(void) { if (!fork()) { setsid(); if (fork()) _exit(0); sleep(5); say("daemon", 0); _exit(0); } wait(0); say("parent", 0); }

static volatile sig_atomic_t got;
static void handler(int signal) { got = signal; }
static void signal_(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); pid_t parent = getpid(); if (!fork()) { sleep(2); kill(parent, SIGUSR1); _exit(0); } say("pause", pause()); say("got", got == SIGUSR1); wait(0); }
static void interrupted(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); pid_t parent = getpid(); if (!fork()) { sleep(2); kill(parent, SIGUSR1); _exit(0); } struct timespec t = {9, 0}; say("EINTR", nanosleep(&t, 0) < 0 && errno == EINTR); a_pipe(); char c; if (!fork()) { sleep(2); kill(parent, SIGUSR1); _exit(0); } say("EINTR", read(ends[0], &c, 1) < 0 && errno == EINTR); }
static void restarted(void) { struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}; sigaction(SIGUSR1, &a, 0); pid_t parent = getpid(); a_pipe(); if (!fork()) { sleep(2); kill(parent, SIGUSR1); sleep(2); if (write(ends[1], "x", 1) < 0) _exit(1); _exit(0); } char c; say("read", read(ends[0], &c, 1)); say("got", got == SIGUSR1); }
static void suspend(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); sigset_t s, none; sigemptyset(&s); sigemptyset(&none); sigaddset(&s, SIGUSR1); sigprocmask(SIG_BLOCK, &s, 0); raise(SIGUSR1); say("before", got); say("sigsuspend", sigsuspend(&none)); say("got", got == SIGUSR1); got = 0; raise(SIGUSR1); struct timespec t = {1, 0}; say("ppoll", ppoll(0, 0, &t, &none)); say("got", got == SIGUSR1); }
static void sigwait_(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigprocmask(SIG_BLOCK, &s, 0); pid_t parent = getpid(); if (!fork()) { sleep(2); kill(parent, SIGUSR1); _exit(0); } int n; sigwait(&s, &n); say("sigwait", n == SIGUSR1); struct timespec t = {3, 0}; say("sigtimedwait", sigtimedwait(&s, 0, &t) < 0 && errno == EAGAIN); }
static void alarm_(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGALRM, &a, 0); alarm(9); say("left", alarm(3)); pause(); say("alarm", got == SIGALRM); struct itimerval v = {{0, 0}, {2, 0}}, old; setitimer(ITIMER_REAL, &v, 0); getitimer(ITIMER_REAL, &old); say("set", old.it_value.tv_sec >= 1); pause(); say("itimer", 0); }
static void fired(union sigval value) { say("fired", value.sival_int); }
static void timer(void) { struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7, .sigev_notify_function = fired}; timer_t t; timer_create(CLOCK_MONOTONIC, &e, &t); struct itimerspec s = {{2, 0}, {3, 0}}; timer_settime(t, 0, &s, 0); sleep(6); timer_delete(t); sleep(5); say("over", 0); }
static void random_(void) { unsigned char b[16], o[16]; say("getrandom", getrandom(b, 16, 0)); say("getentropy", getentropy(o, 16)); say("differ", memcmp(b, o, 16) != 0); }
static void *spins(void *a) { while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) sched_yield(); return a; }
static void yields(void) { pthread_t t; pthread_create(&t, 0, spins, 0); sleep(1); __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); pthread_join(t, 0); say("joined", 0); }
static void deadlock(void) { pthread_mutex_lock(&mutex); pthread_mutex_lock(&mutex); }
static void unheard(void) { pthread_t t; pthread_create(&t, 0, signals, 0); pthread_mutex_lock(&mutex); sleep(2); pthread_cond_wait(&condition, &mutex); pthread_cond_wait(&condition, &mutex); }


static void bomb(void) { int *all = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pid_t root = getpid(); for (int i = 0; i < 7; i++) if (fork() < 0) exit(1); __atomic_add_fetch(all, 1, __ATOMIC_RELAXED); while (wait(0) > 0) {} if (getpid() == root) say("processes", *all); }
static void segv(void) { say("before", 0); *(volatile int *)0 = 1; }
static void kills_itself(void) { say("before", 0); if (!fork()) { pause(); _exit(0); } sleep(1); kill(getpid(), SIGKILL); }
static void computes(void) { for (volatile long i = 0; i < 300000000; i++) {} say("computed", 0); }
static void kill_group(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0); int *all = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); for (int i = 0; i < 3; i++) if (!fork()) { if (i == 2) setsid(); pause(); __atomic_add_fetch(all, got, __ATOMIC_RELAXED); pause(); __atomic_add_fetch(all, got, __ATOMIC_RELAXED); _exit(0); } sleep(1); say("kill", kill(0, SIGUSR1)); say("got", got == SIGUSR1); got = 0; sleep(1); say("two", *all == 2 * SIGUSR1); say("kill", kill(-1, SIGUSR2)); say("got", got); sleep(1); say("three", *all == 2 * SIGUSR1 + 3 * SIGUSR2); say("own group", kill(-getpgrp(), SIGKILL)); }

static pthread_mutex_t *shared(int robust, int inherit) { pthread_mutex_t *m = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setpshared(&a, 1); if (robust) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); if (inherit) pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT); pthread_mutex_init(m, &a); return m; }
static void *dies(void *m) { pthread_mutex_lock(m); sleep(2); return 0; }
static void robust_with(int inherit) { pthread_mutex_t *m = shared(1, inherit); for (int how = 0; how < 3; how++) { pthread_t t; pid_t pid = -1; if (how == 2) pthread_create(&t, 0, dies, m); else if (!(pid = fork())) { pthread_mutex_lock(m); if (how) { sleep(9); abort(); } sleep(2); _exit(0); } sleep(1); if (how == 1) kill(pid, SIGKILL); int r = pthread_mutex_lock(m); say("owner died", r == EOWNERDEAD); pthread_mutex_consistent(m); say("unlock", pthread_mutex_unlock(m)); } }
static void robust(void) { robust_with(0); }
static void robust_pi(void) { robust_with(1); }
static pthread_mutex_t *between;
static void *adds(void *a) { for (int i = 0; i < 5; i++) { pthread_mutex_lock(between); int c = count; usleep(100000); count = c + 1; pthread_mutex_unlock(between); sched_yield(); } return a; }
static void pi(void) { between = shared(0, 1); pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, adds, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0); say("added", count); pthread_mutex_lock(between); if (!fork()) { struct timespec u; clock_gettime(CLOCK_REALTIME, &u); u.tv_sec += 3; say("timedlock", pthread_mutex_timedlock(between, &u) == ETIMEDOUT); say("trylock", pthread_mutex_trylock(between) == EBUSY); _exit(0); } wait(0); }
static uint32_t words[2];
static long futex(uint32_t *at, int work, uint32_t value, unsigned long other, uint32_t *to, uint32_t last) { return syscall(SYS_futex, at, work, value, other, to, last); }
static void *waits_bits(void *bits) { futex(words, FUTEX_WAIT_BITSET_PRIVATE, 0, 0, 0, (uint32_t)(long)bits); __atomic_add_fetch(&count, (int)(long)bits, __ATOMIC_RELAXED); return 0; }
static void bits(void) { pthread_t t[3]; for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, waits_bits, (void *)(1l << i)); sleep(1); say("none", futex(words, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, 0, 8)); say("shared", futex(words, FUTEX_WAKE, 9, 0, 0, 0)); say("one", futex(words, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, 0, 2)); sleep(1); say("bits", count); say("invalid", futex(words, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, 0, 0) < 0 && errno == EINVAL);
    say("other value", futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 0, 9, words + 1, 1) < 0 && errno == EAGAIN); say("moved", futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 0, 9, words + 1, 0)); say("left", futex(words, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0)); say("one", futex(words + 1, FUTEX_WAKE_PRIVATE, 0, 0, 0, 0)); words[1] = 7; say("op", futex(words, FUTEX_WAKE_OP_PRIVATE, 1, 1, words + 1, FUTEX_OP(FUTEX_OP_ADD, 0xfff, FUTEX_OP_CMP_EQ, 7))); say("word", words[1]); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); say("bits", count); }
static void *requeue_waits(void *a) { futex(words, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, 0, words + 1, 0); count++; sleep(1); say("unlock", futex(words + 1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0)); return a; }
static void requeue_pi(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, requeue_waits, 0); sleep(1); say("lock", futex(words + 1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0)); say("again", futex(words + 1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0) < 0 && errno == EDEADLK); say("moved", futex(words, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, 9, words + 1, 0)); sleep(1); say("none", count); say("unlock", futex(words + 1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0)); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); say("all", count); say("free", words[1]); say("not held", futex(words + 1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0) < 0 && errno == EPERM); }
static void *spawns_one(void *a) { char *w[] = {"sh", "-c", "sleep 1; exit 3", 0}; pid_t pid; extern char **environ; int status; posix_spawnp(&pid, "sh", 0, 0, w, environ); waitpid(pid, &status, 0); __atomic_add_fetch(&count, WEXITSTATUS(status), __ATOMIC_RELAXED); return a; }
static void spawns_at_once(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, spawns_one, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0); say("all", count); }
static void *reads_later(void *a) { char c[8]; sleep(1); say("read", read(ends[0], c, 8)); return a; }
static void without_leader(void) { a_pipe(); pthread_t t; if (!fork()) { sleep(3); if (write(ends[1], "xy", 2) < 0) _exit(1); _exit(0); } pthread_create(&t, 0, reads_later, 0); pthread_exit(0); }
static void refused(void) { char room[256] = {0}; say("io_uring_setup", syscall(425, 1, room) < 0 && errno == ENOSYS); say("futex_waitv", syscall(449, 0, 0, 0, 0, 0) < 0 && errno == ENOSYS); say("futex_wait", syscall(455, 0, 0, 0, 0, 0, 0) < 0 && errno == ENOSYS);
#ifdef __x86_64__
    say("x32", syscall(0x40000000 | SYS_getpid) < 0 && errno == ENOSYS);
#endif
}
static int listens(struct sockaddr_in *a) { int fd = socket(AF_INET, SOCK_STREAM, 0); socklen_t n = sizeof *a; a->sin_family = AF_INET; a->sin_addr.s_addr = htonl(INADDR_LOOPBACK); bind(fd, (void *)a, n); listen(fd, 1); getsockname(fd, (void *)a, &n); return fd; }
static void all(int fd, char *at, size_t length) { for (ssize_t got; length; at += got, length -= (size_t)got) if ((got = read(fd, at, length)) <= 0) exit(1); }
static void tcp(void) { struct sockaddr_in a = {0}; int fd = listens(&a); char c[100]; if (!fork()) { int peer = accept(fd, 0, 0); for (int i = 0; i < 20; i++) { all(peer, c, 60); if (write(peer, c, 10) < 0 || write(peer, c, 30) < 0) exit(1); } _exit(0); } int peer = socket(AF_INET, SOCK_STREAM, 0); if (connect(peer, (void *)&a, sizeof a)) exit(1); struct pollfd p = {peer, POLLIN, 0}; int late = 0; for (int i = 0; i < 20; i++) { if (write(peer, c, 10) < 0 || write(peer, c, 50) < 0) exit(1); late += poll(&p, 1, 100) == 0; all(peer, c, 40); } wait(0); say("late", late); }
static void tcp_bulk(void) { struct sockaddr_in a = {0}; int fd = listens(&a); size_t much = 20000000; char *c = calloc(1, much); if (!fork()) { int peer = accept(fd, 0, 0); sleep(1); all(peer, c, much); _exit(0); } int peer = socket(AF_INET, SOCK_STREAM, 0); if (connect(peer, (void *)&a, sizeof a)) exit(1); for (size_t left = much; left; left -= 50000) if (write(peer, c, 50000) != 50000) exit(1); wait(0); say("sent", 0); }
static void flock_(void) { int fd = memfd_create("lock", 0); char path[64]; snprintf(path, sizeof path, "/proc/self/fd/%d", fd); for (int i = 0; i < 3; i++) if (!fork()) { int own = open(path, O_RDWR); say("flock", flock(own, LOCK_EX)); sleep(1); _exit(0); } while (wait(0) > 0) {} say("again", flock(fd, LOCK_SH)); }

static void *locks_second(void *a) { pthread_mutex_t *both[2] = {a ? between : &mutex, a ? &mutex : between}; pthread_mutex_lock(both[0]); sleep(1); pthread_mutex_lock(both[1]); return a; }
static void circle(void) { static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER; between = &other; pthread_t t; pthread_create(&t, 0, locks_second, &flag); pthread_create(&t, 0, locks_second, 0); for (;;) sleep(1); }

static void stops(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); int status; pid_t pid = fork(); if (!pid) { pause(); sleep(1); _exit(got == SIGUSR1 ? 3 : 4); } for (int i = 0; i < 2; i++) { sleep(1); kill(pid, SIGSTOP); waitpid(pid, &status, WUNTRACED); say("stopped", WIFSTOPPED(status)); sleep(1); kill(pid, SIGCONT); waitpid(pid, &status, WCONTINUED); say("goes on", WIFCONTINUED(status)); } kill(pid, SIGUSR1); waitpid(pid, &status, WUNTRACED); say("status", WEXITSTATUS(status)); }

static int wakes(void *a) { sleep(1); words[0] = 1; futex(words, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); return a != 0; }
static void same_memory(void) { static char stack[65536] __attribute__((aligned(16))); if (clone(wakes, stack + sizeof stack, CLONE_VM | SIGCHLD, 0) < 0) exit(1); say("woken", futex(words, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0)); wait(0); }
static void silence(void) { int e = epoll_create1(0); struct epoll_event v = {.events = EPOLLIN}; a_pipe(); epoll_ctl(e, EPOLL_CTL_ADD, ends[0], &v); struct sockaddr_in a = {0}; int fd = listens(&a); if (!fork()) { epoll_wait(e, &v, 1, -1); _exit(0); } accept(fd, 0, 0); }

static void signalfd_(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigprocmask(SIG_BLOCK, &s, 0); int fd = signalfd(-1, &s, 0), e = epoll_create1(0); pid_t parent = getpid(); for (int i = 1; i < 4; i++) if (!fork()) { sleep(i); kill(parent, SIGUSR1); _exit(0); } struct signalfd_siginfo info; say("read", read(fd, &info, sizeof info) == sizeof info); struct pollfd p = {fd, POLLIN, 0}; say("poll", poll(&p, 1, -1)); say("read", read(fd, &info, sizeof info) == sizeof info); struct epoll_event v = {.events = EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, fd, &v); say("epoll", epoll_wait(e, &v, 1, -1)); }

static int fails(long result, int error) { return result < 0 && errno == error; }
static void invalid(void) {
    struct timespec early = {-1, 0}, much = {0, 1000000000}, huge = {INT64_MAX, 0}, *none = (void *)8; struct timeval before = {-1, 0}; struct itimerspec s = {{0, 0}, {1, -1}}; struct itimerval v = {{0, 0}, {-1, 0}}; timer_t t; sigset_t set; sigemptyset(&set); int e = epoll_create1(0), fd = timerfd_create(CLOCK_MONOTONIC, 0); struct epoll_event event; a_pipe();
    say("poll", fails(syscall(SYS_ppoll, 0, -1l, &huge, 0, 8), EINVAL) + fails(syscall(SYS_ppoll, 8, 1, 0, 0, 8), EFAULT) + fails(ppoll(0, 0, &early, 0), EINVAL) + fails(syscall(SYS_ppoll, 0, 0, none, 0, 8), EFAULT));
    say("select", fails(syscall(SYS_pselect6, 1, 8, 0, 0, 0, 0), EFAULT) + fails(syscall(SYS_pselect6, 0, 0, 0, 0, &much, 0), EINVAL) + fails(select(0, 0, 0, 0, &before), EINVAL));
    say("sleep", fails(syscall(SYS_nanosleep, 0, 0), EFAULT) + fails(nanosleep(&early, 0), EINVAL) + fails(nanosleep(&much, 0), EINVAL) + fails(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, none, 0), EFAULT) + fails(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &much, 0), EINVAL));
    say("futex", fails(futex(words, FUTEX_WAIT_PRIVATE, 0, (unsigned long)&early, 0, 0), EINVAL) + fails(futex(words, FUTEX_WAIT_BITSET_PRIVATE, 0, 8, 0, 1), EFAULT));
    say("others", fails(sigtimedwait(&set, 0, &much), EINVAL) + fails(syscall(SYS_epoll_pwait2, e, &event, 1, &early, 0, 8), EINVAL));
    say("timers", fails(timerfd_settime(fd, 0, &s, 0), EINVAL) + fails(timerfd_settime(fd, 0, (void *)8, 0), EFAULT) + fails(setitimer(ITIMER_REAL, &v, 0), EINVAL) + fails(syscall(SYS_timer_create, CLOCK_MONOTONIC, 8, &t), EFAULT) + !timer_create(CLOCK_MONOTONIC, 0, &t) + fails(timer_settime(t, 0, &s, 0), EINVAL));
    s.it_value = huge; say("huge", timerfd_settime(fd, 0, &s, 0) + timer_settime(t, 0, &s, 0)); s.it_value = early; say("left", timerfd_gettime(fd, &s) == 0 && s.it_value.tv_sec > 1000000000);
    say("clocks", fails(clock_gettime(77, &early), EINVAL) + (timespec_get(&early, TIME_UTC) == TIME_UTC && early.tv_sec - time(0) == 0));
}
/* The end of the first timer is not a time that anything waits for; the second has another number. */
static void closed(void) { struct itimerspec s = {{0, 0}, {1, 0}}; uint64_t v; int one = timerfd_create(CLOCK_MONOTONIC, 0), two = timerfd_create(CLOCK_MONOTONIC, 0), three; s.it_value.tv_sec = 2; timerfd_settime(two, 0, &s, 0); three = dup(two); close(two); say("read", read(three, &v, 8)); s.it_value.tv_sec = 1; timerfd_settime(one, 0, &s, 0); close(one); a_pipe(); later(3); say("read", read(ends[0], &v, 3)); s.it_value.tv_sec = s.it_interval.tv_sec = 1; timerfd_settime(three, 0, &s, 0); close(three); pthread_mutex_lock(&mutex); pthread_mutex_lock(&mutex); }

static mtx_t plain;
static int counts(void *a) { for (int i = 0; i < 5; i++) { mtx_lock(&plain); int c = count; sched_yield(); count = c + 1; mtx_unlock(&plain); } return a != 0; }
static void *tries(void *a) { struct timespec t; timespec_get(&t, TIME_UTC); t.tv_sec += 2; pthread_rwlock_t *l = a; say("timedrdlock", pthread_rwlock_timedrdlock(l, &t) == ETIMEDOUT); t.tv_sec++; say("timedwrlock", pthread_rwlock_timedwrlock(l, &t) == ETIMEDOUT); return 0; }
static void timed(void) { sem_t s; sem_init(&s, 0, 0); struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += 2; say("sem_timedwait", fails(sem_timedwait(&s, &t), ETIMEDOUT)); pthread_rwlock_t l; pthread_rwlock_init(&l, 0); pthread_rwlock_wrlock(&l); pthread_t p; pthread_create(&p, 0, tries, &l); pthread_join(p, 0); mtx_init(&plain, mtx_plain); thrd_t c[2]; for (int i = 0; i < 2; i++) thrd_create(&c[i], counts, 0); for (int i = 0; i < 2; i++) thrd_join(c[i], 0); say("counted", count); say("mtx_trylock", mtx_trylock(&plain)); say("again", mtx_trylock(&plain) == thrd_busy); }

static void remaining(void) { struct sigaction a = {.sa_handler = handler}; sigaction(SIGALRM, &a, 0); struct timespec t = {9, 0}, u; alarm(2); say("interrupted", nanosleep(&t, &t) < 0 && errno == EINTR); say("left", t.tv_sec); alarm(3); say("interrupted", clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &u) == EINTR); say("left", u.tv_sec); alarm(1); say("sleep", sleep(5)); struct timeval v = {2, 0}; say("select", select(0, 0, 0, 0, &v)); say("left", v.tv_sec + v.tv_usec); }

/* The schedule does not control what these wait for. */
static void fifo(void) { char path[] = "/tmp/callsXXXXXX"; if (!mkdtemp(path) || chdir(path) || mkfifo("fifo", 0600)) exit(1); if (!fork()) { sleep(3); int fd = open("fifo", O_WRONLY); if (write(fd, "abc", 3) < 0) _exit(1); _exit(0); } char c[8]; int fd = open("fifo", O_RDONLY); say("fifo", read(fd, c, 8)); wait(0); unlink("fifo"); if (chdir("/") || rmdir(path)) exit(1); }
static void waitall(void) { char c[8]; a_pair(SOCK_STREAM); if (!fork()) { for (int i = 0; i < 4; i++) { sleep(1); if (write(ends[1], "ab", 2) < 0) _exit(1); } _exit(0); } say("recv", recv(ends[0], c, 8, MSG_WAITALL)); wait(0); }
static void lockf_(void) { int fd = memfd_create("lock", 0); if (lockf(fd, F_LOCK, 0)) exit(1); if (!fork()) { say("lockf", lockf(fd, F_LOCK, 0)); _exit(0); } sleep(2); say("unlocked", lockf(fd, F_ULOCK, 0)); wait(0); }
static void splice_(void) { int to[2]; if (pipe(to)) exit(1); a_pipe(); if (!fork()) { sleep(2); if (write(ends[1], "abc", 3) < 0) _exit(1); _exit(0); } say("splice", splice(ends[0], 0, to[1], 0, 8, 0)); wait(0); }
static void backlog(void) { struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = ""}; snprintf(a.sun_path + 1, 40, "calls-%d", getpid()); int fd = socket(AF_UNIX, SOCK_STREAM, 0); bind(fd, (void *)&a, sizeof a); listen(fd, 0); if (!fork()) { sleep(2); for (int i = 0; i < 3; i++) accept(fd, 0, 0); _exit(0); } int joined = 0; for (int i = 0; i < 3; i++) joined += !connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, sizeof a); say("joined", joined); wait(0); }
static void *sets(void *a) { sleep(1); __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); return a; }
static void spinner(void) { pthread_t t; pthread_create(&t, 0, sets, 0); while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {} say("spun", 0); pthread_join(t, 0); }

/* Waits for the standard input in three processes, one of which is a daemon's. */
static void outside(void) { char c; fork(); if (!fork()) setsid(); printf("%d\n", getpid()); fflush(stdout); say("read", read(0, &c, 1)); }

#define PROGRAM(name) {#name, name}
static const struct { const char *name; void (*run)(void); } programs[] = {
    PROGRAM(read_), PROGRAM(readv_), PROGRAM(recv_), PROGRAM(recvmsg_), PROGRAM(recvmmsg_), PROGRAM(dontwait), PROGRAM(rcvtimeo), PROGRAM(write_),
    PROGRAM(accept_), PROGRAM(poll_), PROGRAM(ppoll_), PROGRAM(select_), PROGRAM(pselect_), PROGRAM(epoll_), PROGRAM(epoll_pwait2_), PROGRAM(eventfd_), PROGRAM(timerfd_),
    PROGRAM(condition_), PROGRAM(threads), PROGRAM(semaphore), PROGRAM(barrier_), PROGRAM(cancel), PROGRAM(leader), PROGRAM(sleeps), PROGRAM(clocks),
    PROGRAM(forks), PROGRAM(nohang), PROGRAM(waitid_), PROGRAM(killed), PROGRAM(crash), PROGRAM(spawns), PROGRAM(exec_), PROGRAM(daemon_),
    PROGRAM(signal_), PROGRAM(interrupted), PROGRAM(restarted), PROGRAM(suspend), PROGRAM(sigwait_), PROGRAM(alarm_), PROGRAM(timer),
    PROGRAM(random_), PROGRAM(yields), PROGRAM(deadlock), PROGRAM(unheard), PROGRAM(circle),
    PROGRAM(bomb), PROGRAM(segv), PROGRAM(kills_itself), PROGRAM(computes), PROGRAM(kill_group), PROGRAM(robust), PROGRAM(robust_pi), PROGRAM(pi), PROGRAM(bits), PROGRAM(requeue_pi),
    PROGRAM(spawns_at_once), PROGRAM(without_leader), PROGRAM(refused), PROGRAM(tcp), PROGRAM(tcp_bulk), PROGRAM(flock_), PROGRAM(stops), PROGRAM(remaining), PROGRAM(invalid), PROGRAM(timed), PROGRAM(closed), PROGRAM(signalfd_), PROGRAM(same_memory), PROGRAM(silence),
    PROGRAM(fifo), PROGRAM(waitall), PROGRAM(lockf_), PROGRAM(splice_), PROGRAM(backlog), PROGRAM(spinner), PROGRAM(outside),
};

int main(int count, char **words) {
    seconds();
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (count > 1 && !strcmp(words[1], programs[i].name)) {
            programs[i].run();
            return 0;
        }
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        puts(programs[i].name);
    return 2;
}
