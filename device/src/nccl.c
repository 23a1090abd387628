/* nccl.c: communicators. A played rank (HIGHTIDE_DEVICE_PLAY=1) waits for nobody: it has no wire. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"

#define ours ht_nccl_comm
#define charge ht_nccl_charge

/* ---- making and ending communicators */

static uint64_t mix(uint64_t seed, const void *bytes, size_t n) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325ull ^ seed;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
    return hash ^ hash >> 29;
}

static int played(void) {
    const char *text = getenv("HIGHTIDE_DEVICE_PLAY");
    return text && *text && *text != '0';
}

int charge(struct comm *comm, uint64_t bytes) {
    if (comm->shares || !bytes)
        return NCCL_OK;
    if (!ht_charge(comm->device, HT_KIND_NCCL, bytes))
        return NCCL_CUDA_ERROR;
    comm->charged += bytes;
    return NCCL_OK;
}

static int make(void **into, int n, int rank, const uint64_t name[2], int device, int shares) {
    if (!into || n < 1 || rank < 0 || rank >= n)
        return NCCL_INVALID_ARGUMENT;
    struct comm *comm = ht_new(sizeof *comm);
    if (!comm)
        return NCCL_SYSTEM_ERROR;
    *comm = (struct comm){.magic = NCCL_COMM_MAGIC, .name = {name[0], name[1]}, .n = n, .rank = rank, .device = device,
                          .play = played(), .shares = shares};
    int status = ht_context(device) ? charge(comm, ht_nccl_base(device, n)) : NCCL_CUDA_ERROR;
    if (!status && n > 1 && !comm->play && !(comm->wire = ht_wire_open(name, n, rank)))
        status = NCCL_SYSTEM_ERROR;
    if (status) {
        ht_refund(device, HT_KIND_NCCL, comm->charged);
        ht_drop(comm, sizeof *comm);
        return status;
    }
    *into = comm;
    return NCCL_OK;
}

static void name_of(const nccl_id *ids, int count, uint64_t name[2]) {
    name[0] = mix(1, ids, (size_t)count * sizeof *ids);
    name[1] = mix(2, ids, (size_t)count * sizeof *ids);
}

