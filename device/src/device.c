/* device.c: which devices there are and what they can do: the runtime's half and what both halves share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define THREADS 1024
#define REGISTERS 65536

static uint8_t peers[HT_GPU_DEVICES][HT_GPU_DEVICES];

static int pci_bus(const struct ht_gpu *gpu) { return (int)strtol(gpu->bus + 5, NULL, 16); }

/* By CUdevice_attribute, which cudaDeviceAttr equals. What an imaginary GPU lacks is 0. */
int ht_attribute(int *value, int attribute, int ordinal) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    if (!gpu)
        return ht_device_count() ? CUDA_INVALID_DEVICE : CUDA_NO_DEVICE;
    if (!value)
        return CUDA_INVALID_VALUE;
    int major = (int)gpu->cc_major;
    switch (attribute) {
    case 1: case 2: case 3: *value = THREADS; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 8: *value = (int)gpu->shared_per_block; break;
    case 9: *value = 65536; break;
    case 10: *value = 32; break;
    case 11: *value = 2147483647; break;
    case 12: case 82: *value = REGISTERS; break;
    case 13: *value = (int)gpu->clock_khz; break;
    case 14: case 30: *value = 512; break;
    case 51: *value = 32; break;
    case 16: *value = (int)gpu->sm_count; break;
    case 15: case 19: case 31: case 41: case 78: case 79: case 80: case 83: case 89: case 90: case 91: case 95: case 98:
    case 99: case 112: case 113: case 115: case 121: case 125: *value = 1; break;
    case 102: *value = 1; break; /* virtual memory management */
    case 103: *value = 1; break; /* its handles as file descriptors */
    case 32: *value = (int)gpu->ecc; break;
    case 33: *value = pci_bus(gpu); break;
    case 36: *value = (int)gpu->memory_khz; break;
    case 37: *value = (int)gpu->bus_bits; break;
    case 38: *value = (int)gpu->l2_bytes; break;
    case 39: *value = (int)gpu->threads_per_sm; break;
    case 40: *value = 2; break;
    case 21: case 56: case 57: case 22: case 23: *value = 131072; break;
    case 75: *value = major; break;
    case 76: *value = (int)gpu->cc_minor; break;
    case 81: *value = (int)gpu->shared_per_sm; break;
    case 87: *value = major == 6 || major == 7 || gpu->cc_minor == 0 ? 2 : 32; break;
    case 97: *value = (int)gpu->shared_optin; break;
    case 106: *value = (int)gpu->blocks_per_sm; break;
    case 108: *value = major >= 8 ? (int)gpu->l2_bytes / 4 * 3 : 0; break;
    case 109: *value = major >= 8 ? 128 << 20 : 0; break;
    case 111: *value = major >= 8 ? 1024 : 0; break;
    case 119: *value = 1; break;
    case 120: case 127: *value = major >= 9; break;
    case 126: *value = major >= 9 ? 4 : 1; break;
    case 131: case 134: *value = -1; break;
    default: *value = 0; break; /* fabric handles, multicast, RDMA, textures we have no figure for */
    }
    return CUDA_OK;
}

int ht_uuid(int ordinal, unsigned char into[16]) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    if (!gpu)
        return CUDA_INVALID_DEVICE;
    int at = 0;
    for (const char *c = gpu->uuid + 4; c[0] && c[1] && at < 16;) {
        if (*c == '-') {
            c++;
            continue;
        }
        char pair[3] = {c[0], c[1], 0};
        into[at++] = (unsigned char)strtoul(pair, NULL, 16);
        c += 2;
    }
    return CUDA_OK;
}

/* Free is what a request of this process could still get: a context it has not made yet is not in it. */
int ht_memory_info(int ordinal, uint64_t *free_bytes, uint64_t *total) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    if (!gpu)
        return CUDA_INVALID_DEVICE;
    uint64_t used = ht_in_use(ordinal);
    if (total)
        *total = gpu->total;
    if (free_bytes)
        *free_bytes = used < gpu->total ? gpu->total - used : 0;
    return CUDA_OK;
}

/* ---- the runtime's entry points */

HT_EXPORT int cudaGetDeviceCount(int *count) {
    if (!count)
        return ht_fail(CUDA_INVALID_VALUE);
    *count = ht_forwarding() ? 0 : ht_device_count();
    return *count ? CUDA_OK : ht_fail(CUDA_NO_DEVICE);
}
HT_EXPORT int cudaGetDevice(int *device) {
    if (!device)
        return ht_fail(CUDA_INVALID_VALUE);
    if (!ht_device_count())
        return ht_fail(CUDA_NO_DEVICE);
    *device = ht_device_current();
    return CUDA_OK;
}
/* Since CUDA 12 choosing a device makes its context. */
HT_EXPORT int cudaSetDevice(int device) {
    if (ht_device_index(device) < 0)
        return ht_fail(ht_device_count() ? CUDA_INVALID_DEVICE : CUDA_NO_DEVICE);
    ht_device_set(device);
    return ht_fail(ht_use(device));
}
HT_EXPORT int cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags, (void)flags;
    return ht_fail(ht_use(device));
}
HT_EXPORT int cudaSetValidDevices(int *devices, int n) { (void)devices, (void)n; return CUDA_OK; }
HT_EXPORT int cudaSetDeviceFlags(unsigned flags) { (void)flags; return CUDA_OK; }
HT_EXPORT int cudaGetDeviceFlags(unsigned *flags) { *flags = 0; return CUDA_OK; }
HT_EXPORT int cudaChooseDevice(int *device, const void *properties) { (void)properties; *device = 0; return CUDA_OK; }

