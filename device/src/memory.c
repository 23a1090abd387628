/* memory.c: addresses of device memory and of pinned host memory.
 *
 * Each device has an arena of reserved address space (PROT_NONE, raw system calls: neither the heap
 * sampler nor the machine's memory notices). As on hardware the driver hands out pages of 2 MiB: a
 * request above 1 MiB takes whole pages; smaller ones share pages in units of 512 bytes. Pages are taken
 * from the top down, also as on hardware: of equal free blocks PyTorch takes the lowest, so this decides
 * what is split and what it reserves. Addresses depend on the sequence of requests alone, so the same
 * script gets the same ones again.
 */
#include <string.h>
#include <sys/mman.h>

#include "raw.h"

#define SMALL HT_MIB          /* up to here requests share pages */
#define UNIT 512u
#define UNITS (HT_GRANULE / UNIT)
#define ARENAS 0x200000000000ull
#define ARENA_STRIDE 0x010000000000ull /* 1 TiB */
#define RESERVATIONS 0x300000000000ull /* for cuMemAddressReserve and pools */
#define NO_RESERVE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

struct range { uint64_t base, size; void *owner; int32_t device; uint8_t kind, account; };
static struct range *ranges; /* by base; they do not overlap */
static size_t count, room;
static struct { uint64_t base, size; } arenas[HT_GPU_DEVICES];

struct page { /* that small requests share; the owner of their ranges */
    uint64_t base;
    int device;
    uint32_t used;               /* units */
    uint64_t bits[UNITS / 64];   /* which units are taken */
    struct page *next;
};
static struct page *pages[HT_GPU_DEVICES];
pthread_mutex_t ht_memory_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the sorted list of ranges; all under the lock */

