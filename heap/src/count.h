/* count.h: what glibc's malloc holds, in its own count, when the engine asks for it.
 *
 *     engine bumps malloc_seq ─▶ the next sampled call of malloc, once it is done ─▶ mallinfo2 ─▶ HT_HEAP_MALLOC
 *
 * mallinfo2 locks one arena after the other and walks its free blocks. So it is asked only by a thread that holds none
 * of those locks, and so seldom that it stays below 0.2 % of the time, whatever one count takes.
 */
#ifndef HT_COUNT_H
#define HT_COUNT_H
#include <stdint.h>

#include "../../include/hightide_channel.h"

#define HT_COUNT_PAUSE 500 /* times what the last count took, until the next */

/* A new channel begins. */
void ht_count_reset(void);

/* 1 with the count, if one is due; `now` as of ht_now. Not to be called behind a call of mmap, which a signal handler
 * may make. */
int ht_count_due(struct ht_malloc *count, uint64_t now);
#endif
