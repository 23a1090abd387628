/* maps.h: tracked mmaps, which may be unmapped in parts.
 *
 * Few and slow (a system call each), so a small array under a try-lock is enough. Who cannot have
 * the lock at once (a signal handler, a fork in between) goes on without, and that is counted.
 */
#ifndef HT_MAPS_H
#define HT_MAPS_H
#include <stddef.h>
#include <stdint.h>

#define HT_MAPS 4096

struct ht_map { uintptr_t start; size_t bytes; uint64_t weight; };

/* What an unmapping does to one tracked map. It loses `freed` bytes, and up to two pieces that
 * remain (left, right; bytes 0: none), each with its share of the weight. Only `left` keeps the
 * address of the record. */
struct ht_cut { struct ht_map map; size_t freed; struct ht_map left, right; };

void ht_maps_reset(void);
int ht_maps_add(struct ht_map map);  /* 1 tracked, 0 no room */
int ht_maps_any(void);               /* whether there is anything to look for */
/* Takes the first tracked map that meets [start, start+bytes), 1 if there was one. */
int ht_maps_cut(uintptr_t start, size_t bytes, struct ht_cut *cut);
#endif
