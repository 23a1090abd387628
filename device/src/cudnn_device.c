/* cudnn_device.c: an imaginary GPU as the real cuDNN sees it.
 *
 * cuDNN 9.8 and newer take a device's properties as a descriptor made from JSON (the backend API's
 * CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR): engines, heuristics and plans that carry it need no GPU. The
 * names in the text are those of cuDNN's own log.
 *
 * What takes a handle instead (RNN, dropout and batch normalisation sizes; everything before 9.8) reads
 * of it the same properties. A handle begins with them, in an order that changed three times. Ours is filled
 * likewise, and what the library then answers to a question whose answer we know shows whether the
 * order is right: if not, the handle stays empty and those calls are refused. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cudnn.h"

#define RANDOM_STATE_BYTES 24 /* cuDNN keeps so much per thread the device can hold at once, for dropout */

int ht_cudnn_absent(void) { return CUDNN_NOT_INITIALIZED; }

static int write_json(const struct ht_gpu *gpu, int ordinal, char *text, size_t room) {
    return snprintf(text, room,
        "{\"deviceName\":\"%s\",\"cudaDeviceId\":%d,\"deviceVer\":%u,"
        "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":%u,\"smClockRateKHz\":%u,\"memClockRateKHz\":%u,"
        "\"l2CacheSize\":%u,\"warpSize\":32,\"maxSharedMemoryPerBlock\":%u,\"maxSharedMemoryPerBlockOptin\":%u,"
        "\"reservedSharedMemoryPerBlock\":%u,\"maxRegistersPerSM\":65536,\"pciDeviceId\":%u,\"maxCtasPerSM\":%u,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%u,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
        "\"driverVer\":%u,\"totalGlobalMem\":%llu,\"oversizedSharedMemoryPerBlock\":0}",
        gpu->name, ordinal, gpu->cc_major * 100 + gpu->cc_minor * 10, gpu->sm_count, gpu->clock_khz, gpu->memory_khz,
        gpu->l2_bytes, gpu->shared_per_block, gpu->shared_optin, gpu->cc_major >= 8 ? 1024 : 0, gpu->pci_device >> 16,
        gpu->blocks_per_sm, gpu->threads_per_sm, gpu->driver, (unsigned long long)gpu->total);
}

static void *make_properties(int ordinal) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    size_t (*version)(void) = (size_t(*)(void))ht_real_symbol(HT_FORWARD_LIBRARY, "cudnnGetVersion");
    if (!gpu || !version || version() < 90800)
        return NULL;
    char text[2048];
    int length = write_json(gpu, ordinal, text, sizeof text);
    void *descriptor = NULL;
    ht_forward_enter();
    int status = HT_REAL(cudnnBackendCreateDescriptor)(CUDNN_DEVICEPROP, &descriptor);
    if (!status)
        status = HT_REAL(cudnnBackendSetAttribute)(descriptor, CUDNN_DEVICEPROP_JSON, CUDNN_TYPE_CHAR, length + 1, text);
    if (!status)
        status = HT_REAL(cudnnBackendFinalize)(descriptor);
    ht_forward_leave();
    ht_say("cudnn %zu: properties of device %d: status %d", version(), ordinal, status);
    return status ? NULL : descriptor;
}

void *ht_cudnn_properties(int ordinal) {
    static char none; /* stands for: cannot be made */
    static void *made[HT_GPU_DEVICES];
    if (ordinal < 0 || ordinal >= HT_GPU_DEVICES)
        return NULL;
    void *properties = __atomic_load_n(&made[ordinal], __ATOMIC_ACQUIRE);
    if (!properties) { /* two threads may both make it: no lock is held over a call into the real library */
        void *fresh = make_properties(ordinal);
        fresh = fresh ? fresh : &none;
        if (__atomic_compare_exchange_n(&made[ordinal], &properties, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            properties = fresh;
    }
    return properties == &none ? NULL : properties;
}

/* What the properties at the beginning of a handle have beside those that all versions know. */
struct order {
    unsigned char reserved, oversized, threads; /* reserved and oversized shared memory; threads per block */
};

static const struct order orders[] = {
    {1, 1, 1}, /* cuDNN 9.26 */
    {1, 0, 1}, /* 9.20 */
    {1, 0, 0}, /* 9.10 */
    {0, 0, 0}, /* 9.1 */
};

static void fill(char *handle, const struct ht_gpu *gpu, int ordinal, struct order order) {
    uint32_t head[20] = {2147483647, 65535, 65535, 1024, 1024, 64, 65536 /* registers per block */, gpu->sm_count,
                         32 /* warp */, gpu->shared_per_block, gpu->shared_optin};
    unsigned n = 11;
    if (order.oversized)
        head[n++] = 0;
    if (order.reserved)
        head[n++] = gpu->cc_major >= 8 ? 1024 : 0;
    head[n++] = 65536; /* registers per multiprocessor */
    head[n++] = gpu->blocks_per_sm;
    if (order.threads)
        head[n++] = 1024;
    head[n++] = gpu->threads_per_sm;
    head[n++] = gpu->pci_device >> 16;
    head[n++] = 0; /* no TCC driver */
    memcpy(handle, head, n * 4);
    size_t at = n * 4;
    memcpy(handle + at, &(uint32_t){1}, 4); /* cooperative launch */
    at = (at + 4 + 7) & ~7ull;
    memcpy(handle + at, &gpu->total, 8);
    uint32_t tail[6] = {gpu->clock_khz, gpu->memory_khz, gpu->l2_bytes, (uint32_t)ordinal,
                        gpu->cc_major * 100 + gpu->cc_minor * 10, gpu->driver};
    memcpy(handle + at + 8, tail, sizeof tail);
}

int ht_cudnn_disguise(int ordinal, void *handle) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    int (*ask)(void *, size_t *) = HT_REAL(cudnnDropoutGetStatesSize);
    for (unsigned i = 0; gpu && ask && i < sizeof orders / sizeof *orders; i++) {
        size_t bytes = 0;
        memset(handle, 0, 256);
        fill(handle, gpu, ordinal, orders[i]);
        if (!ask(handle, &bytes) && bytes == (size_t)RANDOM_STATE_BYTES * gpu->sm_count * gpu->threads_per_sm)
            return 1;
    }
    if (handle)
        memset(handle, 0, 256);
    ht_say("cudnn: this version's handle is not known; calls that take one are refused");
    return 0;
}
