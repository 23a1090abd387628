/* nvml.c: the management library, for torch's out-of-memory message, pynvml, nvitop and our own sampler.
 * It reads the device table and changes nothing; a process that never touches a GPU takes no slot for it.
 */
#include <stdio.h>
#include <string.h>

#include "raw.h"
#include "runtime.h"

enum { NVML_OK = 0, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7,
       NVML_VERSION_MISMATCH = 25 };
enum { GPU_ALL = HT_GPU_DEVICES };

/* A device's handle is its entry in the device table, so that CUDA_VISIBLE_DEVICES does not matter, as with NVML. */
static const struct ht_gpu *gpu_of(const void *handle) {
    for (uint32_t i = 0; i < ht_gpu_count(); i++)
        if (handle == ht_gpu_at(i))
            return handle;
    return NULL;
}
#define GPU(handle) \
    const struct ht_gpu *gpu = gpu_of(handle); \
    if (!gpu) return NVML_INVALID_ARGUMENT

HT_EXPORT int nvmlInit_v2(void) { return ht_table() ? NVML_OK : 9 /* driver not loaded */; }
HT_EXPORT int nvmlInit(void) { return nvmlInit_v2(); }
HT_EXPORT int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
HT_EXPORT int nvmlShutdown(void) { return NVML_OK; }
HT_EXPORT const char *nvmlErrorString(int error) {
    switch (error) {
    case NVML_OK: return "Success";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    default: return "Unknown Error";
    }
}

static int text(char *into, unsigned room, const char *from) {
    if (!into || !room)
        return NVML_INVALID_ARGUMENT;
    return snprintf(into, room, "%s", from) < (int)room ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}
HT_EXPORT int nvmlSystemGetDriverVersion(char *into, unsigned room) { return ht_gpu_at(0) ? text(into, room, ht_gpu_at(0)->driver_name) : NVML_NOT_FOUND; }
HT_EXPORT int nvmlSystemGetNVMLVersion(char *into, unsigned room) { return text(into, room, "13.595.58.03"); }
HT_EXPORT int nvmlSystemGetCudaDriverVersion(int *version) { *version = ht_gpu_at(0) ? (int)ht_gpu_at(0)->driver : 0; return NVML_OK; }
HT_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }
HT_EXPORT int nvmlSystemGetProcessName(unsigned pid, char *into, unsigned room) {
    const struct ht_gpu_process *slot;
    for (uint64_t i = 0; (slot = ht_process_at(i)); i++)
        if (slot->state == HT_GPU_LIVE && slot->pid == pid)
            return text(into, room, slot->command);
    return NVML_NOT_FOUND;
}

/* ---- devices */
HT_EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { *count = ht_gpu_count(); return NVML_OK; }
HT_EXPORT int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
HT_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void **handle) {
    *handle = ht_gpu_at(index);
    return *handle ? NVML_OK : NVML_INVALID_ARGUMENT;
}
HT_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, const void **handle) { return nvmlDeviceGetHandleByIndex_v2(index, handle); }
static int by_text(const char *wanted, const void **handle, int bus) {
    const struct ht_gpu *gpu;
    size_t wide = wanted && strlen(wanted) > 12 && bus ? 4 : 0; /* 00000000:01:00.0 */
    for (unsigned i = 0; wanted && (gpu = ht_gpu_at(i)); i++)
        if (strcasecmp(bus ? gpu->bus : gpu->uuid, wanted + wide) == 0) {
            *handle = gpu;
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}
HT_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, const void **handle) { return by_text(bus, handle, 1); }
HT_EXPORT int nvmlDeviceGetHandleByPciBusId(const char *bus, const void **handle) { return by_text(bus, handle, 1); }
HT_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, const void **handle) { return by_text(uuid, handle, 0); }
HT_EXPORT int nvmlDeviceGetIndex(const void *handle, unsigned *index) { GPU(handle); *index = gpu->index; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetMinorNumber(const void *handle, unsigned *minor) { GPU(handle); *minor = gpu->index; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetName(const void *handle, char *into, unsigned room) { GPU(handle); return text(into, room, gpu->name); }
HT_EXPORT int nvmlDeviceGetUUID(const void *handle, char *into, unsigned room) { GPU(handle); return text(into, room, gpu->uuid); }
HT_EXPORT int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor) {
    GPU(handle);
    *major = (int)gpu->cc_major;
    *minor = (int)gpu->cc_minor;
    return NVML_OK;
}
HT_EXPORT int nvmlDeviceGetNumGpuCores(const void *handle, unsigned *cores) {
    GPU(handle);
    *cores = gpu->sm_count * (gpu->cc_major == 8 && gpu->cc_minor == 0 ? 64 : 128);
    return NVML_OK;
}
struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem; char bus_id[32]; };
HT_EXPORT int nvmlDeviceGetPciInfo_v3(const void *handle, struct pci *pci) {
    GPU(handle);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->legacy, sizeof pci->legacy, "%s", gpu->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000%.24s", gpu->bus);
    pci->bus = gpu->index + 1;
    pci->device_id = gpu->pci_device;
    return NVML_OK;
}
HT_EXPORT int nvmlDeviceGetPciInfo_v2(const void *handle, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }
HT_EXPORT int nvmlDeviceGetPciInfo(const void *handle, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }

/* ---- memory */
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
static uint64_t used_of(const struct ht_gpu *gpu) {
    uint64_t used = __atomic_load_n(&gpu->used, __ATOMIC_RELAXED);
    return used < gpu->total ? used : gpu->total;
}
HT_EXPORT int nvmlDeviceGetMemoryInfo(const void *handle, struct memory *into) {
    GPU(handle);
    *into = (struct memory){gpu->total, gpu->total - used_of(gpu), used_of(gpu)};
    return NVML_OK;
}
HT_EXPORT int nvmlDeviceGetMemoryInfo_v2(const void *handle, struct memory_v2 *into) {
    GPU(handle);
    uint64_t used = used_of(gpu) - gpu->reserved;
    into->total = gpu->total;
    into->reserved = gpu->reserved;
    into->used = used;
    into->free = gpu->total - used_of(gpu);
    return NVML_OK;
}
HT_EXPORT int nvmlDeviceGetBAR1MemoryInfo(const void *handle, struct memory *into) {
    GPU(handle);
    *into = (struct memory){gpu->total, gpu->total, 0};
    return NVML_OK;
}

/* ---- processes: those of the device table that hold memory of the device */
struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };
HT_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(const void *handle, unsigned *count, struct process *into) {
    GPU(handle);
    const struct ht_gpu_process *slot;
    unsigned room = *count, found = 0;
    for (uint64_t i = 0; (slot = ht_process_at(i)); i++) {
        uint64_t used = 0;
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != HT_GPU_LIVE)
            continue;
        for (int kind = 0; kind < HT_KINDS; kind++)
            used += kind == HT_KIND_PINNED ? 0 : slot->devices[gpu->index].used[kind];
        if (used && found < room && into)
            into[found] = (struct process){slot->pid, used, ~0u, ~0u};
        found += used > 0;
    }
    *count = found;
    return found > room || (found && !into) ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}
HT_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(const void *handle, unsigned *count, struct process *into) {
    return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, into);
}
HT_EXPORT int nvmlDeviceGetComputeRunningProcesses(const void *handle, unsigned *count, struct process *into) { /* v1's entries are smaller */
    struct process all[HT_GPU_SLOTS];
    unsigned room = *count, n = HT_GPU_SLOTS;
    int error = nvmlDeviceGetComputeRunningProcesses_v3(handle, &n, all);
    struct { unsigned pid; unsigned long long used; } *old = (void *)into;
    *count = n;
    for (unsigned i = 0; !error && i < n && i < room; i++) {
        old[i].pid = all[i].pid;
        old[i].used = all[i].used;
    }
    return error ? error : n > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}
HT_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(const void *handle, unsigned *count, struct process *into) { GPU(handle); (void)into; *count = 0; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(const void *handle, unsigned *count, struct process *into) { return nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, into); }
HT_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(const void *handle, unsigned *count, struct process *into) { return nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, into); }

