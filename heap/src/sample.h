/* sample.h: which allocations are recorded, and the records themselves.
 *
 * Every allocation of at least 4 MiB, and of the smaller ones a Poisson sample by bytes. Each
 * thread counts bytes down to the next sampled one (DESIGN.md has the arithmetic).
 */
#ifndef HT_SAMPLE_H
#define HT_SAMPLE_H
#include <stddef.h>
#include <stdint.h>

#include "../../include/hightide_channel.h"
#include "maps.h"
#include "table.h"

#define HT_ALWAYS (4u << 20)

/* Of each thread; initial-exec, so one instruction away. */
struct ht_thread {
    uint64_t left;       /* bytes that pass before the slow path looks; < HT_ALWAYS: larger ones always go there */
    uint64_t beyond;     /* bytes of this draw that did not fit into left */
    uint64_t mean;       /* the mean this draw was made with; 0: no draw yet */
    uint64_t random;
    uint32_t tid;
    uint32_t generation; /* of the process (a fork begins a new one) in which tid and name were told */
    uint32_t busy;       /* inside the slow path: what a signal handler allocates here is not sampled */
};
extern __thread struct ht_thread ht_thread __attribute__((tls_model("initial-exec")));

/* `hook`: the frame of the function we stand in for, see native.h. p NULL: there was no memory for it, which is
 * told of at least HT_ALWAYS bytes. */
void ht_sample_slow(void *p, size_t bytes, int origin, const void *hook);

/* Tells the free of p if p is tracked; 1 if it was. Always before the memory is given back, or
 * another thread's allocation at the same address could be told first. */
int ht_sample_forget(void *p);

/* Takes back ht_sample_forget: the reallocation failed and the block lives on. */
void ht_sample_remember(void *p, const void *hook);

/* Tells what [p, p+bytes) frees of tracked mappings, before the unmapping, and says in `told` what that was:
 * where the kernel refuses to unmap, ht_sample_refused tells it all again. */
#define HT_TOLD 8 /* more pieces than that at once are counted as untracked */
struct ht_told { uint32_t count; struct ht_map pieces[HT_TOLD]; };
void ht_sample_unmapping(void *p, size_t bytes, struct ht_told *told, const void *hook);
void ht_sample_refused(const struct ht_told *told, const void *hook);

/* A new channel begins; and the process is about to end. */
void ht_sample_reset(void);
void ht_sample_finish(void);

/* Writes HT_HEAP_* into the channel's header. */
void ht_sample_flags(void);

/* The whole cost of an allocation that is not sampled: counts its bytes and says 1. Else ht_sample_slow
 * is to be told of it once it is made. */
static inline int ht_passes(size_t bytes) {
    uint64_t left = ht_thread.left;
    if (__builtin_expect(bytes > left, 0))
        return 0;
    ht_thread.left = left - bytes;
    return 1;
}

static inline void ht_sample(void *p, size_t bytes, int origin, const void *hook) {
    if (!ht_passes(bytes))
        ht_sample_slow(p, bytes, origin, hook);
}

/* The whole cost of a free of what is not tracked. */
static inline int ht_forget(void *p) { return ht_maybe_tracked(p) && ht_sample_forget(p); }
#endif
