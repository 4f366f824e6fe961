/* Faults on purpose, findings, and marks, for tests of programs that use libibverbs.
 *
 * A test that runs under `verbsim exec` can lose packets, make calls and completions fail, take
 * a port down, and query the mistakes of the program so far. Nothing is linked: each function looks
 * for the simulator with dlsym when it is called (with a glibc before 2.34, link with -ldl). On
 * other devices the functions have no effect and return -ENOTSUP.
 *
 * Each function returns a number. A number below zero is an errno value:
 *
 *   -ENOTSUP  the devices are not simulated
 *   -ENODEV   no device has this name
 *   -EINVAL   an argument is wrong
 *
 * Except for -ENOTSUP, a line on the standard error has the reason. Objects are those of
 * libibverbs. NULL stands for all of them, except for verbsim_port_down and verbsim_kill_device.
 * Any thread may call any function at any time.
 *
 * Faults and findings are those of the calling process. A child after fork has devices of its own,
 * without its parent's faults. Devices of other processes cannot be reached.
 */
#ifndef VERBSIM_H
#define VERBSIM_H

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declares `call`, a pointer to a function of the simulator, and `found`, which is NULL if there is
 * no simulator. */
#define VERBSIM_FIND(name, result, parameters)                                                     \
    result(*call) parameters;                                                                      \
    void *found = dlsym(NULL, name); /* RTLD_DEFAULT is NULL, and needs _GNU_SOURCE. */            \
    memcpy(&call, &found, sizeof call)

#define VERBSIM_CALL(name, parameters, arguments)                                                  \
    VERBSIM_FIND(name, int64_t, parameters);                                                       \
    return found ? call arguments : -ENOTSUP

static inline const char *verbsim_name_of(const struct ibv_context *context)
{
    return context ? context->device->name : NULL;
}

/* Whether the devices are simulated: 1 or 0. */
static inline int verbsim_is_simulated(void)
{
    return dlsym(NULL, "verbsim_inject") != NULL;
}

/* --- Faults ---
 *
 * Each of these functions injects a fault, and returns its number, from 1. The fault counts matches
 * from that moment. It fires on the next `count` matches, and is then over; 0 stands for all until
 * verbsim_remove. If several faults match, only the first one fires. */

/* Injects the rules of a fault plan. They are TOML (docs/faults.md, `verbsim help faults`), such as
 *
 *   "[[rule]]\nkind = \"packet\"\neffect = \"duplicate\"\nclass = \"write\"\nnth = 3"
 *
 * Times in a rule count from the first use of a device in this process. Every fault of
 * the other functions can be written as a rule. */
static inline int64_t verbsim_inject(const char *rules)
{
    VERBSIM_CALL("verbsim_inject", (const char *), (rules));
}

/* Drops the next `count` packets that leave a queue pair: requests, responses and
 * acknowledgements. */
static inline int64_t verbsim_drop_packets(const struct ibv_qp *qp, uint64_t count)
{
    VERBSIM_CALL("verbsim_drop_packets_at", (const char *, uint32_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, count));
}

/* Delays the next `count` packets that leave a queue pair, so that others overtake them. */
static inline int64_t verbsim_delay_packets(const struct ibv_qp *qp, uint64_t count,
                                            uint64_t microseconds)
{
    VERBSIM_CALL("verbsim_delay_packets_at", (const char *, uint32_t, uint64_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, count,
                  microseconds));
}

/* Makes the next `count` calls of a verb on a device, such as "ibv_post_send", fail with an errno
 * value and no other effect. */
static inline int64_t verbsim_fail_calls(const struct ibv_context *context, const char *verb,
                                         int error, uint64_t count)
{
    VERBSIM_CALL("verbsim_fail_calls_at", (const char *, const char *, int, uint64_t),
                 (verbsim_name_of(context), verb, error, count));
}

/* Turns the next `count` successful completions of a queue pair into errors with this status, with
 * the effects of a real error: the queue pair goes to the error state, and later work is
 * flushed. */
static inline int64_t verbsim_fail_completions(const struct ibv_qp *qp, enum ibv_wc_status status,
                                               uint64_t count)
{
    VERBSIM_CALL("verbsim_fail_completions_at", (const char *, uint32_t, uint32_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, (uint32_t)status,
                  count));
}

/* Takes a port, from 1, down (IBV_EVENT_PORT_ERR). verbsim_remove brings it up again
 * (IBV_EVENT_PORT_ACTIVE). */
static inline int64_t verbsim_port_down(const struct ibv_context *context, uint32_t port)
{
    VERBSIM_CALL("verbsim_port_down_at", (const char *, uint32_t), (verbsim_name_of(context), port));
}

/* Kills a device: each of its contexts gets IBV_EVENT_DEVICE_FATAL, and its verbs fail with EIO,
 * except those that free an object. Returns 0, or -EIO if the device is already dead. */
static inline int64_t verbsim_kill_device(const struct ibv_context *context)
{
    VERBSIM_CALL("verbsim_kill_device_at", (const char *), (verbsim_name_of(context)));
}

/* Returns how often a fault has fired. */
static inline int64_t verbsim_fired(int64_t fault)
{
    VERBSIM_CALL("verbsim_fired", (int64_t), (fault));
}

/* Removes a fault. Returns how often it has fired. Packets that it has delayed stay delayed. Its
 * number is then invalid. */
static inline int64_t verbsim_remove(int64_t fault)
{
    VERBSIM_CALL("verbsim_remove", (int64_t), (fault));
}

/* --- Marks and findings --- */

/* Writes a line into the trace (`verbsim exec --trace`) once a device is in use. Returns the number
 * of the mark, from 1, for verbsim_findings. */
static inline int64_t verbsim_mark(const char *text)
{
    VERBSIM_CALL("verbsim_mark", (const char *), (text));
}

/* Returns the mistakes of the program so far, in this process: those that are new or have changed
 * since a mark, or all of them if `since` is 0. They are judged as if the program were stopped
 * here: work that it may still do is a warning, and objects that still exist are not reported.
 * Suppressed findings are left out.
 *
 * The text has a line of JSON for each finding (docs/json.md, `verbsim help json`), and is empty if
 * there are none. The caller frees it. NULL, with errno, is an error. With `verbsim exec
 * --diagnose` a place is exact; without it, a place in unoptimized code may be a line of
 * verbs.h. */
static inline char *verbsim_findings(int64_t since)
{
    VERBSIM_FIND("verbsim_findings", char *, (int64_t));
    if (found)
        return call(since);
    errno = ENOTSUP;
    return NULL;
}

/* Returns the number of findings that verbsim_findings returns. `what` is "error", "warning", or a
 * class such as "VS-KEY-01"; NULL stands for all. */
static inline int64_t verbsim_count_findings(const char *what, int64_t since)
{
    VERBSIM_CALL("verbsim_count_findings", (const char *, int64_t), (what, since));
}

#undef VERBSIM_CALL
#undef VERBSIM_FIND

#ifdef __cplusplus
}
#endif

#endif