HT_EXPORT int cudaDriverGetVersion(int *version) {
    const struct ht_gpu *gpu = ht_device(0);
    *version = gpu ? (int)gpu->driver : ht_cuda_version();
    return CUDA_OK;
}
HT_EXPORT int cudaRuntimeGetVersion(int *version) {
    *version = ht_cuda_version();
    return CUDA_OK;
}
HT_EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    return ht_fail(ht_attribute(value, attribute, device));
}

#define ATTRIBUTE(n) (ht_attribute(&value_, n, ordinal), value_)
#define FILL_BOTH(p) do { \
    int value_ = 0; \
    memset(p, 0, sizeof *p); \
    snprintf(p->name, sizeof p->name, "%s", gpu->name); \
    ht_uuid(ordinal, (unsigned char *)p->uuid); \
    p->totalGlobalMem = gpu->total; \
    p->sharedMemPerBlock = gpu->shared_per_block; \
    p->regsPerBlock = p->regsPerMultiprocessor = REGISTERS; \
    p->warpSize = 32; \
    p->memPitch = 2147483647; \
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = THREADS; \
    p->maxThreadsDim[2] = 64; \
    p->maxGridSize[0] = 2147483647; \
    p->maxGridSize[1] = p->maxGridSize[2] = 65535; \
    p->totalConstMem = 65536; \
    p->major = (int)gpu->cc_major; \
    p->minor = (int)gpu->cc_minor; \
    p->textureAlignment = p->surfaceAlignment = 512; \
    p->texturePitchAlignment = 32; \
    p->multiProcessorCount = (int)gpu->sm_count; \
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->streamPrioritiesSupported = 1; \
    p->globalL1CacheSupported = p->localL1CacheSupported = p->managedMemory = p->concurrentManagedAccess = 1; \
    p->computePreemptionSupported = p->canUseHostPointerForRegisteredMem = p->cooperativeLaunch = 1; \
    p->hostRegisterSupported = p->memoryPoolsSupported = p->ipcEventSupported = 1; \
    p->maxTexture1D = p->maxTexture2D[0] = 131072; \
    p->maxTexture2D[1] = 65536; \
    p->ECCEnabled = (int)gpu->ecc; \
    p->pciBusID = pci_bus(gpu); \
    p->asyncEngineCount = 2; \
    p->memoryBusWidth = (int)gpu->bus_bits; \
    p->l2CacheSize = (int)gpu->l2_bytes; \
    p->persistingL2CacheMaxSize = ATTRIBUTE(108); \
    p->maxThreadsPerMultiProcessor = (int)gpu->threads_per_sm; \
    p->sharedMemPerMultiprocessor = gpu->shared_per_sm; \
    p->sharedMemPerBlockOptin = gpu->shared_optin; \
    p->maxBlocksPerMultiProcessor = (int)gpu->blocks_per_sm; \
    p->accessPolicyMaxWindowSize = ATTRIBUTE(109); \
    p->reservedSharedMemPerBlock = (size_t)ATTRIBUTE(111); \
    p->memoryPoolSupportedHandleTypes = 1; \
    p->clusterLaunch = gpu->cc_major >= 9; \
} while (0)

HT_EXPORT int cudaGetDeviceProperties_v2(struct cuda_prop_12 *p, int ordinal) { /* CUDA 12 */
    const struct ht_gpu *gpu = ht_device(ordinal);
    if (!gpu)
        return ht_fail(CUDA_INVALID_DEVICE);
    FILL_BOTH(p);
    p->clockRate = (int)gpu->clock_khz;
    p->memoryClockRate = (int)gpu->memory_khz;
    p->deviceOverlap = 1;
    return CUDA_OK;
}
/* Up to CUDA 11, and again in 13. Who was built with 11 has room for the first fields of 12's alone. */
HT_EXPORT int cudaGetDeviceProperties(struct cuda_prop_13 *p, int ordinal) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    if (!gpu)
        return ht_fail(CUDA_INVALID_DEVICE);
    if (ht_cuda_version() < 12000) {
        struct cuda_prop_12 newer;
        int failed = cudaGetDeviceProperties_v2(&newer, ordinal);
        memcpy((void *)p, &newer, CUDA_11_PROP);
        return failed;
    }
    FILL_BOTH(p);
    p->gpuPciDeviceID = gpu->pci_device;
    p->hostNumaId = -1;
    return CUDA_OK;
}

