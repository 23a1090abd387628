/* virtual.c: the driver's virtual memory management, on which expandable segments stand.
 *
 *     cuMemAddressReserve ─▶ address space      cuMemCreate ─▶ physical memory, in the device table
 *                    └────────── cuMemMap ──────────┘ a range; the memory goes back when it is
 *                                                     released and mapped nowhere
 *
 * As with the driver, a mapping lies in one reservation, is undone whole, and its reservation is not given back
 * before; what is refused changes nothing.
 */
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#define PHYSICAL_MAGIC 0x7068797369636874ull
struct physical { HT_HANDLE; uint64_t size; int device, handles, maps, imported; struct cu_alloc_prop prop; };
struct reservation { uint64_t base, size; struct reservation *next; };
static struct reservation *reservations;
pthread_mutex_t ht_mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static struct reservation **reservation_of(uint64_t at, uint64_t size) { /* under the lock; a link to NULL: none holds all of it */
    struct reservation **link = &reservations;
    while (*link && (at < (*link)->base || size > (*link)->size || at - (*link)->base > (*link)->size - size))
        link = &(*link)->next;
    return link;
}

/* The part of the range from `at` on that one mapping covers; 0: not mapped. */
static uint64_t mapped_from(uint64_t at, struct ht_place *place, void **owner) {
    if (!ht_range_owner(at, place, owner) || place->kind != HT_PLACE_MAPPED)
        return 0;
    return place->base + place->size - at;
}

static int all_mapped(uint64_t at, uint64_t size, int whole) { /* whole: mappings begin and end where the range does */
    struct ht_place place;
    void *owner;
    for (uint64_t end = at + size; at < end;) {
        uint64_t part = mapped_from(at, &place, &owner);
        if (!part || (whole && (place.base != at || part > end - at)))
            return 0;
        at += part;
    }
    return 1;
}

static struct physical *physical_of(uint64_t handle) {
    return ht_is((void *)handle, PHYSICAL_MAGIC) ? (struct physical *)handle : NULL;
}

static void settle(struct physical *memory) { /* under the lock */
    if (memory->handles || memory->maps)
        return;
    if (!memory->imported)
        ht_refund(memory->device, HT_KIND_MAPPED, memory->size);
    ht_drop(memory, sizeof *memory);
}

HT_EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const struct cu_alloc_prop *prop, int option) {
    if (!bytes || !prop || option < 0 || option > 1)
        return CUDA_INVALID_VALUE;
    if (prop->location.type == 1 && ht_device_index(prop->location.id) < 0)
        return CUDA_INVALID_DEVICE;
    *bytes = HT_GRANULE;
    return CUDA_OK;
}
HT_EXPORT int cuMemAddressReserve(uint64_t *at, size_t size, size_t align, uint64_t hint, unsigned long long flags) {
    (void)hint; /* the driver may follow it or not */
    if (!at || !size || size % HT_GRANULE || align & (align - 1) || flags)
        return CUDA_INVALID_VALUE;
    struct reservation *made = ht_new(sizeof *made);
    *at = made ? ht_reserve(size, align) : 0;
    if (!*at) {
        ht_drop(made, sizeof *made);
        return CUDA_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&ht_mappings_lock);
    *made = (struct reservation){*at, size, reservations};
    reservations = made;
    pthread_mutex_unlock(&ht_mappings_lock);
    return CUDA_OK;
}

static int any_mapped(uint64_t at, uint64_t size) {
    struct ht_place place;
    for (uint64_t end = at + size; at < end; at += HT_GRANULE)
        if (ht_place(at, &place))
            return 1;
    return 0;
}
HT_EXPORT int cuMemAddressFree(uint64_t at, size_t size) {
    pthread_mutex_lock(&ht_mappings_lock);
    struct reservation **link = reservation_of(at, size), *gone = *link;
    int whole = gone && gone->base == at && gone->size == size && !any_mapped(at, size);
    if (whole)
        *link = gone->next;
    pthread_mutex_unlock(&ht_mappings_lock);
    if (!whole)
        return CUDA_INVALID_VALUE;
    ht_unreserve(at, size);
    ht_drop(gone, sizeof *gone);
    return CUDA_OK;
}