static size_t lower(uint64_t address) { /* the first range that starts above */
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct range *find(uint64_t address) {
    size_t i = lower(address);
    struct range *range = i ? &ranges[i - 1] : NULL;
    return range && address - range->base < range->size ? range : NULL;
}

static int grow(void) {
    size_t more = room ? room * 2 : 1024;
    struct range *fresh = ht_new(more * sizeof *fresh);
    if (!fresh)
        return 0;
    if (count)
        memcpy(fresh, ranges, count * sizeof *fresh);
    ht_drop(ranges, room * sizeof *fresh);
    ranges = fresh;
    room = more;
    return 1;
}

static int insert(struct range range) {
    if (count == room && !grow())
        return 0;
    size_t i = lower(range.base);
    memmove(&ranges[i + 1], &ranges[i], (count - i) * sizeof *ranges);
    ranges[i] = range;
    count++;
    return 1;
}

static void erase(struct range *range) {
    size_t i = (size_t)(range - ranges);
    memmove(range, range + 1, (count - i - 1) * sizeof *ranges);
    count--;
}

static void tell(const struct range *range, struct ht_place *place) {
    *place = (struct ht_place){range->base, range->size, range->device, range->kind};
}

int ht_range_owner(uint64_t address, struct ht_place *place, void **owner) {
    pthread_mutex_lock(&ht_memory_lock);
    struct range *range = find(address);
    if (range) {
        tell(range, place);
        *owner = range->owner;
    }
    pthread_mutex_unlock(&ht_memory_lock);
    return range != NULL;
}

int ht_place(uint64_t address, struct ht_place *place) {
    void *owner;
    return ht_range_owner(address, place, &owner);
}

int ht_on_device(const void *address) {
    struct ht_place place;
    uint64_t at = (uint64_t)(uintptr_t)address;
    return ht_place(at, &place) && place.kind != HT_PLACE_MANAGED && place.kind != HT_PLACE_PINNED &&
           place.kind != HT_PLACE_REGISTERED;
}

int ht_range_add(uint64_t base, uint64_t size, int device, enum ht_place_kind kind, void *owner) {
    pthread_mutex_lock(&ht_memory_lock);
    size_t i = lower(base);
    int free_below = i == 0 || ranges[i - 1].base + ranges[i - 1].size <= base;
    int free_above = i == count || base + size <= ranges[i].base;
    int done = free_below && free_above && insert((struct range){base, size, owner, device, (uint8_t)kind, 0});
    pthread_mutex_unlock(&ht_memory_lock);
    return done;
}

int ht_range_take(uint64_t base, struct ht_place *place, void **owner) {
    pthread_mutex_lock(&ht_memory_lock);
    struct range *range = find(base);
    int found = range && range->base == base;
    if (found) {
        tell(range, place);
        *owner = range->owner;
        erase(range);
    }
    pthread_mutex_unlock(&ht_memory_lock);
    return found;
}

/* ---- address space */

static uint64_t reserve_at(uint64_t hint, uint64_t bytes) {
    long at = sys_mmap((void *)hint, bytes, PROT_NONE, NO_RESERVE, -1, 0);
    return sys_failed(at) ? 0 : (uint64_t)at;
}

uint64_t ht_reserve(uint64_t bytes, uint64_t align) {
    static uint64_t next = RESERVATIONS;
    if (align < HT_GRANULE)
        align = HT_GRANULE;
    bytes = ht_round(bytes, HT_GRANULE);
    uint64_t hint = __atomic_fetch_add(&next, ht_round(bytes + align, 1ull << 30), __ATOMIC_RELAXED);
    uint64_t raw = reserve_at(ht_round(hint, align), bytes + align);
    if (!raw)
        return 0;
    uint64_t base = ht_round(raw, align); /* what sticks out on both sides goes back */
    if (base > raw)
        sys_munmap((void *)raw, base - raw);
    sys_munmap((void *)(base + bytes), raw + align - base);
    return base;
}

void ht_unreserve(uint64_t base, uint64_t bytes) { sys_munmap((void *)base, ht_round(bytes, HT_GRANULE)); }

static int open_arena(int index, uint64_t total) {
    if (arenas[index].base)
        return 1;
    for (uint64_t size = ht_round(2 * total, 1ull << 30); size >= 64 * HT_MIB; size /= 2) {
        uint64_t base = reserve_at(ARENAS + (uint64_t)index * ARENA_STRIDE, size);
        if (!base)
            continue; /* a limit on address space (ulimit -v): a smaller one may do */
        arenas[index].size = size - HT_GRANULE;
        arenas[index].base = ht_round(base, HT_GRANULE);
        return 1;
    }
    return 0;
}

/* The end of the highest gap that is large enough. */
static uint64_t gap(int index, uint64_t bytes) {
    uint64_t low = arenas[index].base, end = low + arenas[index].size;
    for (size_t i = lower(end - 1); i > 0 && ranges[i - 1].base >= low; i--) {
        uint64_t after = ht_round(ranges[i - 1].base + ranges[i - 1].size, HT_GRANULE);
        uint64_t page = ranges[i - 1].base / HT_GRANULE * HT_GRANULE;
        if (end >= after + bytes)
            return end - bytes;
        if (page < end)
            end = page;
    }
    return end - low >= bytes ? end - bytes : 0;
}

/* ---- small requests */

static int run_free(const struct page *page, uint32_t first, uint32_t units) {
    for (uint32_t i = first; i < first + units; i++)
        if (page->bits[i / 64] >> (i % 64) & 1)
            return 0;
    return 1;
}

static void mark(struct page *page, uint32_t first, uint32_t units, int taken) {
    for (uint32_t i = first; i < first + units; i++)
        if (taken)
            page->bits[i / 64] |= 1ull << (i % 64);
        else
            page->bits[i / 64] &= ~(1ull << (i % 64));
    page->used = taken ? page->used + units : page->used - units;
}

static uint64_t place_small(struct page *page, uint32_t units) {
    if (page->used + units > UNITS)
        return 0;
    for (uint32_t first = 0; first + units <= UNITS; first++)
        if (run_free(page, first, units)) {
            mark(page, first, units, 1);
            return page->base + (uint64_t)first * UNIT;
        }
    return 0;
}

/* Of a page only the ranges of its requests are in the list. That keeps others out of it, as gap()
 * deals in whole pages. Returns with the lock held, or NULL. */
static struct page *new_page(int index, int ordinal) {
    uint64_t base = 0;
    struct page *page = ht_new(sizeof *page);
    if (page && ht_charge(ordinal, HT_KIND_ALLOCATION, HT_GRANULE)) {
        pthread_mutex_lock(&ht_memory_lock);
        base = gap(index, HT_GRANULE);
        if (base)
            *page = (struct page){.base = base, .device = ordinal, .next = pages[index]};
    } else {
        ht_drop(page, sizeof *page);
        return NULL;
    }
    if (base) {
        pages[index] = page;
        return page;
    }
    pthread_mutex_unlock(&ht_memory_lock);
    ht_refund(ordinal, HT_KIND_ALLOCATION, HT_GRANULE);
    ht_drop(page, sizeof *page);
    return NULL;
}

static void free_small(struct page *page, uint64_t base, uint64_t size) {
    int index = ht_device_index(page->device);
    mark(page, (uint32_t)((base - page->base) / UNIT), (uint32_t)(size / UNIT), 0);
    if (page->used)
        return;
    for (struct page **link = &pages[index]; *link; link = &(*link)->next)
        if (*link == page) {
            *link = page->next;
            break;
        }
    ht_refund(page->device, HT_KIND_ALLOCATION, HT_GRANULE);
    ht_drop(page, sizeof *page);
}

static uint64_t small(int index, int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    uint32_t units = (uint32_t)((bytes + UNIT - 1) / UNIT);
    uint64_t at = 0;
    struct page *page;
    pthread_mutex_lock(&ht_memory_lock);
    for (page = pages[index]; page && !(at = place_small(page, units));)
        page = page->next;
    if (!at) {
        pthread_mutex_unlock(&ht_memory_lock);
        page = new_page(index, ordinal);
        if (!page)
            return 0;
        at = place_small(page, units);
    }
    if (!insert((struct range){at, (uint64_t)units * UNIT, page, ordinal, HT_PLACE_DEVICE, (uint8_t)kind})) {
        free_small(page, at, (uint64_t)units * UNIT);
        at = 0;
    }
    pthread_mutex_unlock(&ht_memory_lock);
    return at;
}

/* ---- device memory */

uint64_t ht_device_alloc(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    if (index < 0 || !bytes || !ht_context(ordinal))
        return 0;
    pthread_mutex_lock(&ht_memory_lock);
    int ready = open_arena(index, ht_device(ordinal)->total);
    pthread_mutex_unlock(&ht_memory_lock);
    if (!ready)
        return 0;
    if (bytes <= SMALL && kind == HT_KIND_ALLOCATION)
        return small(index, ordinal, kind, bytes);
    uint64_t size = ht_round(bytes, HT_GRANULE);
    if (size < bytes || !ht_charge(ordinal, kind, size))
        return 0;
    pthread_mutex_lock(&ht_memory_lock);
    uint64_t at = gap(index, size);
    int done = at && insert((struct range){at, size, NULL, ordinal, HT_PLACE_DEVICE, (uint8_t)kind});
    pthread_mutex_unlock(&ht_memory_lock);
    if (!done)
        ht_refund(ordinal, kind, size);
    return done ? at : 0;
}

/* Real memory, which takes the machine's where it is touched. */
static uint64_t map_host(uint64_t size, int ordinal, enum ht_place_kind place, enum ht_gpu_kind kind) {
    long at = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, NO_RESERVE, -1, 0);
    if (sys_failed(at))
        return 0;
    pthread_mutex_lock(&ht_memory_lock);
    int done = insert((struct range){(uint64_t)at, size, NULL, ordinal, (uint8_t)place, (uint8_t)kind});
    pthread_mutex_unlock(&ht_memory_lock);
    if (!done)
        sys_munmap((void *)at, size);
    return done ? (uint64_t)at : 0;
}

