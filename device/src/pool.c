/* pool.c: cudaMallocAsync. A pool takes chunks of the device and hands out parts of them; what its
 * release threshold does not keep goes back at a synchronisation, as CUDA documents it.
 *
 *     pool ─▶ chunk (a multiple of 32 MiB) ─▶ parts, in order of address, first fit
 */
#include <string.h>

#include "runtime.h"

#define POOL_MAGIC 0x706f6f6c6d656869ull
#define CHUNK (32 * HT_MIB) /* what pools were seen to grow by */

enum { FREE, TAKEN, UNMAPPED }; /* what a part is; the last has addresses and no memory */
struct part { uint64_t at, size; int taken; struct part *next; struct chunk *chunk; };
struct chunk { uint64_t base, size, held; struct part *first; struct chunk *next; struct pool *pool; }; /* held: without what is unmapped */
struct pool {
    HT_HANDLE;
    int device;
    struct chunk *chunks;
    uint64_t threshold, reserved, reserved_high, used, used_high;
    int flags[4];
    struct pool *next;
};
static struct pool defaults[HT_GPU_DEVICES], *made;
static struct pool *current[HT_GPU_DEVICES];
pthread_mutex_t ht_pools_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void make_defaults(void) {
    for (int i = 0; i < HT_GPU_DEVICES; i++)
        defaults[i] = (struct pool){.magic = POOL_MAGIC, .device = i, .flags = {0, 1, 1, 1}};
}

static struct pool *default_of(int ordinal) { return &defaults[ordinal % HT_GPU_DEVICES]; }
static struct pool *pool_of(void *handle) { return ht_is(handle, POOL_MAGIC) ? handle : NULL; }

static struct chunk *new_chunk(struct pool *pool, uint64_t bytes, uint64_t step) {
    uint64_t size = ht_round(bytes, step);
    struct chunk *chunk = ht_new(sizeof *chunk);
    struct part *part = ht_new(sizeof *part);
    uint64_t base = 0;
    if (chunk && part && ht_charge_quietly(pool->device, HT_KIND_POOL, size) && !(base = ht_reserve(size, HT_GRANULE)))
        ht_refund(pool->device, HT_KIND_POOL, size);
    if (!base) {
        ht_drop(chunk, sizeof *chunk);
        ht_drop(part, sizeof *part);
        return NULL;
    }
    *part = (struct part){.at = base, .size = size, .chunk = chunk};
    *chunk = (struct chunk){base, size, size, part, pool->chunks, pool};
    pool->chunks = chunk;
    pool->reserved += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return chunk;
}

static void drop_chunk(struct pool *pool, struct chunk **link) {
    struct chunk *chunk = *link;
    *link = chunk->next;
    pool->reserved -= chunk->held;
    ht_refund(pool->device, HT_KIND_POOL, chunk->held);
    ht_unreserve(chunk->base, chunk->size);
    for (struct part *part = chunk->first, *next; part; part = next) {
        next = part->next;
        ht_drop(part, sizeof *part);
    }
    ht_drop(chunk, sizeof *chunk);
}

static int is_free(const struct chunk *chunk) {
    for (const struct part *part = chunk->first; part; part = part->next)
        if (part->taken == TAKEN)
            return 0;
    return 1;
}

static void trim(struct pool *pool, uint64_t keep) {
    for (struct chunk **link = &pool->chunks; *link && pool->reserved > keep;) {
        if (is_free(*link))
            drop_chunk(pool, link);
        else
            link = &(*link)->next;
    }
}

/* Cut a free part in two, the first of them `size` bytes long. Without memory for the second it stays whole. */
static void cut(struct part *part, uint64_t size) {
    struct part *rest = part->size > size ? ht_new(sizeof *rest) : NULL;
    if (!rest)
        return;
    *rest = (struct part){part->at + size, part->size - size, FREE, part->next, part->chunk};
    part->next = rest;
    part->size = size;
}

static struct part *take(struct part *part, uint64_t size) {
    cut(part, size);
    part->taken = TAKEN;
    return part;
}

/* Take the memory from under what is free in chunks that are not. Where a pool is fragmented the driver maps its unused memory
 * anew at addresses in a row (NVIDIA describes it with cudaMallocAsync). Here it goes back to the device and is charged again. */
