/* copy.c: the runtime's memory calls: allocation, copies, pinned and managed memory, what a pointer is.
 *
 *     cudaMalloc ─▶ memory.c: addresses ─▶ table.c: does it fit
 *     cudaMemcpy ─▶ shadow.c: whose bytes are known
 */
#include <string.h>

#include "runtime.h"

void ht_copy(void *to, const void *from, size_t n) {
    int to_device = ht_on_device(to), from_device = ht_on_device(from);
    if (to_device && from_device)
        ht_copied((uint64_t)to, (uint64_t)from, n);
    else if (to_device)
        ht_host_wrote((uint64_t)to, from, n);
    else if (from_device)
        ht_host_reads((uint64_t)from, to, n);
    else
        memmove(to, from, n);
}

/* Address and size may be had while a stream is captured only in relaxed mode, as with CUDA. */
int ht_malloc(uint64_t *address, uint64_t bytes) {
    if (!address)
        return CUDA_INVALID_VALUE;
    *address = 0;
    if (!ht_capture_allows())
        return CUDA_CAPTURE_UNSUPPORTED;
    if (bytes && !(*address = ht_device_alloc(ht_device_current(), HT_KIND_ALLOCATION, bytes)))
        return CUDA_OUT_OF_MEMORY;
    return CUDA_OK;
}

int ht_copy_on(void *to, const void *from, size_t n, void *stream) {
    if (n && (!to || !from))
        return CUDA_INVALID_VALUE;
    if (ht_stream_work(stream, 1)) { /* it runs with each launch of the graph, when the source may be another */
        if (ht_on_device(to))
            ht_written((uint64_t)to, n);
        return CUDA_OK;
    }
    ht_copy(to, from, n);
    return CUDA_OK;
}

#define ROWS_FOLLOWED 4096

int ht_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, void *stream) {
    if (width > to_pitch || width > from_pitch)
        return CUDA_INVALID_VALUE;
    if (width == to_pitch && width == from_pitch)
        return ht_copy_on(to, from, width * height, stream);
    if (height > ROWS_FOLLOWED && ht_on_device(to)) {
        ht_written((uint64_t)to, to_pitch * height);
        return CUDA_OK;
    }
    for (size_t row = 0; row < height; row++) {
        int error = ht_copy_on((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, stream);
        if (error)
            return error;
    }
    return CUDA_OK;
}

static int same_bytes(const uint8_t *value, size_t width) {
    for (size_t i = 1; i < width; i++)
        if (value[i] != value[0])
            return 0;
    return 1;
}

#define PATTERN 4096 /* bytes of a pattern that are worth keeping */

int ht_set_on(uint64_t to, const void *value, size_t width, size_t n, void *stream) {
    size_t bytes = width * n;
    if (!to && n)
        return CUDA_INVALID_VALUE;
    int captured = ht_stream_work(stream, 2), device = ht_on_device((void *)to);
    if (captured || (device && !same_bytes(value, width) && bytes > PATTERN)) {
        if (device)
            ht_written(to, bytes);
        return CUDA_OK;
    }
    if (device && same_bytes(value, width)) {
        ht_host_set(to, *(const uint8_t *)value, bytes);
        return CUDA_OK;
    }
    uint8_t pattern[PATTERN];
    uint8_t *into = device ? pattern : (uint8_t *)to;
    for (size_t i = 0; i < n; i++)
        memcpy(into + i * width, value, width);
    if (device)
        ht_host_wrote(to, pattern, bytes);
    return CUDA_OK;
}

/* ---- device memory */

HT_EXPORT int cudaMalloc(uint64_t *address, size_t bytes) {
    HT_NEED_CONTEXT();
    return ht_fail(ht_malloc(address, bytes));
}
HT_EXPORT int cudaMallocPitch(uint64_t *address, size_t *pitch, size_t width, size_t height) {
    HT_NEED_CONTEXT();
    *pitch = ht_round(width, 512);
    return ht_fail(ht_malloc(address, *pitch * height));
}
HT_EXPORT int cudaMallocManaged(uint64_t *address, size_t bytes, unsigned flags) {
    HT_NEED_CONTEXT();
    (void)flags;
    *address = ht_managed_alloc(ht_device_current(), bytes);
    return *address ? CUDA_OK : ht_fail(CUDA_OUT_OF_MEMORY);
}
HT_EXPORT int cudaFree(void *at) {
    HT_NEED_CONTEXT();
    if (!at)
        return CUDA_OK;
    if (!ht_capture_allows())
        return ht_fail(CUDA_CAPTURE_UNSUPPORTED);
    return ht_device_free((uint64_t)at) || ht_pool_free((uint64_t)at) ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}

/* ---- copies */

HT_EXPORT int cudaMemcpy(void *to, const void *from, size_t n, int kind) {
    HT_NEED_CONTEXT();
    (void)kind; /* the addresses say it */
    if (!ht_capture_allows())
        return ht_fail(CUDA_CAPTURE_UNSUPPORTED);
    return ht_fail(ht_copy_on(to, from, n, NULL));
}
HT_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream) {
    HT_NEED_CONTEXT();
    (void)kind;
    return ht_fail(ht_copy_on(to, from, n, stream));
}
HT_EXPORT int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n) {
    HT_NEED_CONTEXT();
    (void)to_device, (void)from_device;
    return ht_fail(ht_copy_on(to, from, n, NULL));
}
HT_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t n, void *stream) {
    HT_NEED_CONTEXT();
    (void)to_device, (void)from_device;
    return ht_fail(ht_copy_on(to, from, n, stream));
}
HT_EXPORT int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind) {
    HT_NEED_CONTEXT();
    (void)kind;
    return ht_fail(ht_copy_2d(to, to_pitch, from, from_pitch, width, height, NULL));
}
HT_EXPORT int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream) {
    HT_NEED_CONTEXT();
    (void)kind;
    return ht_fail(ht_copy_2d(to, to_pitch, from, from_pitch, width, height, stream));
}
static int batch(void **to, void *const *from, const size_t *sizes, size_t n, void *stream) {
    for (size_t i = 0; i < n; i++) {
        int error = ht_copy_on(to[i], from[i], sizes[i], stream);
        if (error)
            return error;
    }
    return CUDA_OK;
}
/* CUDA 12's form has a place for the index that failed in front of the stream; 13's has not. */
HT_EXPORT int cudaMemcpyBatchAsync(void **to, void *const *from, const size_t *sizes, size_t n, void *attributes, size_t *which, size_t kinds, void *a, void *b) {
    HT_NEED_CONTEXT();
    (void)attributes, (void)which, (void)kinds;
    return ht_fail(batch(to, from, sizes, n, ht_cuda_version() < 13000 ? b : a));
}

/* What the program's own variables on the device hold is not followed. */
HT_EXPORT int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, int kind) {
    (void)symbol, (void)from, (void)n, (void)offset, (void)kind;
    return CUDA_OK;
}
HT_EXPORT int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t n, size_t offset, int kind, void *stream) {
    (void)stream;
    return cudaMemcpyToSymbol(symbol, from, n, offset, kind);
}
HT_EXPORT int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset, int kind) {
    (void)symbol, (void)offset, (void)kind;
    memset(to, 0, n);
    ht_count_read(n);
    return CUDA_OK;
}
HT_EXPORT int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t n, size_t offset, int kind, void *stream) {
    (void)stream;
    return cudaMemcpyFromSymbol(to, symbol, n, offset, kind);
}

HT_EXPORT int cudaMemset(uint64_t to, int value, size_t n) {
    HT_NEED_CONTEXT();
    uint8_t byte = (uint8_t)value;
    return ht_fail(ht_set_on(to, &byte, 1, n, NULL));
}
HT_EXPORT int cudaMemsetAsync(uint64_t to, int value, size_t n, void *stream) {
    HT_NEED_CONTEXT();
    uint8_t byte = (uint8_t)value;
    return ht_fail(ht_set_on(to, &byte, 1, n, stream));
}
HT_EXPORT int cudaMemset2DAsync(uint64_t to, size_t pitch, int value, size_t width, size_t height, void *stream) {
    HT_NEED_CONTEXT();
    uint8_t byte = (uint8_t)value;
    if (width == pitch || height > ROWS_FOLLOWED)
        return ht_fail(ht_set_on(to, &byte, 1, pitch * height, stream));
    for (size_t row = 0; row < height; row++)
        ht_set_on(to + row * pitch, &byte, 1, width, stream);
    return CUDA_OK;
}
HT_EXPORT int cudaMemset2D(uint64_t to, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}

/* Hints about managed memory change nothing in the device table. */
HT_EXPORT int cudaMemPrefetchAsync(const void *at, size_t n) { (void)at, (void)n; return CUDA_OK; }
HT_EXPORT int cudaMemAdvise(const void *at, size_t n) { (void)at, (void)n; return CUDA_OK; }

/* ---- host memory */

HT_EXPORT int cudaHostAlloc(uint64_t *at, size_t bytes, unsigned flags) {
    HT_NEED_CONTEXT();
    (void)flags;
    if (!at)
        return ht_fail(CUDA_INVALID_VALUE);
    *at = bytes ? ht_host_alloc(bytes) : 0;
    return *at || !bytes ? CUDA_OK : ht_fail(CUDA_OUT_OF_MEMORY);
}
HT_EXPORT int cudaMallocHost(uint64_t *at, size_t bytes) { return cudaHostAlloc(at, bytes, 0); }
HT_EXPORT int cudaFreeHost(void *at) {
    return !at || ht_host_free((uint64_t)at) ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}

int ht_host_register(void *at, size_t bytes) {
    struct ht_place place;
    uint64_t base = (uint64_t)at;
    if (!at || !bytes)
        return CUDA_INVALID_VALUE;
    if (ht_place(base, &place))
        return CUDA_HOST_REGISTERED;
    if (!ht_charge(ht_device_current(), HT_KIND_PINNED, bytes))
        return CUDA_OUT_OF_MEMORY;
    if (ht_range_add(base, bytes, ht_device_current(), HT_PLACE_REGISTERED, NULL))
        return CUDA_OK;
    ht_refund(ht_device_current(), HT_KIND_PINNED, bytes);
    return CUDA_HOST_REGISTERED;
}
int ht_host_unregister(void *at) {
    struct ht_place place;
    void *owner;
    if (!ht_place((uint64_t)at, &place) || place.kind != HT_PLACE_REGISTERED || !ht_range_take((uint64_t)at, &place, &owner))
        return CUDA_HOST_NOT_REGISTERED;
    ht_refund(place.device, HT_KIND_PINNED, place.size);
    return CUDA_OK;
}
HT_EXPORT int cudaHostRegister(void *at, size_t bytes, unsigned flags) {
    HT_NEED_CONTEXT();
    (void)flags;
    return ht_fail(ht_host_register(at, bytes));
}
HT_EXPORT int cudaHostUnregister(void *at) { return ht_fail(ht_host_unregister(at)); }
HT_EXPORT int cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    struct ht_place place;
    (void)flags;
    *device = ht_place((uint64_t)host, &place) ? host : NULL;
    return *device ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}
HT_EXPORT int cudaHostGetFlags(unsigned *flags, void *at) {
    struct ht_place place;
    *flags = 0;
    return ht_place((uint64_t)at, &place) ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}

/* ---- what a pointer is */

static int memory_type(enum ht_place_kind kind) {
    switch (kind) {
    case HT_PLACE_NONE: return CUDA_MEMORY_UNREGISTERED;
    case HT_PLACE_PINNED: case HT_PLACE_REGISTERED: return CUDA_MEMORY_HOST;
    case HT_PLACE_MANAGED: return CUDA_MEMORY_MANAGED;
    default: return CUDA_MEMORY_DEVICE;
    }
}

HT_EXPORT int cudaPointerGetAttributes(struct cuda_pointer_attributes_12 *into, const void *at) {
    struct ht_place place = {0, 0, -2, HT_PLACE_NONE};
    if (!into || !at)
        return ht_fail(CUDA_INVALID_VALUE);
    ht_place((uint64_t)at, &place);
    int type = memory_type(place.kind);
    if (ht_cuda_version() >= 13000)
        memset(((struct cuda_pointer_attributes_13 *)(void *)into)->reserved, 0, sizeof(long[8]));
    into->type = type;
    into->device = place.device;
    into->device_pointer = type == CUDA_MEMORY_UNREGISTERED ? NULL : (void *)at;
    into->host_pointer = type == CUDA_MEMORY_DEVICE ? NULL : (void *)at;
    return CUDA_OK;
}

/* ---- memory of other processes. A handle names the allocation; its bytes are the owner's in the
 * device table, and are not followed. */
struct ipc { uint64_t magic, base, size; int64_t index; char rest[32]; };
_Static_assert(sizeof(struct ipc) == 64, "cudaIpcMemHandle_t");
#define IPC_MAGIC 0x6970636d65686974ull

int ht_ipc_export(void *handle, uint64_t address) {
    struct ht_place place;
    if (!handle || !ht_place(address, &place) || place.kind != HT_PLACE_DEVICE)
        return CUDA_INVALID_VALUE;
    struct ipc out = {IPC_MAGIC, place.base, place.size, ht_device_index(place.device), {0}};
    memcpy(handle, &out, sizeof out);
    return CUDA_OK;
}
int ht_ipc_import(uint64_t *address, const void *handle) {
    struct ipc in;
    memcpy(&in, handle, sizeof in);
    if (in.magic != IPC_MAGIC || !in.size)
        return CUDA_INVALID_VALUE;
    uint64_t base = ht_reserve(in.size, HT_GRANULE);
    if (!base)
        return CUDA_OUT_OF_MEMORY;
    int ordinal = ht_device_current();
    for (int i = 0; i < ht_device_count(); i++)
        if (ht_device_index(i) == in.index)
            ordinal = i;
    if (!ht_range_add(base, in.size, ordinal, HT_PLACE_IMPORTED, NULL))
        return CUDA_INVALID_VALUE;
    *address = base;
    return CUDA_OK;
}
int ht_ipc_close(uint64_t address) {
    struct ht_place place;
    void *owner;
    if (!ht_place(address, &place) || place.kind != HT_PLACE_IMPORTED || !ht_range_take(address, &place, &owner))
        return CUDA_INVALID_VALUE;
    ht_unreserve(place.base, place.size);
    return CUDA_OK;
}
HT_EXPORT int cudaIpcGetMemHandle(void *handle, void *at) { HT_NEED_CONTEXT(); return ht_fail(ht_ipc_export(handle, (uint64_t)at)); }
HT_EXPORT int cudaIpcOpenMemHandle(uint64_t *at, struct ipc handle, unsigned flags) {
    HT_NEED_CONTEXT();
    (void)flags;
    return ht_fail(ht_ipc_import(at, &handle));
}
HT_EXPORT int cudaIpcCloseMemHandle(void *at) { return ht_fail(ht_ipc_close((uint64_t)at)); }
HT_EXPORT int cudaIpcGetEventHandle(struct ipc *handle, void *event) {
    (void)event;
    *handle = (struct ipc){.magic = IPC_MAGIC};
    return CUDA_OK;
}
HT_EXPORT int cudaIpcOpenEventHandle(void **event, struct ipc handle) {
    return ht_fail(handle.magic == IPC_MAGIC ? ht_event_new(event, 2) : CUDA_INVALID_VALUE);
}