/* The kernel refuses to unmap where that would split one mapping into more than it allows; then the memory goes back
 * all the same, and only its addresses are lost. */
static void unmap_host(uint64_t at, uint64_t size) {
    if (sys_munmap((void *)at, size) != 0)
        sys_madvise((void *)at, size, MADV_DONTNEED);
}

/* Managed memory can be followed by the host: it is real, and takes the machine's memory where touched. */
uint64_t ht_managed_alloc(int ordinal, uint64_t bytes) {
    uint64_t size = ht_round(bytes, HT_GRANULE);
    if (size < bytes || !ht_charge(ordinal, HT_KIND_OTHER, size))
        return 0;
    uint64_t at = map_host(size, ordinal, HT_PLACE_MANAGED, HT_KIND_OTHER);
    if (!at)
        ht_refund(ordinal, HT_KIND_OTHER, size);
    return at;
}

/* What is pending of a range that is in the list no more. */
static void give_back(const struct range *gone) {
    ht_written(gone->base, gone->size);
    if (!gone->owner)
        ht_refund(gone->device, gone->account, gone->size);
    if (gone->kind == HT_PLACE_MANAGED)
        unmap_host(gone->base, gone->size);
}

int ht_device_free(uint64_t address) {
    pthread_mutex_lock(&ht_memory_lock);
    struct range *range = find(address);
    if (!range || range->base != address || (range->kind != HT_PLACE_DEVICE && range->kind != HT_PLACE_MANAGED)) {
        pthread_mutex_unlock(&ht_memory_lock);
        return 0;
    }
    struct range gone = *range;
    erase(range);
    if (gone.owner)
        free_small(gone.owner, gone.base, gone.size);
    pthread_mutex_unlock(&ht_memory_lock);
    give_back(&gone);
    return 1;
}

