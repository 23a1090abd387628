/* table.h: which addresses carry a record, so that their free can be told.
 *
 *     free(p) ──▶ filter: one byte, nearly always 0 ──▶ table: is p tracked? ──▶ HT_HEAP_FREE
 *
 * Lock-free. An address is in the hands of one thread when it is added (malloc has not returned
 * yet) and when it is taken (the caller of free). So no two operations meet on one address.
 */
#ifndef HT_TABLE_H
#define HT_TABLE_H
#include <stdint.h>

#define HT_FILTER_BITS 16
#define HT_TABLE_BITS 17
#define HT_TABLE_PROBES 32

extern uint8_t ht_filter[1u << HT_FILTER_BITS];

/* A byte for 4 KiB of addresses, so that the part of the filter that a program frees by stays in the processor's
 * nearest cache. Of a heap one block in half a megabyte is tracked: a hundredth of all frees ask the table in vain. The
 * high bits part what lies 256 MiB apart. */
static inline uint8_t *ht_filter_of(uintptr_t address) {
    return &ht_filter[(uint16_t)(address >> 12 ^ address >> 28)];
}

/* The only part that every free pays for. */
static inline int ht_maybe_tracked(const void *p) {
    return __builtin_expect(__atomic_load_n(ht_filter_of((uintptr_t)p), __ATOMIC_RELAXED) != 0, 0);
}

long ht_table_reset(void);               /* an empty table; 0 or -errno */
int ht_table_add(uintptr_t address);     /* 1 added (or there already), 0 no room */
int ht_table_has(uintptr_t address);     /* 1 it is tracked */
int ht_table_take(uintptr_t address);    /* 1 it was tracked and is no longer */
uint32_t ht_table_live(void);            /* tracked addresses */
#endif
