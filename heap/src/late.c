#include "late.h"

#include "lock.h"

static struct ht_free late[HT_LATE]; /* first in, first out: from `done` to `count` */
static uint32_t done, count;
static struct ht_lock lock;

void ht_late_reset(void) {
    done = 0;
    __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
    ht_unlock(&lock);
}

int ht_late_any(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE) != 0; }

int ht_late_keep(struct ht_free item) {
    if (!ht_lock(&lock))
        return 0;
    int kept = count < HT_LATE;
    if (kept) {
        late[count] = item;
        __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    }
    ht_unlock(&lock);
    return kept;
}

int ht_late_flush(int (*tell)(const struct ht_free *item)) {
    if (!ht_lock(&lock))
        return 0;
    while (done < count && tell(&late[done]))
        done++;
    int empty = done == count;
    if (empty) {
        done = 0;
        __atomic_store_n(&count, 0, __ATOMIC_RELEASE);
    }
    ht_unlock(&lock);
    return empty;
}