static void unmap_free(struct pool *pool) {
    for (struct chunk *chunk = pool->chunks; chunk; chunk = chunk->next)
        for (struct part *part = chunk->first; part; part = part->next) {
            uint64_t from = ht_round(part->at, HT_GRANULE), to = (part->at + part->size) / HT_GRANULE * HT_GRANULE;
            if (part->taken != FREE || to <= from)
                continue;
            if (from > part->at) { /* the rest comes next */
                cut(part, from - part->at);
                continue;
            }
            cut(part, to - from);
            if (part->size != to - from)
                continue;
            part->taken = UNMAPPED;
            chunk->held -= part->size;
            pool->reserved -= part->size;
            ht_refund(pool->device, HT_KIND_POOL, part->size);
        }
}

static struct part *find(struct pool *pool, uint64_t size) {
    for (struct chunk *chunk = pool->chunks; chunk; chunk = chunk->next)
        for (struct part *part = chunk->first; part; part = part->next)
            if (!part->taken && part->size >= size)
                return take(part, size);
    struct chunk *fresh = new_chunk(pool, size, CHUNK);
    if (!fresh) { /* what the pool caches goes back before it fails */
        trim(pool, 0);
        fresh = new_chunk(pool, size, CHUNK);
    }
    if (!fresh) {
        unmap_free(pool);
        fresh = new_chunk(pool, size, HT_GRANULE);
    }
    return fresh ? take(fresh->first, size) : NULL;
}

/* At a synchronisation goes what the release threshold lets go. */
static void trim_all(int ordinal) {
    pthread_mutex_lock(&ht_pools_lock);
    if (defaults[ordinal % HT_GPU_DEVICES].chunks)
        trim(default_of(ordinal), default_of(ordinal)->threshold);
    for (struct pool *pool = made; pool; pool = pool->next)
        if (pool->device == ordinal)
            trim(pool, pool->threshold);
    pthread_mutex_unlock(&ht_pools_lock);
}

static int allocate(uint64_t *at, uint64_t bytes, struct pool *pool) {
    *at = 0;
    if (!pool)
        return CUDA_INVALID_VALUE;
    if (!bytes)
        return CUDA_OK;
    if (!ht_context(pool->device))
        return CUDA_OUT_OF_MEMORY;
    ht_stream_at_sync(trim_all);
    pthread_mutex_lock(&ht_pools_lock);
    struct part *part = find(pool, ht_round(bytes, 512));
    if (part && ht_range_add(part->at, part->size, pool->device, HT_PLACE_POOL, part)) {
        *at = part->at;
        pool->used += part->size;
        if (pool->used > pool->used_high)
            pool->used_high = pool->used;
    } else if (part) {
        part->taken = FREE;
    }
    pthread_mutex_unlock(&ht_pools_lock);
    if (!*at)
        ht_refused(pool->device, HT_KIND_POOL, ht_round(bytes, CHUNK));
    return *at ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

static void join_next(struct part *part) {
    struct part *next = part->next;
    if (!next || next->taken || part->taken)
        return;
    part->size += next->size;
    part->next = next->next;
    ht_drop(next, sizeof *next);
}

int ht_pool_free(uint64_t address) {
    struct ht_place place;
    void *owner;
    if (!ht_place(address, &place) || place.kind != HT_PLACE_POOL || !ht_range_take(address, &place, &owner))
        return 0;
    struct part *part = owner;
    ht_written(part->at, part->size);
    pthread_mutex_lock(&ht_pools_lock);
    struct chunk *chunk = part->chunk;
    chunk->pool->used -= part->size;
    part->taken = FREE;
    join_next(part);
    for (struct part *before = chunk->first; before; before = before->next)
        if (before->next == part) {
            join_next(before);
            break;
        }
    pthread_mutex_unlock(&ht_pools_lock);
    return 1;
}

static struct pool *current_of(int ordinal) {
    struct pool *pool = current[ordinal % HT_GPU_DEVICES];
    return pool ? pool : default_of(ordinal);
}

static int create(void **out, const struct cuda_pool_props *props) {
    struct pool *pool = ht_new(sizeof *pool);
    if (!pool)
        return CUDA_OUT_OF_MEMORY;
    *pool = (struct pool){.magic = POOL_MAGIC, .device = props ? props->location.id : ht_device_current(), .flags = {0, 1, 1, 1}};
    pthread_mutex_lock(&ht_pools_lock);
    pool->next = made;
    made = pool;
    pthread_mutex_unlock(&ht_pools_lock);
    *out = pool;
    return CUDA_OK;
}

static int destroy(void *handle) {
    struct pool *pool = pool_of(handle);
    if (!pool)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ht_pools_lock);
    trim(pool, 0);
    for (struct pool **link = &made; *link; link = &(*link)->next)
        if (*link == pool) {
            *link = pool->next;
            break;
        }
    for (int i = 0; i < HT_GPU_DEVICES; i++)
        if (current[i] == pool)
            current[i] = NULL;
    int busy = pool->chunks != NULL; /* parts are still out: it stays in memory, unreachable by name */
    pool->magic = 0;
    pthread_mutex_unlock(&ht_pools_lock);
    if (!busy)
        ht_drop(pool, sizeof *pool);
    return CUDA_OK;
}

