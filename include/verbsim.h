/* Injected faults, findings, and marks, for tests of programs that use libibverbs.
 *
 * A test that runs under `verbsim exec` can lose packets, make calls and completions fail, take
 * a port down, and query the mistakes of the program so far. docs/faults-on-purpose.md (`verbsim
 * help faults-on-purpose`) has a complete example.
 *
 * There is no library to link: each function looks for the simulator with dlsym when it is called
 * (with a glibc before 2.34, link with -ldl). On other devices the functions have no effect and
 * fail with ENOTSUP.
 *
 * The functions return a number, except for verbsim_findings. A negative number is an errno value:
 *
 *   -ENOTSUP  the devices are not simulated
 *   -ENODEV   the devices of this process do not include this one
 *   -EINVAL   another argument is wrong
 *
 * Except for ENOTSUP, the reason is printed to the standard error. A `qp` or `context` of NULL
 * stands for every queue pair or device, except in verbsim_port_down and verbsim_kill_device.
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

/* Declares `call`, a pointer to a function of the simulator, and `found`, which is NULL if the
 * devices are not simulated. */
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

/* Returns 1 if the devices are simulated, and 0 if not. */
static inline int verbsim_is_simulated(void)
{
    return dlsym(NULL, "verbsim_inject") != NULL;
}

/* --- Faults ---
 *
 * Except for verbsim_kill_device, a function that injects a fault returns the number of the fault,
 * from 1. The fault fires on the next `count` matching packets, calls or completions, and is then
 * over. With a `count` of 0 it fires on each match until verbsim_remove. If several faults match,
 * only the one that was injected first fires. While a fault for packets is in force, messages are
 * sent packet by packet, which is slower. */

/* Injects the rules of a fault plan as one fault. They are TOML (docs/faults.md, `verbsim help
 * faults`), such as
 *
 *   "[[rule]]\nkind = \"packet\"\neffect = \"duplicate\"\nclass = \"write\"\nnth = 3"
 *
 * Times in a rule count from the first use of a device in this process. The faults of the other
 * functions, except for verbsim_kill_device, can be written as rules too. */
static inline int64_t verbsim_inject(const char *rules)
{
    VERBSIM_CALL("verbsim_inject", (const char *), (rules));
}

/* Drops the next `count` packets that leave a queue pair of this process: requests, responses and
 * acknowledgements. */
static inline int64_t verbsim_drop_packets(const struct ibv_qp *qp, uint64_t count)
{
    VERBSIM_CALL("verbsim_drop_packets_at", (const char *, uint32_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, count));
}

/* Delays the next `count` packets that leave a queue pair. Later packets can overtake them. */
static inline int64_t verbsim_delay_packets(const struct ibv_qp *qp, uint64_t count,
                                            uint64_t microseconds)
{
    VERBSIM_CALL("verbsim_delay_packets_at", (const char *, uint32_t, uint64_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, count,
                  microseconds));
}

/* Makes the next `count` calls of a verb on a device fail with the errno value `error`, such as
 * ENOMEM, and without another effect. `verb` is its name in libibverbs, such as "ibv_post_send". A
 * verb that cannot fail, such as "ibv_ack_cq_events", is refused. */
static inline int64_t verbsim_fail_calls(const struct ibv_context *context, const char *verb,
                                         int error, uint64_t count)
{
    VERBSIM_CALL("verbsim_fail_calls_at", (const char *, const char *, int, uint64_t),
                 (verbsim_name_of(context), verb, error, count));
}

/* Turns the next `count` successful completions of a queue pair into errors with this status. The
 * effects are those of a real error: the queue pair goes to the error state, and later work is
 * flushed. */
static inline int64_t verbsim_fail_completions(const struct ibv_qp *qp, enum ibv_wc_status status,
                                               uint64_t count)
{
    VERBSIM_CALL("verbsim_fail_completions_at", (const char *, uint32_t, uint32_t, uint64_t),
                 (verbsim_name_of(qp ? qp->context : NULL), qp ? qp->qp_num : 0, (uint32_t)status,
                  count));
}

/* Takes a port down (IBV_EVENT_PORT_ERR). Ports count from 1. verbsim_remove brings the port up
 * again (IBV_EVENT_PORT_ACTIVE). */
static inline int64_t verbsim_port_down(const struct ibv_context *context, uint32_t port)
{
    VERBSIM_CALL("verbsim_port_down_at", (const char *, uint32_t), (verbsim_name_of(context), port));
}

/* Kills a device until the process ends: each of its contexts gets IBV_EVENT_DEVICE_FATAL, and its
 * verbs fail with EIO, except those that free an object, or read or acknowledge an event. Returns
 * 0, or -EIO if the device is already dead. */
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
 * number is invalid afterwards. */
static inline int64_t verbsim_remove(int64_t fault)
{
    VERBSIM_CALL("verbsim_remove", (int64_t), (fault));
}

/* --- Marks and findings --- */

/* Writes a line into the trace (`verbsim exec --trace`). Returns the number of the mark, from 1,
 * for verbsim_findings. A mark before the first use of a device has a number too, but is not in the
 * trace. */
static inline int64_t verbsim_mark(const char *text)
{
    VERBSIM_CALL("verbsim_mark", (const char *), (text));
}

/* Returns the mistakes of the program so far, in this process: those that are new or have changed
 * since the mark `since`, or all of them if `since` is 0. They are judged as if the program were
 * stopped here: what it may still do, such as reading an event, is a warning while it is not done,
 * and objects that still exist are not reported. Suppressed findings are left out.
 *
 * The text has a line of JSON for each finding (docs/json.md, `verbsim help json`), and is empty if
 * there are none. The caller frees it with free. If the function fails, it returns NULL and sets
 * errno. With `verbsim exec --diagnose` the place of a finding is exact; without it, a place in
 * unoptimized code may be a line of verbs.h. */
static inline char *verbsim_findings(int64_t since)
{
    VERBSIM_FIND("verbsim_findings", char *, (int64_t));
    if (found)
        return call(since);
    errno = ENOTSUP;
    return NULL;
}

/* Returns the number of findings that verbsim_findings returns. `what` is "error", "warning"
 * (hints included), or a class such as "VS-KEY-01"; NULL stands for all. */
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
