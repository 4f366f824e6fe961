/* Flushes and atomic writes, which are newer than the headers of this machine. */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

enum { FLUSH_GLOBAL = 1 << 8, FLUSH_PERSISTENT = 1 << 9 };
enum { WITH_FLUSH = 1 << 11, WITH_ATOMIC_WRITE = 1 << 12 };
enum { GLOBAL = 1, PERSISTENT = 2 };
enum { RANGE = 0, REGION = 1 };
enum { WR_FLUSH = 14, WR_ATOMIC_WRITE = 15, WC_FLUSH = 8, WC_ATOMIC_WRITE = 9 };

/* The functions are the last ones of `struct ibv_qp_ex`. */
struct newer {
    char older[344];
    void (*atomic_write)(struct ibv_qp_ex *, uint32_t, uint64_t, const void *);
    void (*flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
};

#endif