static int create(uint64_t *handle, size_t size, const struct cu_alloc_prop *prop, int imported) {
    const int on_device = 1;
    if (!handle || !prop || !size || size % HT_GRANULE)
        return CUDA_INVALID_VALUE;
    if (prop->location.type != on_device || ht_device_index(prop->location.id) < 0)
        return prop->location.type == on_device ? CUDA_INVALID_DEVICE : CUDA_NOT_SUPPORTED;
    struct physical *memory = ht_new(sizeof *memory);
    if (!memory || (!imported && (ht_use(prop->location.id) || !ht_charge(prop->location.id, HT_KIND_MAPPED, size)))) {
        ht_drop(memory, sizeof *memory);
        return CUDA_OUT_OF_MEMORY;
    }
    *memory = (struct physical){PHYSICAL_MAGIC, size, prop->location.id, 1, 0, imported, *prop};
    *handle = (uint64_t)memory;
    return CUDA_OK;
}
HT_EXPORT int cuMemCreate(uint64_t *handle, size_t size, const struct cu_alloc_prop *prop, unsigned long long flags) {
    (void)flags;
    return create(handle, size, prop, 0);
}
HT_EXPORT int cuMemRelease(uint64_t handle) {
    struct physical *memory = physical_of(handle);
    if (!memory)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ht_mappings_lock);
    int held = memory->handles > 0;
    memory->handles -= held;
    if (held)
        settle(memory);
    pthread_mutex_unlock(&ht_mappings_lock);
    return held ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuMemMap(uint64_t at, size_t size, size_t offset, uint64_t handle, unsigned long long flags) {
    struct physical *memory = physical_of(handle);
    if (!memory || !size || (at | size) % HT_GRANULE || offset || size > memory->size || flags) /* no driver takes an offset yet */
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ht_mappings_lock);
    int done = *reservation_of(at, size) && ht_range_add(at, size, memory->device, HT_PLACE_MAPPED, memory);
    memory->maps += done;
    pthread_mutex_unlock(&ht_mappings_lock);
    return done ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuMemUnmap(uint64_t at, size_t size) {
    struct ht_place place;
    void *owner;
    pthread_mutex_lock(&ht_mappings_lock);
    int whole = size && size % HT_GRANULE == 0 && all_mapped(at, size, 1);
    for (uint64_t end = at + size; whole && at < end; at = place.base + place.size) {
        ht_range_take(at, &place, &owner);
        ht_written(place.base, place.size);
        ((struct physical *)owner)->maps--;
        settle(owner);
    }
    pthread_mutex_unlock(&ht_mappings_lock);
    return whole ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuMemSetAccess(uint64_t at, size_t size, const struct cuda_access *list, size_t n) {
    if (!list || !n || !size)
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (list[i].location.type == 1 && ht_device_index(list[i].location.id) < 0)
            return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&ht_mappings_lock);
    int mapped = all_mapped(at, size, 0);
    pthread_mutex_unlock(&ht_mappings_lock);
    return mapped ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuMemGetAccess(unsigned long long *flags, const struct cuda_location *location, uint64_t at) {
    struct ht_place place;
    (void)location;
    *flags = 3; /* read and write */
    return ht_place(at, &place) && place.kind == HT_PLACE_MAPPED ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuMemGetAllocationPropertiesFromHandle(struct cu_alloc_prop *prop, uint64_t handle) {
    struct physical *memory = physical_of(handle);
    if (!memory)
        return CUDA_INVALID_VALUE;
    *prop = memory->prop;
    return CUDA_OK;
}
HT_EXPORT int cuMemRetainAllocationHandle(uint64_t *handle, uint64_t at) {
    struct ht_place place;
    void *owner;
    if (!ht_range_owner(at, &place, &owner) || place.kind != HT_PLACE_MAPPED)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ht_mappings_lock);
    ((struct physical *)owner)->handles++;
    pthread_mutex_unlock(&ht_mappings_lock);
    *handle = (uint64_t)owner;
    return CUDA_OK;
}

/* ---- between processes: a descriptor of a small file that says what it stands for */
struct shared { uint64_t magic, size; struct cu_alloc_prop prop; };
enum { AS_DESCRIPTOR = 1 };

HT_EXPORT int cuMemExportToShareableHandle(void *out, uint64_t handle, int kind, unsigned long long flags) {
    struct physical *memory = physical_of(handle);
    (void)flags;
    if (!memory || kind != AS_DESCRIPTOR)
        return memory ? CUDA_NOT_SUPPORTED : CUDA_INVALID_VALUE;
    struct shared what = {PHYSICAL_MAGIC, memory->size, memory->prop};
    long fd = syscall(SYS_memfd_create, "hightide", 1 /* MFD_CLOEXEC */);
    if (fd < 0 || write((int)fd, &what, sizeof what) != sizeof what)
        return CUDA_OUT_OF_MEMORY;
    *(int *)out = (int)fd;
    return CUDA_OK;
}
HT_EXPORT int cuMemImportFromShareableHandle(uint64_t *handle, void *in, int kind) {
    struct shared what;
    if (kind != AS_DESCRIPTOR || pread((int)(intptr_t)in, &what, sizeof what, 0) != sizeof what || what.magic != PHYSICAL_MAGIC)
        return CUDA_INVALID_VALUE;
    return create(handle, what.size, &what.prop, 1);
}
