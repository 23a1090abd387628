#include "maps.h"

#include "lock.h"

static struct ht_map maps[HT_MAPS];
static uint32_t used; /* slots 0 .. used-1 may hold something */
static uint32_t live;
static struct ht_lock lock;

void ht_maps_reset(void) {
    for (uint32_t i = 0; i < used; i++)
        maps[i].bytes = 0;
    used = live = 0;
    ht_unlock(&lock);
}

int ht_maps_any(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED) != 0; }

static int add(struct ht_map map) {
    uint32_t i = 0;
    while (i < used && maps[i].bytes)
        i++;
    if (i == HT_MAPS)
        return 0;
    maps[i] = map;
    if (i == used)
        used++;
    __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    return 1;
}

int ht_maps_add(struct ht_map map) {
    if (!ht_lock(&lock))
        return 0;
    int added = add(map);
    ht_unlock(&lock);
    return added;
}

static struct ht_map piece(const struct ht_map *of, uintptr_t from, uintptr_t to) {
    return (struct ht_map){from, to - from, (uint64_t)((double)of->weight * (double)(to - from) / (double)of->bytes)};
}

static void cut_out(struct ht_cut *cut, uintptr_t start, uintptr_t end) {
    uintptr_t from = cut->map.start, to = from + cut->map.bytes;
    uintptr_t first = start > from ? start : from, last = end < to ? end : to;
    cut->freed = last - first;
    cut->left = piece(&cut->map, from, first);
    cut->right = piece(&cut->map, last, to);
}

int ht_maps_cut(uintptr_t start, size_t bytes, struct ht_cut *cut) {
    int found = 0;
    if (!ht_lock(&lock))
        return 0;
    for (uint32_t i = 0; i < used && !found; i++) {
        struct ht_map *map = &maps[i];
        if (!map->bytes || start >= map->start + map->bytes || start + bytes <= map->start)
            continue;
        found = 1;
        cut->map = *map;
        cut_out(cut, start, start + bytes);
        *map = cut->left; /* bytes 0 frees the slot */
        if (!cut->left.bytes)
            __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
    }
    ht_unlock(&lock);
    return found;
}
