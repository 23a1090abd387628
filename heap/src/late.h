/* late.h: frees that found the ring full.
 *
 * A lost alloc record is a gap; a lost free makes memory look alive for good. So frees wait here,
 * and no further alloc is told before they are: order at one address is kept.
 */
#ifndef HT_LATE_H
#define HT_LATE_H
#include "channel.h"

#define HT_LATE 32768

void ht_late_reset(void);
int ht_late_any(void);

/* Keeps a free for later; 0 if there is no room, or another thread is at it for too long. */
int ht_late_keep(struct ht_free item);

/* Writes as many as fit, with the caller's `tell`, which returns 0 where the ring is full; 1 if none is left. */
int ht_late_flush(int (*tell)(const struct ht_free *item));
#endif
