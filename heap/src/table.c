#define _GNU_SOURCE
#include "table.h"

#include <stddef.h>
#include <sys/mman.h>

#include "../../common/sys.h"

#define SLOTS (1u << HT_TABLE_BITS)
#define TAKEN 1u /* a slot that was used: a probe goes on over it, an add may fill it again */

uint8_t ht_filter[1u << HT_FILTER_BITS] __attribute__((aligned(4096)));
static uintptr_t *table; /* SLOTS addresses, anonymous memory: touched as it fills */
static uint32_t live;

static uint32_t slot_of(uintptr_t address, uint32_t probe) {
    uint64_t mixed = (address >> 4) * 0x9E3779B97F4A7C15ull;
    return ((uint32_t)(mixed >> (64 - HT_TABLE_BITS)) + probe) & (SLOTS - 1);
}

/* A count that reached 255 stays there: that byte then always leads to the table, which knows. */
static void filter_count(uint8_t *byte, int by) {
    uint8_t old = __atomic_load_n(byte, __ATOMIC_RELAXED);
    do
        if (old == 255)
            return;
    while (!__atomic_compare_exchange_n(byte, &old, (uint8_t)(old + by), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

long ht_table_reset(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    long result = sys_mmap(table, SLOTS * sizeof *table, PROT_READ | PROT_WRITE, flags | (table ? MAP_FIXED : 0), -1, 0);
    if (sys_failed(result))
        return result;
    __atomic_store_n(&table, (uintptr_t *)result, __ATOMIC_RELEASE);
    /* Fresh zero pages instead of writing them: a forked child pays for what it touches. */
    result = sys_mmap(ht_filter, sizeof ht_filter, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
    live = 0;
    return sys_failed(result) ? result : 0;
}

int ht_table_add(uintptr_t address) {
    uintptr_t *slots = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    if (!slots)
        return 0;
    for (uint32_t probe = 0; probe < HT_TABLE_PROBES; probe++) {
        uintptr_t *slot = &slots[slot_of(address, probe)];
        uintptr_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);
        if (found == address)
            return 1; /* its free went by unseen, as in a vfork child */
        if (found > TAKEN)
            continue;
        if (__atomic_compare_exchange_n(slot, &found, address, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            filter_count(ht_filter_of(address), 1);
            __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
            return 1;
        }
    }
    return 0;
}

static uintptr_t *find(uintptr_t address) {
    uintptr_t *slots = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    for (uint32_t probe = 0; slots && probe < HT_TABLE_PROBES; probe++) {
        uintptr_t *slot = &slots[slot_of(address, probe)];
        uintptr_t found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (found == address)
            return slot;
        if (found == 0)
            return NULL;
    }
    return NULL;
}

int ht_table_has(uintptr_t address) { return find(address) != NULL; }

int ht_table_take(uintptr_t address) {
    uintptr_t *slot = find(address), found = address;
    if (!slot || !__atomic_compare_exchange_n(slot, &found, TAKEN, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return 0; /* lost to another thread: a double free of the program */
    filter_count(ht_filter_of(address), -1);
    __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
    return 1;
}

uint32_t ht_table_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }
