/* lock.c: who a process is, and the lock between processes. Its word in the table names the holder by pid and
 * start time, so that the lock of one that was killed can be taken over. */
#include <time.h>

#include "table.h"

uint64_t ht_process_start(void) {
    static uint64_t start;
    static long of;
    long pid = sys_getpid();
    if (__atomic_load_n(&of, __ATOMIC_ACQUIRE) != pid) {
        uint64_t found = ht_started(0);
        __atomic_store_n(&start, found == HT_START_UNKNOWN ? 0 : found, __ATOMIC_RELAXED);
        __atomic_store_n(&of, pid, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&start, __ATOMIC_RELAXED);
}

int ht_lives(uint32_t pid, uint32_t start) {
    uint64_t found = ht_started(pid);
    return found && (found == HT_START_UNKNOWN || !start || (uint32_t)found == start);
}

/* ---- the lock between processes: its word names the holder, so that a killed one's can be taken */

static uint64_t own_word(void) { return (uint64_t)sys_getpid() | ht_process_start() << 32; }

static void pause_a_little(int spins) {
    struct timespec wait = {0, 100000};
    if (spins < 100)
        sys_pause();
    else
        nanosleep(&wait, NULL);
}

pthread_mutex_t ht_threads_lock = PTHREAD_MUTEX_INITIALIZER; /* of this process, in front of the shared word */

int ht_lock(struct ht_gpu_header *header) {
    uint64_t *word = &header->lock[0], own = own_word();
    int stolen = 0;
    pthread_mutex_lock(&ht_threads_lock);
    for (int spins = 0;; spins++) {
        uint64_t holder = 0;
        if (__atomic_compare_exchange_n(word, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
        if (spins % 128 == 127 && !ht_lives((uint32_t)holder, (uint32_t)(holder >> 32)) &&
            __atomic_compare_exchange_n(word, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            stolen = 1;
            break;
        }
        pause_a_little(spins);
    }
    uint64_t sequence = header->sequence;
    __atomic_store_n(&header->sequence, (sequence | 1) + (stolen && sequence & 1 ? 2 : 0), __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return stolen;
}

void ht_unlock(struct ht_gpu_header *header) {
    __atomic_store_n(&header->sequence, header->sequence + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&header->lock[0], 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ht_threads_lock);
}
