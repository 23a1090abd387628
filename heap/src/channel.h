/* channel.h: the writer of one shared-memory channel (../include/hightide_channel.h). */
#ifndef HT_CHANNEL_WRITER_H
#define HT_CHANNEL_WRITER_H
#include <stddef.h>
#include <stdint.h>

#include "../../common/identity.h"
#include "../../include/hightide_channel.h"

#define HT_HEAP_RING (1u << 20)

struct ht_channel {
    struct ht_header *header; /* NULL: none */
    unsigned char *ring;
    size_t mapped; /* bytes, header and ring */
};

/* Creates heap-<pid>-<start>.ring in folder and maps it; `at` (page aligned, or NULL) is where an
 * inherited mapping lies that the new one shall replace. 0, or -errno with nothing left behind. */
long ht_channel_open(struct ht_channel *channel, const char *folder, uint32_t ring_bytes, void *at);

/* Space for a record of `bytes` (a multiple of 8), marked busy; NULL: full, counted as dropped.
 * `spare`: bytes that must stay free behind it. Lock-free, safe in signal handlers. */
struct ht_record *ht_channel_reserve(struct ht_channel *channel, uint32_t bytes, uint32_t spare);

/* Makes a reserved and filled record visible to the reader. */
void ht_channel_commit(struct ht_record *record, uint32_t bytes);

/* Counts a record that was not even tried. */
void ht_channel_drop(struct ht_channel *channel, uint32_t bytes);

/* Whether `bytes` would fit now, with `spare` behind them. */
int ht_channel_room(const struct ht_channel *channel, uint32_t bytes, uint32_t spare);
#endif