/* ---- what an imaginary GPU has no figure of: idle, cool, unlinked */
struct utilisation { unsigned gpu, memory; };
HT_EXPORT int nvmlDeviceGetUtilizationRates(const void *handle, struct utilisation *into) { GPU(handle); *into = (struct utilisation){0, 0}; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetPowerUsage(const void *handle, unsigned *milliwatts) { GPU(handle); (void)milliwatts; return NVML_NOT_SUPPORTED; }
HT_EXPORT int nvmlDeviceGetTemperature(const void *handle, int sensor, unsigned *degrees) { GPU(handle); (void)sensor, (void)degrees; return NVML_NOT_SUPPORTED; }
HT_EXPORT int nvmlDeviceGetClockInfo(const void *handle, int kind, unsigned *mhz) { GPU(handle); *mhz = (kind == 2 ? gpu->memory_khz : gpu->clock_khz) / 1000; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetMaxClockInfo(const void *handle, int kind, unsigned *mhz) { return nvmlDeviceGetClockInfo(handle, kind, mhz); }
HT_EXPORT int nvmlDeviceGetMemoryBusWidth(const void *handle, unsigned *bits) { GPU(handle); *bits = gpu->bus_bits; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetPersistenceMode(const void *handle, int *mode) { GPU(handle); *mode = 1; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetComputeMode(const void *handle, int *mode) { GPU(handle); *mode = 0; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetEccMode(const void *handle, int *now, int *pending) { GPU(handle); *now = *pending = (int)gpu->ecc; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetMigMode(const void *handle, unsigned *now, unsigned *pending) { GPU(handle); *now = *pending = 0; return NVML_OK; }

/* ---- how devices reach each other: what decides on all-reduce of an engine's own, symmetric memory and cost models */
static unsigned links(const struct ht_gpu *gpu) { return gpu->cc_major < 8 ? 6 : gpu->cc_major < 9 ? 12 : 18; } /* V100, A100, H100 */
static int linked(const struct ht_gpu *gpu) { return ht_gpu_count() > 1 && ht_nvlink(gpu); }
/* A link that the architecture lacks is not supported; one that no GPU has is no link. */
static int link_answer(const struct ht_gpu *gpu, unsigned link) {
    enum { MOST_LINKS = 18 };
    return link < links(gpu) ? NVML_OK : link < MOST_LINKS ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}
HT_EXPORT int nvmlDeviceGetNvLinkState(const void *handle, unsigned link, int *active) {
    GPU(handle);
    *active = linked(gpu);
    return link_answer(gpu, link);
}
/* Peer to peer, atomics over it and the link itself. System memory is reached by PCIe, and SLI is of games. */
HT_EXPORT int nvmlDeviceGetNvLinkCapability(const void *handle, unsigned link, int what, unsigned *has) {
    enum { P2P = 0, P2P_ATOMICS = 2, VALID = 5, CAPABILITIES = 6 };
    GPU(handle);
    if (!has || what < 0 || what >= CAPABILITIES)
        return NVML_INVALID_ARGUMENT;
    *has = linked(gpu) && (what == P2P || what == P2P_ATOMICS || what == VALID);
    return link_answer(gpu, link);
}
HT_EXPORT int nvmlDeviceGetP2PStatus(const void *from, const void *to, int what, int *status) {
    enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 5, P2P_OVER_NVLINK = 2, P2P_KINDS = 5 };
    const struct ht_gpu *one = gpu_of(from), *other = gpu_of(to);
    if (!one || !other || !status || what < 0 || what >= P2P_KINDS)
        return NVML_INVALID_ARGUMENT;
    int reach = one != other && ht_reaches(one, other) && (what != P2P_OVER_NVLINK || (linked(one) && linked(other)));
    *status = reach ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_OK;
}
/* All in one NUMA node. */
HT_EXPORT int nvmlDeviceGetTopologyCommonAncestor(const void *from, const void *to, int *level) {
    enum { INTERNAL = 0, SAME_NODE = 40 };
    const struct ht_gpu *one = gpu_of(from), *other = gpu_of(to);
    if (!one || !other || !level)
        return NVML_INVALID_ARGUMENT;
    *level = one == other ? INTERNAL : SAME_NODE;
    return NVML_OK;
}
/* By architecture: Volta and Turing 3, Ampere and Ada 4, Hopper and later 5; 16 lanes, as data centre cards have. */
HT_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(const void *handle, unsigned *generation) {
    GPU(handle);
    *generation = gpu->cc_major < 8 ? 3 : gpu->cc_major < 9 ? 4 : 5;
    return NVML_OK;
}
HT_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(const void *handle, unsigned *generation) { return nvmlDeviceGetMaxPcieLinkGeneration(handle, generation); }
HT_EXPORT int nvmlDeviceGetGpuMaxPcieLinkGeneration(const void *handle, unsigned *generation) { return nvmlDeviceGetMaxPcieLinkGeneration(handle, generation); }
HT_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(const void *handle, unsigned *lanes) { GPU(handle); *lanes = 16; return NVML_OK; }
HT_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(const void *handle, unsigned *lanes) { GPU(handle); *lanes = 16; return NVML_OK; }

/* Not part of a fabric of switches: all zeros say so, as a single H100 does. (Drivers refuse the question for older
 * GPUs, and PyTorch warns of that where segments can expand.) The version's low bits are the structure's size. */
HT_EXPORT int nvmlDeviceGetGpuFabricInfoV(const void *handle, unsigned *version) {
    GPU(handle);
    unsigned size = *version & 0xffffff;
    if (size < sizeof *version || size > 256)
        return NVML_VERSION_MISMATCH;
    memset(version + 1, 0, size - sizeof *version);
    return NVML_OK;
}
struct fabric { uint8_t cluster[16]; int status; unsigned clique; uint8_t state; };
HT_EXPORT int nvmlDeviceGetGpuFabricInfo(const void *handle, struct fabric *into) {
    GPU(handle);
    memset(into, 0, sizeof *into);
    return NVML_OK;
}
