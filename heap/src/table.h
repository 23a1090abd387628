/* table.h: which addresses carry a record, so that their free can be told.
 *
 *     free(p) ──▶ filter: one byte, nearly always 0 ──▶ table: is p tracked? ──▶ HT_HEAP_FREE
 *
 * Lock-free. An address is in the hands of one thread when it is added (malloc has not returned
 * yet) and when it is taken (the caller of free), so no two operations meet on one address.
 */
#ifndef HT_TABLE_H
#define HT_TABLE_H
#include <stdint.h>

#define HT_FILTER_BITS 16
#define HT_TABLE_BITS 17
#define HT_TABLE_PROBES 32

extern uint8_t ht_filter[1u << HT_FILTER_BITS];

static inline uint64_t ht_mix(uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15ull; }

/* The only part that every free pays for. */
static inline int ht_maybe_tracked(const void *p) {
    return __builtin_expect(
        __atomic_load_n(&ht_filter[ht_mix((uintptr_t)p) >> (64 - HT_FILTER_BITS)], __ATOMIC_RELAXED) != 0, 0);
}

long ht_table_reset(void);               /* an empty table; 0 or -errno */
int ht_table_add(uintptr_t address);     /* 1 added (or there already), 0 no room */
int ht_table_take(uintptr_t address);    /* 1 it was tracked and is no longer */
uint32_t ht_table_live(void);            /* tracked addresses */
#endif