static int goes_with(const struct range *range, int ordinal) {
    return range->device == ordinal && (range->kind == HT_PLACE_DEVICE || range->kind == HT_PLACE_MANAGED);
}

/* cudaDeviceReset: what cudaMalloc gave on this device; mappings and pools go with their owners. What stays moves to a
 * list of its own, so that a hundred thousand ranges are not each erased from the middle of the others. 0: there is no
 * memory for that list, and nothing is freed. */
int ht_memory_reset(int ordinal) {
    pthread_mutex_lock(&ht_memory_lock);
    struct range *old = ranges, *kept = room ? ht_new(room * sizeof *kept) : NULL;
    size_t all = count, had = room;
    if (had && !kept) {
        pthread_mutex_unlock(&ht_memory_lock);
        return 0;
    }
    count = 0;
    for (size_t i = 0; i < all; i++)
        if (!goes_with(&old[i], ordinal))
            kept[count++] = old[i];
    ranges = kept;
    for (size_t i = all; i-- > 0;) /* the newest page is the first of its list */
        if (goes_with(&old[i], ordinal) && old[i].owner)
            free_small(old[i].owner, old[i].base, old[i].size);
    pthread_mutex_unlock(&ht_memory_lock);
    for (size_t i = 0; i < all; i++)
        if (goes_with(&old[i], ordinal))
            give_back(&old[i]);
    ht_drop(old, had * sizeof *old);
    return 1;
}

/* ---- pinned host memory: real, and resident only where touched */

uint64_t ht_host_alloc(uint64_t bytes) {
    uint64_t size = ht_round(bytes, 4096);
    int ordinal = ht_device_current();
    if (!size || !ht_charge(ordinal, HT_KIND_PINNED, size))
        return 0;
    uint64_t at = map_host(size, ordinal, HT_PLACE_PINNED, HT_KIND_PINNED);
    if (!at)
        ht_refund(ordinal, HT_KIND_PINNED, size);
    return at;
}

int ht_host_free(uint64_t address) {
    pthread_mutex_lock(&ht_memory_lock);
    struct range *range = find(address);
    if (!range || range->base != address || range->kind != HT_PLACE_PINNED) {
        pthread_mutex_unlock(&ht_memory_lock);
        return 0;
    }
    struct range gone = *range;
    erase(range);
    pthread_mutex_unlock(&ht_memory_lock);
    ht_refund(gone.device, HT_KIND_PINNED, gone.size);
    unmap_host(gone.base, gone.size);
    return 1;
}
