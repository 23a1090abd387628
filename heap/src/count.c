#define _GNU_SOURCE
#include "count.h"

#include <signal.h>

#include "../../common/identity.h"
#include "process.h"
#include "real.h"
#include "../../common/sys.h"

static uint64_t answered; /* of malloc_seq */
static uint64_t earliest; /* when the next may be */

void ht_count_reset(void) {
    __atomic_store_n(&answered, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&earliest, 0, __ATOMIC_RELAXED);
}

/* A signal handler may have interrupted malloc, and runs with its signal blocked. */
static int signals_are_blocked(void) {
    uint64_t blocked = 0;
    return sys6(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&blocked, sizeof blocked, 0, 0) != 0 || blocked;
}

int ht_count_due(struct ht_malloc *count, uint64_t now) {
    uint64_t asked = __atomic_load_n(&ht_channel.header->malloc_seq, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&answered, __ATOMIC_RELAXED);
    if (asked == last || now < __atomic_load_n(&earliest, __ATOMIC_RELAXED))
        return 0;
    if (ht_process_torn() || signals_are_blocked())
        return 0;
    if (!__atomic_compare_exchange_n(&answered, &last, asked, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return 0; /* another thread is at it */
    uint64_t began = ht_now();
    if (!ht_real_count(count))
        return 0;
    uint64_t ended = ht_now();
    count->duration_ns = ended - began;
    __atomic_store_n(&earliest, ended + HT_COUNT_PAUSE * count->duration_ns, __ATOMIC_RELAXED);
    return 1;
}