HT_EXPORT int cudaDeviceGetPCIBusId(char *text, int room, int device) {
    const struct ht_gpu *gpu = ht_device(device);
    if (!gpu || !text)
        return ht_fail(gpu ? CUDA_INVALID_VALUE : CUDA_INVALID_DEVICE);
    snprintf(text, (size_t)room, "%s", gpu->bus);
    return CUDA_OK;
}
HT_EXPORT int cudaDeviceGetByPCIBusId(int *device, const char *text) {
    for (int i = 0; i < ht_device_count(); i++)
        if (strcasecmp(ht_device(i)->bus, text) == 0) {
            *device = i;
            return CUDA_OK;
        }
    return ht_fail(CUDA_INVALID_DEVICE);
}

HT_EXPORT int cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    HT_NEED_CONTEXT();
    uint64_t f = 0, t = 0;
    int error = ht_memory_info(ht_device_current(), &f, &t);
    if (free_bytes)
        *free_bytes = f;
    if (total)
        *total = t;
    return ht_fail(error);
}

HT_EXPORT int cudaDeviceSynchronize(void) {
    HT_NEED_CONTEXT();
    return ht_fail(ht_device_sync());
}
HT_EXPORT int cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
HT_EXPORT int cudaDeviceReset(void) {
    ht_memory_reset(ht_device_current());
    ht_context_gone(ht_device_current());
    return CUDA_OK;
}
HT_EXPORT int cudaThreadExit(void) { return cudaDeviceReset(); }

/* ---- limits: kept as set, with the values a fresh context has */
static size_t limits[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
int ht_limit(size_t *value, int limit, const size_t *set) {
    if (limit < 0 || limit >= 8)
        return 215; /* unsupported limit */
    if (set)
        limits[limit] = *set;
    else
        *value = limits[limit];
    return CUDA_OK;
}
HT_EXPORT int cudaDeviceGetLimit(size_t *value, int limit) { return ht_fail(ht_limit(value, limit, NULL)); }
HT_EXPORT int cudaDeviceSetLimit(int limit, size_t value) { return ht_fail(ht_limit(NULL, limit, &value)); }
HT_EXPORT int cudaDeviceGetCacheConfig(int *config) { *config = 0; return CUDA_OK; }
HT_EXPORT int cudaDeviceSetCacheConfig(int config) { (void)config; return CUDA_OK; }
HT_EXPORT int cudaDeviceGetSharedMemConfig(int *config) { *config = 1; return CUDA_OK; }
HT_EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_OK;
}

/* ---- peers: every device reaches every other, unless the SPEC says peers=0 */
int ht_reaches(const struct ht_gpu *from, const struct ht_gpu *to) {
    return from && to && from != to && ht_spec_number(from->spec, "peers", 1) && ht_spec_number(to->spec, "peers", 1);
}
int ht_nvlink(const struct ht_gpu *gpu) {
    static const char *const marks[] = {"SXM", "HBM3", "NVL", "B200", "B300", "GH200", "DGX", "V100-SXM"};
    int marked = 0;
    for (size_t i = 0; gpu && i < sizeof marks / sizeof *marks; i++)
        marked |= strstr(gpu->name, marks[i]) != NULL;
    return gpu && ht_spec_number(gpu->spec, "nvlink", (uint64_t)marked);
}
int ht_peer_set(int from, int to, int on) {
    if (ht_device_index(from) < 0 || ht_device_index(to) < 0 || from == to)
        return CUDA_INVALID_DEVICE;
    if (!ht_reaches(ht_device(from), ht_device(to)))
        return CUDA_PEER_UNSUPPORTED;
    if (peers[from][to] == on)
        return on ? CUDA_PEER_ENABLED : CUDA_PEER_NOT_ENABLED;
    peers[from][to] = (uint8_t)on;
    return CUDA_OK;
}
int ht_peer_can(int *can, int from, int to) {
    if (ht_device_index(from) < 0 || ht_device_index(to) < 0)
        return CUDA_INVALID_DEVICE;
    *can = ht_reaches(ht_device(from), ht_device(to));
    return CUDA_OK;
}
int ht_peer_attribute(int *value, int attribute, int from, int to) {
    int can, error = ht_peer_can(&can, from, to);
    if (error)
        return error;
    *value = attribute == 1 ? 0 : can; /* 1 is the rank of the link's speed: the best */
    return CUDA_OK;
}
HT_EXPORT int cudaDeviceCanAccessPeer(int *can, int from, int to) { return ht_fail(ht_peer_can(can, from, to)); }
HT_EXPORT int cudaDeviceEnablePeerAccess(int to, unsigned flags) {
    (void)flags;
    return ht_fail(ht_peer_set(ht_device_current(), to, 1));
}
HT_EXPORT int cudaDeviceDisablePeerAccess(int to) { return ht_fail(ht_peer_set(ht_device_current(), to, 0)); }
HT_EXPORT int cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
    return ht_fail(ht_peer_attribute(value, attribute, from, to));
}
