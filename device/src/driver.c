/* driver.c: the driver's entry points (cu*): thin over the same core as the runtime's. Triton, NVRTC's
 * users and torch's own driver calls come here; memory management by address space is in virtual.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../../common/loader.h"
#include "runtime.h"

int ht_launch(const unsigned grid[3], const unsigned block[3], void **arguments, size_t shared, void *stream);
int ht_occupancy(int threads, size_t shared);

/* ---- start, devices */

HT_EXPORT int cuInit(unsigned flags) {
    (void)flags;
    return ht_forwarding() || !ht_device_count() ? CUDA_NO_DEVICE : CUDA_OK;
}
/* A real library asks for the version first; of one too old to be used it looks no further. */
HT_EXPORT int cuDriverGetVersion(int *version) {
    const struct ht_gpu *gpu = ht_device(0);
    if (ht_forwarding() || ht_in_real_library(__builtin_return_address(0)))
        *version = 0;
    else
        *version = gpu ? (int)gpu->driver : ht_cuda_version();
    return CUDA_OK;
}
HT_EXPORT int cuDeviceGetCount(int *count) {
    *count = ht_forwarding() ? 0 : ht_device_count();
    return CUDA_OK;
}
HT_EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ht_device_index(ordinal) < 0 ? CUDA_INVALID_DEVICE : CUDA_OK;
}
HT_EXPORT int cuDeviceGetName(char *name, int room, int device) {
    const struct ht_gpu *gpu = ht_device(device);
    if (!gpu || !name || room < 1)
        return gpu ? CUDA_INVALID_VALUE : CUDA_INVALID_DEVICE;
    snprintf(name, (size_t)room, "%s", gpu->name);
    return CUDA_OK;
}
HT_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    const struct ht_gpu *gpu = ht_device(device);
    if (!gpu)
        return CUDA_INVALID_DEVICE;
    *bytes = gpu->total;
    return CUDA_OK;
}
HT_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) { return ht_attribute(value, attribute, device); }
HT_EXPORT int cuDeviceGetUuid(unsigned char *into, int device) { return ht_uuid(device, into); }
HT_EXPORT int cuDeviceGetUuid_v2(unsigned char *into, int device) { return ht_uuid(device, into); }
HT_EXPORT int cuDeviceGetPCIBusId(char *text, int room, int device) {
    const struct ht_gpu *gpu = ht_device(device);
    if (!gpu)
        return CUDA_INVALID_DEVICE;
    snprintf(text, (size_t)room, "%s", gpu->bus);
    return CUDA_OK;
}
HT_EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device) {
    ht_attribute(minor, 76, device);
    return ht_attribute(major, 75, device);
}
HT_EXPORT int cuDeviceCanAccessPeer(int *can, int from, int to) { return ht_peer_can(can, from, to); }
HT_EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
    return ht_peer_attribute(value, attribute, from, to);
}

/* ---- contexts: one for each device, whose handle is the address of a cell */

static char cells[HT_GPU_DEVICES];
static int active[HT_GPU_DEVICES];
static __thread void *pushed[16];
static __thread unsigned depth;
static __thread int chosen; /* cuCtxSetCurrent was called: the runtime's device is the context's */

static void *context_of(int ordinal) { return &cells[ordinal]; }
static int ordinal_of(const void *context) {
    const char *cell = context;
    return cell >= cells && cell < cells + HT_GPU_DEVICES ? (int)(cell - cells) : -1;
}
static void *current_context(void) {
    return chosen || ht_has_context(ht_device_current()) ? context_of(ht_device_current()) : NULL;
}
static int set_context(const void *context) {
    if (!context) {
        chosen = 0;
        return CUDA_OK;
    }
    if (ht_device_index(ordinal_of(context)) < 0)
        return CUDA_INVALID_CONTEXT;
    ht_device_set(ordinal_of(context));
    chosen = 1;
    return CUDA_OK;
}

HT_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    int error = ht_use(device);
    if (!error) {
        *context = context_of(device);
        active[device]++;
    }
    return error;
}
HT_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    if (ht_device_index(device) >= 0 && active[device])
        active[device]--;
    return CUDA_OK;
}
HT_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active) {
    if (ht_device_index(device) < 0)
        return CUDA_INVALID_DEVICE;
    *flags = 0;
    *is_active = ht_has_context(device);
    return CUDA_OK;
}
HT_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { (void)device, (void)flags; return CUDA_OK; }
HT_EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
    ht_memory_reset(device);
    ht_context_gone(device);
    return CUDA_OK;
}
HT_EXPORT int cuCtxGetCurrent(void **context) { *context = current_context(); return CUDA_OK; }
HT_EXPORT int cuCtxSetCurrent(void *context) { return set_context(context); }
HT_EXPORT int cuCtxPushCurrent_v2(void *context) {
    if (depth == sizeof pushed / sizeof *pushed)
        return CUDA_INVALID_VALUE;
    pushed[depth++] = current_context();
    return set_context(context);
}
HT_EXPORT int cuCtxPopCurrent_v2(void **context) {
    if (context)
        *context = current_context();
    return depth ? set_context(pushed[--depth]) : CUDA_INVALID_CONTEXT;
}
static int new_context(void **context, int device) {
    int error = ht_use(device);
    if (error)
        return error;
    *context = context_of(device);
    return set_context(*context);
}
HT_EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) { (void)flags; return new_context(context, device); }
HT_EXPORT int cuCtxCreate_v4(void **context, void *params, unsigned flags, int device) { (void)params, (void)flags; return new_context(context, device); }
HT_EXPORT int cuCtxDestroy_v2(void *context) { (void)context; return CUDA_OK; }
HT_EXPORT int cuCtxGetDevice(int *device) {
    *device = ht_device_current();
    return current_context() ? CUDA_OK : CUDA_INVALID_CONTEXT;
}
HT_EXPORT int cuCtxGetDevice_v2(int *device, void *context) {
    *device = context ? ordinal_of(context) : ht_device_current();
    return CUDA_OK;
}
HT_EXPORT int cuCtxGetFlags(unsigned *flags) { *flags = 0; return CUDA_OK; }
HT_EXPORT int cuCtxGetId(void *context, unsigned long long *id) { *id = 1 + (unsigned)(context ? ordinal_of(context) : ht_device_current()); return CUDA_OK; }
HT_EXPORT int cuCtxGetApiVersion(void *context, unsigned *version) { (void)context; *version = 3020; return CUDA_OK; }
HT_EXPORT int cuCtxGetLimit(size_t *value, int limit) { return ht_limit(value, limit, NULL); }
HT_EXPORT int cuCtxSetLimit(int limit, size_t value) { return ht_limit(NULL, limit, &value); }
HT_EXPORT int cuCtxGetCacheConfig(int *config) { *config = 0; return CUDA_OK; }
HT_EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_OK;
}
HT_EXPORT int cuCtxSynchronize(void) { return ht_device_sync(); }
HT_EXPORT int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    (void)flags;
    return ht_peer_set(ht_device_current(), ordinal_of(context), 1);
}
HT_EXPORT int cuCtxDisablePeerAccess(void *context) { return ht_peer_set(ht_device_current(), ordinal_of(context), 0); }

/* ---- kernels */

/* CUfunction_attribute 0: threads; 4: registers; 5, 6: versions; 8: dynamic shared memory; the rest is 0. */
static int function_attribute(int *value, int attribute) {
    const struct ht_gpu *gpu = ht_device(ht_device_current());
    int version = gpu ? (int)(gpu->cc_major * 10 + gpu->cc_minor) : 0;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : attribute == 5 || attribute == 6 ? version
        : attribute == 8 && gpu ? (int)gpu->shared_per_block : 0;
    return CUDA_OK;
}
HT_EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) { (void)function; return function_attribute(value, attribute); }
HT_EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) { (void)kernel, (void)device; return function_attribute(value, attribute); }
HT_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function, (void)attribute, (void)value; return CUDA_OK; }
HT_EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) { (void)attribute, (void)value, (void)kernel, (void)device; return CUDA_OK; }
HT_EXPORT int cuFuncSetCacheConfig(void *function, int config) { (void)function, (void)config; return CUDA_OK; }
HT_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    (void)function;
    *blocks = ht_occupancy(threads, shared);
    return CUDA_OK;
}
HT_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads, size_t shared, unsigned flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
HT_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, void *of, size_t shared, int limit) {
    (void)function, (void)of;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = ht_occupancy(*block, shared) * (int)ht_device(ht_device_current())->sm_count;
    return CUDA_OK;
}
HT_EXPORT int cuOccupancyMaxActiveClusters(int *clusters, void *function, const void *config) {
    (void)function, (void)config;
    *clusters = (int)ht_device(ht_device_current())->sm_count / 8;
    return CUDA_OK;
}

/* `extra` holds the arguments as one buffer: {1, buffer, 2, &size, 0}. */
static int launch(const unsigned grid[3], const unsigned block[3], void **arguments, void **extra, size_t shared, void *stream) {
    if (extra && extra[0] == (void *)1 && extra[2] == (void *)2)
        ht_scan(extra[1], *(size_t *)extra[3]);
    return ht_launch(grid, block, arguments, shared, stream);
}
HT_EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    (void)f;
    return launch(grid, block, arguments, extra, shared, stream);
}
HT_EXPORT int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments) {
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, NULL);
}
HT_EXPORT int cuLaunchKernelEx(const struct cu_launch_config *c, void *f, void **arguments, void **extra) {
    (void)f;
    return launch(c->grid, c->block, arguments, extra, c->dynamic_shared, c->stream);
}
HT_EXPORT int cuLaunchHostFunc(void *stream, ht_host_call call, void *data) { return ht_stream_call(stream, call, data); }
/* A description of a tensor for the copy engine: 128 opaque bytes that only kernels read. */
HT_EXPORT int cuTensorMapEncodeTiled(void *map) { memset(map, 0, 128); return CUDA_OK; }
HT_EXPORT int cuTensorMapEncodeIm2col(void *map) { memset(map, 0, 128); return CUDA_OK; }
HT_EXPORT int cuTensorMapReplaceAddress(void *map) { (void)map; return CUDA_OK; }

/* ---- memory */

#define DRIVER_CONTEXT() do { int error_ = ht_use(ht_device_current()); if (error_) return error_; } while (0)

HT_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    uint64_t f = 0, t = 0;
    DRIVER_CONTEXT();
    int error = ht_memory_info(ht_device_current(), &f, &t);
    *free_bytes = f;
    *total = t;
    return error;
}
HT_EXPORT int cuMemAlloc_v2(uint64_t *at, size_t n) { DRIVER_CONTEXT(); return n ? ht_malloc(at, n) : CUDA_INVALID_VALUE; }
HT_EXPORT int cuMemFree_v2(uint64_t at) { return !at || ht_device_free(at) || ht_pool_free(at) ? CUDA_OK : CUDA_INVALID_VALUE; }
HT_EXPORT int cuMemAllocManaged(uint64_t *at, size_t n, unsigned flags) {
    DRIVER_CONTEXT();
    (void)flags;
    *at = ht_managed_alloc(ht_device_current(), n);
    return *at ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
HT_EXPORT int cuMemHostAlloc(uint64_t *at, size_t n, unsigned flags) {
    DRIVER_CONTEXT();
    (void)flags;
    *at = ht_host_alloc(n);
    return *at ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
HT_EXPORT int cuMemAllocHost_v2(uint64_t *at, size_t n) { return cuMemHostAlloc(at, n, 0); }
HT_EXPORT int cuMemFreeHost(void *at) { return ht_host_free((uint64_t)at) ? CUDA_OK : CUDA_INVALID_VALUE; }
HT_EXPORT int cuMemHostRegister_v2(void *at, size_t n, unsigned flags) { DRIVER_CONTEXT(); (void)flags; return ht_host_register(at, n); }
HT_EXPORT int cuMemHostUnregister(void *at) { return ht_host_unregister(at); }
HT_EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags) { (void)flags; *device = (uint64_t)host; return CUDA_OK; }
HT_EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t at) {
    struct ht_place place;
    if (!ht_place(at, &place))
        return CUDA_NOT_FOUND;
    if (base)
        *base = place.base;
    if (size)
        *size = place.size;
    return CUDA_OK;
}

HT_EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t n) { DRIVER_CONTEXT(); return ht_copy_on((void *)to, (void *)from, n, NULL); }
HT_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *s) { DRIVER_CONTEXT(); return ht_copy_on((void *)to, (void *)from, n, s); }
HT_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { DRIVER_CONTEXT(); return ht_copy_on((void *)to, from, n, NULL); }
HT_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *s) { DRIVER_CONTEXT(); return ht_copy_on((void *)to, from, n, s); }
HT_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { DRIVER_CONTEXT(); return ht_copy_on(to, (void *)from, n, NULL); }
HT_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *s) { DRIVER_CONTEXT(); return ht_copy_on(to, (void *)from, n, s); }
HT_EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n) { return cuMemcpy(to, from, n); }
HT_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *s) { return cuMemcpyAsync(to, from, n, s); }
HT_EXPORT int cuMemcpyPeer(uint64_t to, void *a, uint64_t from, void *b, size_t n) { (void)a, (void)b; return cuMemcpy(to, from, n); }
HT_EXPORT int cuMemcpyPeerAsync(uint64_t to, void *a, uint64_t from, void *b, size_t n, void *s) { (void)a, (void)b; return cuMemcpyAsync(to, from, n, s); }

static int copy_2d(const struct cuda_memcpy_2d *c, void *stream) {
    const int host = 1;
    char *to = c->dst_type == host ? c->dst_host : (char *)c->dst_device;
    const char *from = c->src_type == host ? c->src_host : (const char *)c->src_device;
    if (c->src_array || c->dst_array || !to || !from)
        return CUDA_NOT_SUPPORTED;
    return ht_copy_2d(to + c->dst_y * c->dst_pitch + c->dst_x, c->dst_pitch, from + c->src_y * c->src_pitch + c->src_x,
                      c->src_pitch, c->width, c->height, stream);
}
HT_EXPORT int cuMemcpy2D_v2(const struct cuda_memcpy_2d *c) { DRIVER_CONTEXT(); return copy_2d(c, NULL); }
HT_EXPORT int cuMemcpy2DUnaligned_v2(const struct cuda_memcpy_2d *c) { DRIVER_CONTEXT(); return copy_2d(c, NULL); }
HT_EXPORT int cuMemcpy2DAsync_v2(const struct cuda_memcpy_2d *c, void *s) { DRIVER_CONTEXT(); return copy_2d(c, s); }

#define SETS(bits, type) \
    HT_EXPORT int cuMemsetD##bits##_v2(uint64_t to, type value, size_t n) { DRIVER_CONTEXT(); return ht_set_on(to, &value, sizeof value, n, NULL); } \
    HT_EXPORT int cuMemsetD##bits##Async(uint64_t to, type value, size_t n, void *s) { DRIVER_CONTEXT(); return ht_set_on(to, &value, sizeof value, n, s); }
SETS(8, uint8_t)
SETS(16, uint16_t)
SETS(32, uint32_t)

/* Counters in device memory that streams write and wait for: known like any small copy; waiting is over at once. */
HT_EXPORT int cuStreamWriteValue32_v2(void *s, uint64_t at, uint32_t value, unsigned flags) { (void)s, (void)flags; ht_host_wrote(at, &value, sizeof value); return CUDA_OK; }
HT_EXPORT int cuStreamWriteValue64_v2(void *s, uint64_t at, uint64_t value, unsigned flags) { (void)s, (void)flags; ht_host_wrote(at, &value, sizeof value); return CUDA_OK; }
HT_EXPORT int cuStreamWaitValue32_v2(void *s, uint64_t at, uint32_t value, unsigned flags) { (void)s, (void)at, (void)value, (void)flags; return CUDA_OK; }
HT_EXPORT int cuStreamWaitValue64_v2(void *s, uint64_t at, uint64_t value, unsigned flags) { (void)s, (void)at, (void)value, (void)flags; return CUDA_OK; }

static int pointer_attribute(void *value, int attribute, uint64_t at) {
    struct ht_place place;
    int known = ht_place(at, &place), host = known && (place.kind == HT_PLACE_PINNED || place.kind == HT_PLACE_REGISTERED);
    if (!known)
        return CUDA_INVALID_VALUE;
    switch (attribute) {
    case 1: *(void **)value = context_of(place.device); return CUDA_OK;
    case 2: *(int *)value = host ? 1 : 2; return CUDA_OK;
    case 3: case 12: *(uint64_t *)value = attribute == 3 ? at : place.size; return CUDA_OK;
    case 4: *(void **)value = (void *)at; return host || place.kind == HT_PLACE_MANAGED ? CUDA_OK : CUDA_INVALID_VALUE;
    case 6: return CUDA_OK; /* synchronous operations: they all are */
    case 7: *(uint64_t *)value = place.base; return CUDA_OK; /* the allocation's id */
    case 8: *(int *)value = place.kind == HT_PLACE_MANAGED; return CUDA_OK;
    case 9: *(int *)value = place.device; return CUDA_OK;
    case 10: *(int *)value = place.kind == HT_PLACE_DEVICE; return CUDA_OK;
    case 11: *(uint64_t *)value = place.base; return CUDA_OK;
    case 13: *(int *)value = 1; return CUDA_OK;
    default: return CUDA_NOT_SUPPORTED;
    }
}
HT_EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t at) { return pointer_attribute(value, attribute, at); }
HT_EXPORT int cuPointerGetAttributes(unsigned n, const int *attributes, void **values, uint64_t at) {
    for (unsigned i = 0; i < n; i++)
        if (pointer_attribute(values[i], attributes[i], at)) /* of an unknown pointer: null, and no error */
            memset(values[i], 0, attributes[i] == 2 || (attributes[i] >= 8 && attributes[i] <= 10) ? 4 : 8);
    return CUDA_OK;
}
HT_EXPORT int cuPointerSetAttribute(const void *value, int attribute, uint64_t at) { (void)value, (void)attribute, (void)at; return CUDA_OK; }

struct ipc { char bytes[64]; };
HT_EXPORT int cuIpcGetMemHandle(void *handle, uint64_t at) { return ht_ipc_export(handle, at); }
HT_EXPORT int cuIpcOpenMemHandle_v2(uint64_t *at, struct ipc handle, unsigned flags) { (void)flags; return ht_ipc_import(at, &handle); }
HT_EXPORT int cuIpcCloseMemHandle(uint64_t at) { return ht_ipc_close(at); }

/* ---- streams, events, graphs */

HT_EXPORT int cuStreamCreate(void **s, unsigned flags) { DRIVER_CONTEXT(); return ht_stream_new(s, flags, 0); }
HT_EXPORT int cuStreamCreateWithPriority(void **s, unsigned flags, int priority) { DRIVER_CONTEXT(); return ht_stream_new(s, flags, priority); }
HT_EXPORT int cuStreamDestroy_v2(void *s) { return ht_stream_delete(s); }
HT_EXPORT int cuStreamGetFlags(void *s, unsigned *flags) { return ht_stream_flags(s, flags); }
HT_EXPORT int cuStreamGetPriority(void *s, int *priority) { return ht_stream_priority(s, priority); }
HT_EXPORT int cuStreamGetId(void *s, unsigned long long *id) { *id = ht_stream_id(s); return CUDA_OK; }
HT_EXPORT int cuStreamGetCtx(void *s, void **context) { *context = context_of(ht_stream_device(s)); return CUDA_OK; }
HT_EXPORT int cuStreamGetDevice(void *s, int *device) { *device = ht_stream_device(s); return CUDA_OK; }
HT_EXPORT int cuStreamSynchronize(void *s) { return ht_stream_sync(s); }
HT_EXPORT int cuStreamQuery(void *s) { return ht_stream_query(s); }
HT_EXPORT int cuStreamWaitEvent(void *s, void *event, unsigned flags) { (void)flags; return ht_stream_wait(s, event); }
HT_EXPORT int cuStreamIsCapturing(void *s, int *status) { return ht_capture_info(s, status, NULL, NULL, NULL, NULL); }
HT_EXPORT int cuStreamGetCaptureInfo_v2(void *s, int *status, uint64_t *id, void **graph, const void ***deps, size_t *n) {
    return ht_capture_info(s, status, id, graph, deps, n);
}
HT_EXPORT int cuStreamGetCaptureInfo_v3(void *s, int *status, uint64_t *id, void **graph, const void ***deps, const void **edges, size_t *n) {
    if (edges)
        *edges = NULL;
    return ht_capture_info(s, status, id, graph, deps, n);
}
HT_EXPORT int cuEventCreate(void **event, unsigned flags) { DRIVER_CONTEXT(); return ht_event_new(event, flags); }
HT_EXPORT int cuEventDestroy_v2(void *event) { return ht_event_delete(event); }
HT_EXPORT int cuEventRecord(void *event, void *s) { return ht_event_record(event, s); }
HT_EXPORT int cuEventQuery(void *event) { return ht_event_query(event); }
HT_EXPORT int cuEventSynchronize(void *event) { return ht_event_sync(event); }
HT_EXPORT int cuEventElapsedTime(float *ms, void *from, void *to) { return ht_event_elapsed(ms, from, to); }
HT_EXPORT int cuEventElapsedTime_v2(float *ms, void *from, void *to) { return ht_event_elapsed(ms, from, to); }

