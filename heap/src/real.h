/* real.h: the allocator behind us, glibc's or one that the user preloaded or linked. */
#ifndef HT_REAL_H
#define HT_REAL_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../include/hightide_channel.h"

struct ht_real {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
};

/* Usable from the first instruction of the process. The entries begin as functions that find the
 * allocator behind us, and memory asked for while they look comes from a small static arena. */
extern struct ht_real ht_real;

/* HT_HEAP_FOREIGN_MALLOC, HT_HEAP_BYPASSED, HT_HEAP_LATE. */
uint64_t ht_real_flags(void);

/* What glibc's malloc holds; 0 where that is not the program's, or glibc is older than 2.33. It locks the arenas. */
int ht_real_count(struct ht_malloc *count);

/* In a program that runs already: the functions that it uses. */
void ht_real_late(void);

/* The program's malloc is not ours: remembers whose it is; once, before main. */
void ht_real_bypassed(void);

/* Whether a call came out of a foreign allocator: its mappings are told as its allocations are. */
int ht_real_is_allocator(const void *return_address);
#endif