static int attribute(void *handle, int which, void *value, int set) {
    struct pool *pool = pool_of(handle);
    if (!pool || !value)
        return CUDA_INVALID_VALUE;
    uint64_t *wide = which == POOL_THRESHOLD ? &pool->threshold : which == POOL_RESERVED ? &pool->reserved
        : which == POOL_RESERVED_HIGH ? &pool->reserved_high : which == POOL_USED ? &pool->used
        : which == POOL_USED_HIGH ? &pool->used_high : NULL;
    if (which >= POOL_FOLLOW && which <= POOL_INTERNAL) {
        if (set)
            pool->flags[which] = *(int *)value;
        else
            *(int *)value = pool->flags[which];
        return CUDA_OK;
    }
    if (!wide || (set && (which == POOL_RESERVED || which == POOL_USED)))
        return CUDA_INVALID_VALUE;
    if (!set)
        *(uint64_t *)value = *wide;
    else if (which == POOL_THRESHOLD)
        *wide = *(uint64_t *)value;
    else /* high-water marks can only be set back to now */
        *wide = which == POOL_RESERVED_HIGH ? pool->reserved : pool->used;
    return CUDA_OK;
}

static int trim_to(void *handle, size_t keep) {
    if (!pool_of(handle))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ht_pools_lock);
    trim(pool_of(handle), keep);
    pthread_mutex_unlock(&ht_pools_lock);
    return CUDA_OK;
}

static int known_device(int device) { return ht_device_index(device) >= 0 ? CUDA_OK : CUDA_INVALID_DEVICE; }

/* The runtime's and the driver's entry points differ in name alone. */
#define BOTH(runtime, driver, parameters, body) \
    HT_EXPORT int runtime parameters { HT_NEED_CONTEXT(); return ht_fail(body); } \
    HT_EXPORT int driver parameters { HT_NEED_CONTEXT(); return ht_fail(body); }

BOTH(cudaMallocAsync, cuMemAllocAsync, (uint64_t *at, size_t n, void *stream), allocate(at, n, current_of(ht_stream_device(stream))))
BOTH(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync, (uint64_t *at, size_t n, void *pool, void *stream), ((void)stream, allocate(at, n, pool_of(pool))))
BOTH(cudaFreeAsync, cuMemFreeAsync, (void *at, void *stream),
     ((void)stream, !at || ht_pool_free((uint64_t)at) || ht_device_free((uint64_t)at) ? CUDA_OK : CUDA_INVALID_VALUE))
BOTH(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (void **pool, int device), (*pool = default_of(device), known_device(device)))
BOTH(cudaDeviceGetMemPool, cuDeviceGetMemPool, (void **pool, int device), (*pool = current_of(device), known_device(device)))
BOTH(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int device, void *pool), (current[device % HT_GPU_DEVICES] = pool_of(pool), known_device(device)))
BOTH(cudaMemPoolCreate, cuMemPoolCreate, (void **pool, const struct cuda_pool_props *props), create(pool, props))
BOTH(cudaMemPoolDestroy, cuMemPoolDestroy, (void *pool), destroy(pool))
BOTH(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, (void *pool, int which, void *value), attribute(pool, which, value, 1))
BOTH(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, (void *pool, int which, void *value), attribute(pool, which, value, 0))
BOTH(cudaMemPoolTrimTo, cuMemPoolTrimTo, (void *pool, size_t keep), trim_to(pool, keep))
BOTH(cudaMemPoolSetAccess, cuMemPoolSetAccess, (void *pool, const void *list, size_t n), ((void)list, (void)n, pool_of(pool) ? CUDA_OK : CUDA_INVALID_VALUE))
BOTH(cudaMemPoolGetAccess, cuMemPoolGetAccess, (int *flags, void *pool, void *location), ((void)location, *flags = 3, pool_of(pool) ? CUDA_OK : CUDA_INVALID_VALUE))