HT_EXPORT int cuProfilerStart(void) { return CUDA_OK; }
HT_EXPORT int cuProfilerStop(void) { return CUDA_OK; }

/* The driver's log of its own errors: nothing is ever in it. */
static char log_cell;
HT_EXPORT int cuLogsRegisterCallback(void *function, void *data, void **handle) {
    (void)function, (void)data;
    *handle = &log_cell;
    return CUDA_OK;
}
HT_EXPORT int cuLogsUnregisterCallback(void *handle) { return handle == &log_cell ? CUDA_OK : CUDA_INVALID_VALUE; }
HT_EXPORT int cuLogsCurrent(unsigned *iterator, unsigned flags) { (void)flags; *iterator = 0; return CUDA_OK; }
HT_EXPORT int cuLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags) {
    (void)iterator, (void)flags;
    return path ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuLogsDumpToMemory(unsigned *iterator, char *text, size_t *bytes, unsigned flags) {
    (void)iterator, (void)flags;
    if (!text || !bytes)
        return CUDA_INVALID_VALUE;
    *bytes = 0;
    return CUDA_OK;
}

/* ---- entry points by name. Callers ask for "cuMemAlloc" and mean the newest form of it. */

static void *self(void) {
    static void *handle;
    if (!handle)
        handle = ht_own_handle();
    return handle;
}

void *ht_driver_symbol(const char *name) {
    static const char *const newest[][2] = { /* where _v2 is not what a current caller means */
        {"cuCtxCreate", "cuCtxCreate_v4"}, {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3"}, {"cuDeviceGetUuid", "cuDeviceGetUuid_v2"},
    };
    char versioned[96];
    if (!name || strncmp(name, "cu", 2) != 0 || !self())
        return NULL;
    for (unsigned i = 0; i < sizeof newest / sizeof *newest; i++)
        if (strcmp(name, newest[i][0]) == 0) {
            int old = i < 2 && ht_cuda_version() < 13000;
            snprintf(versioned, sizeof versioned, "%s_v2", name);
            return ht_dlsym(self(), old ? versioned : newest[i][1]);
        }
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    void *found = ht_dlsym(self(), versioned);
    return found ? found : ht_dlsym(self(), name);
}
HT_EXPORT int cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    (void)version, (void)flags;
    *entry = ht_in_real_library(__builtin_return_address(0)) ? NULL : ht_driver_symbol(name);
    return *entry ? CUDA_OK : CUDA_NOT_FOUND;
}
HT_EXPORT int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    *entry = ht_in_real_library(__builtin_return_address(0)) ? NULL : ht_driver_symbol(name);
    if (status)
        *status = *entry ? 0 : 1;
    return *entry ? CUDA_OK : CUDA_NOT_FOUND;
}

/* ---- the runtime's way to ask for them by name */
HT_EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, unsigned long long flags, int *status) {
    (void)version, (void)flags;
    *entry = ht_driver_symbol(name);
    if (status)
        *status = *entry ? 0 : 1; /* symbol not found: not an error of the call */
    return CUDA_OK;
}
HT_EXPORT int cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags, int *status) {
    return cudaGetDriverEntryPointByVersion(name, entry, 0, flags, status);
}