HT_EXPORT int ncclGetUniqueId(nccl_id *id) {
    int file = id ? open("/dev/urandom", O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return id ? NCCL_SYSTEM_ERROR : NCCL_INVALID_ARGUMENT;
    ssize_t got = read(file, id, sizeof *id);
    close(file);
    return got == (ssize_t)sizeof *id ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

int ncclCommInitRank(void **comm, int n, nccl_id id, int rank);
HT_EXPORT int ncclCommInitRank(void **comm, int n, nccl_id id, int rank) {
    uint64_t name[2];
    name_of(&id, 1, name);
    return make(comm, n, rank, name, ht_device_current(), 0);
}

HT_EXPORT int ncclCommInitRankConfig(void **comm, int n, nccl_id id, int rank, void *config) {
    (void)config;
    return ncclCommInitRank(comm, n, id, rank);
}

HT_EXPORT int ncclCommInitRankScalable(void **comm, int n, int rank, int count, nccl_id *ids, void *config) {
    uint64_t name[2];
    (void)config;
    if (!ids || count < 1)
        return NCCL_INVALID_ARGUMENT;
    name_of(ids, count, name);
    return make(comm, n, rank, name, ht_device_current(), 0);
}

HT_EXPORT int ncclCommInitAll(void **comms, int n, const int *devices) {
    nccl_id id;
    uint64_t name[2];
    int status = comms ? ncclGetUniqueId(&id) : NCCL_INVALID_ARGUMENT;
    if (status)
        return status;
    name_of(&id, 1, name);
    for (int i = 0; i < n && !status; i++)
        status = make(&comms[i], n, i, name, devices ? devices[i] : i, 0);
    return status;
}

static int end(void *handle) {
    struct comm *comm = ours(handle);
    if (!comm)
        return NCCL_INVALID_ARGUMENT;
    __atomic_store_n(&comm->stop, 1, __ATOMIC_RELEASE);
    ht_wire_close(comm->wire);
    ht_refund(comm->device, HT_KIND_NCCL, comm->charged);
    comm->magic = 0;
    ht_drop(comm, sizeof *comm);
    return NCCL_OK;
}

HT_EXPORT int ncclCommDestroy(void *comm) { return end(comm); }
HT_EXPORT int ncclCommFinalize(void *comm) { return ours(comm) ? NCCL_OK : NCCL_INVALID_ARGUMENT; }

/* Another thread may be waiting in an operation of it: it is told to stop, and our memory stays. */
HT_EXPORT int ncclCommAbort(void *handle) {
    struct comm *comm = ours(handle);
    if (!comm)
        return NCCL_INVALID_ARGUMENT;
    __atomic_store_n(&comm->stop, 1, __ATOMIC_RELEASE);
    ht_wire_leave(comm->wire);
    ht_refund(comm->device, HT_KIND_NCCL, comm->charged);
    comm->charged = 0;
    return NCCL_OK;
}

HT_EXPORT int ncclCommRevoke(void *handle, int flags) {
    struct comm *comm = ours(handle);
    (void)flags;
    if (comm)
        __atomic_store_n(&comm->stop, 1, __ATOMIC_RELEASE);
    return comm ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}

/* ---- parts of a communicator */

/* Who has the same color, ordered by key and then by rank. A played rank cannot know: it counts on all. */
struct choice { int color, key; };
static int part_of(struct comm *parent, struct choice mine, int *rank) {
    struct choice *all = ht_new((size_t)parent->n * sizeof *all);
    int n = 0;
    *rank = 0;
    if (!all || ht_nccl_meet(parent, &mine, all, sizeof mine)) {
        if (all)
            ht_drop(all, (size_t)parent->n * sizeof *all);
        return -1;
    }
    for (int i = 0; i < parent->n; i++) {
        if (all[i].color != mine.color)
            continue;
        n++;
        *rank += all[i].key < mine.key || (all[i].key == mine.key && i < parent->rank);
    }
    ht_drop(all, (size_t)parent->n * sizeof *all);
    return n;
}

static void child_name(struct comm *parent, int color, uint64_t name[2]) {
    uint64_t words[4] = {parent->name[0], parent->name[1], parent->splits++, (uint64_t)color};
    name[0] = mix(3, words, sizeof words);
    name[1] = mix(4, words, sizeof words);
}

struct config { size_t size; unsigned magic, version; int blocking, cga, min_ctas, max_ctas; const char *net; int split_share; };
#define CONFIG_MAGIC 0xcafebeefu

HT_EXPORT int ncclCommSplit(void *handle, int color, int key, void **into, const struct config *config) {
    struct comm *parent = ours(handle);
    uint64_t name[2];
    int rank, n = parent && into ? part_of(parent, (struct choice){color, key}, &rank) : 0;
    if (!parent || !into)
        return NCCL_INVALID_ARGUMENT;
    if (n < 0)
        return NCCL_REMOTE_ERROR;
    child_name(parent, color, name);
    *into = NULL;
    if (color < 0) /* NCCL_SPLIT_NOCOLOR: in none */
        return NCCL_OK;
    int shares = config && config->magic == CONFIG_MAGIC && config->split_share == 1;
    return make(into, n, rank, name, parent->device, shares);
}

HT_EXPORT int ncclCommShrink(void *handle, int *without, int count, void **into, void *config, int flags) {
    struct comm *parent = ours(handle);
    uint64_t name[2];
    (void)config, (void)flags;
    if (!parent || !into || (count && !without))
        return NCCL_INVALID_ARGUMENT;
    int rank = parent->rank;
    for (int i = 0; i < count; i++)
        rank -= without[i] < parent->rank;
    child_name(parent, -2, name);
    return make(into, parent->n - count, rank, name, parent->device, 0);
}

HT_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, void *comm) {
    if (!ours(comm) || !op || !scalar || !ht_nccl_size(type))
        return NCCL_INVALID_ARGUMENT;
    return ht_nccl_new_op(op, scalar, type, residence == 1);
}
HT_EXPORT int ncclRedOpDestroy(int op, void *comm) { return ours(comm) ? ht_nccl_drop_op(op) : NCCL_INVALID_ARGUMENT; }

/* ---- what is asked of a communicator */

#define ASK(name, field) \
    HT_EXPORT int name(void *handle, int *value) { \
        struct comm *comm = ours(handle); \
        if (!comm || !value) \
            return NCCL_INVALID_ARGUMENT; \
        *value = comm->field; \
        return NCCL_OK; \
    }
ASK(ncclCommCount, n)
ASK(ncclCommUserRank, rank)
ASK(ncclCommCuDevice, device)
ASK(ncclCommGetAsyncError, error)

HT_EXPORT int ncclGetVersion(int *version) {
    int (*real)(int *) = (int (*)(int *))(uintptr_t)ht_real_symbol("libnccl.so.2", "ncclGetVersion");
    if (!version)
        return NCCL_INVALID_ARGUMENT;
    if (real)
        return real(version);
    *version = 22105;
    return NCCL_OK;
}

HT_EXPORT const char *ncclGetErrorString(int status) {
    static const char *const texts[] = {"no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)", "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)", "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error", "NCCL operation in progress", "NCCL operation timed out"};
    return status >= 0 && status < (int)(sizeof texts / sizeof *texts) ? texts[status] : "unknown result code";
}

HT_EXPORT const char *ncclGetLastError(void *handle) {
    struct comm *comm = ours(handle);
    return comm && comm->error == NCCL_REMOTE_ERROR ? "a rank of this communicator has ended" : ht_wire_trouble();
}

HT_EXPORT int ncclCommMemStats(void *handle, int which, uint64_t *value) {
    struct comm *comm = ours(handle);
    if (!comm || !value)
        return NCCL_INVALID_ARGUMENT;
    *value = which == 1 ? 0 : which == 0 ? 0 : comm->charged;
    HT_MODELLED();
    return NCCL_OK;
}

/* ---- memory */

HT_EXPORT int ncclMemAlloc(void **address, size_t bytes) {
    if (!address)
        return NCCL_INVALID_ARGUMENT;
    int device = ht_device_current();
    *address = NULL;
    if (!bytes)
        return NCCL_OK;
    *address = (void *)ht_device_alloc(device, HT_KIND_ALLOCATION, bytes);
    return *address ? NCCL_OK : NCCL_CUDA_ERROR;
}

HT_EXPORT int ncclMemFree(void *address) {
    return !address || ht_device_free((uint64_t)address) ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}

static int registration(void *comm, void *address, void **handle) {
    if (!ours(comm) || !handle)
        return NCCL_INVALID_ARGUMENT;
    *handle = address;
    return NCCL_OK;
}
HT_EXPORT int ncclCommRegister(void *comm, void *address, size_t bytes, void **handle) {
    (void)bytes;
    return registration(comm, address, handle);
}
HT_EXPORT int ncclCommDeregister(void *comm, void *handle) {
    (void)handle;
    return ours(comm) ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}
HT_EXPORT int ncclCommWindowRegister(void *comm, void *address, size_t bytes, void **window, int flags) {
    (void)bytes, (void)flags;
    return registration(comm, address, window);
}
HT_EXPORT int ncclCommWindowDeregister(void *comm, void *window) {
    (void)window;
    return ours(comm) ? NCCL_OK : NCCL_INVALID_ARGUMENT;
}
HT_EXPORT int ncclWinGetUserPtr(void *comm, void *window, void **address) { return registration(comm, window, address); }

