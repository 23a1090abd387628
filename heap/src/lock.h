/* lock.h: a lock that is only ever tried, for a bounded time. Its holder may be the frame that a
 * signal handler interrupted, or a thread that a fork left behind. Never on the hot path. */
#ifndef HT_LOCK_H
#define HT_LOCK_H
#include <stdint.h>

#include "../../common/sys.h"

struct ht_lock { uint8_t held; };

static inline int ht_lock(struct ht_lock *lock) {
    for (int spin = 0; spin < 10000; spin++) {
        if (!__atomic_test_and_set(&lock->held, __ATOMIC_ACQUIRE))
            return 1;
        sys_pause();
    }
    return 0;
}

static inline void ht_unlock(struct ht_lock *lock) { __atomic_clear(&lock->held, __ATOMIC_RELEASE); }
#endif
