/* core.h: what a file that answers for a library (cublas.c, cudnn.c, nccl.c ...) may use.
 *
 *     a library's file ──▶ core: the device table, memory, shadows, streams, counters
 *                              └──▶ hightide_device.h, shared memory
 *
 * Rules for such a file:
 * - Entry points are written as `HT_EXPORT int cublasFoo(...)`, with types of their own (abi.h):
 *   nothing is included from CUDA. Every name that nobody writes is generated from names/LIB.txt as a
 *   weak symbol that counts itself and then succeeds (a pure command) or fails (it has an output);
 *   a written one replaces it.
 * - Never use malloc for what belongs to the device: ht_new/ht_drop, which the heap sampler cannot see.
 * - Device pointers are never followed. What the host wrote there is asked of the shadows.
 * - What a kernel of the library would write must be told: ht_written. Else stale bytes are read.
 * - Handles are ht_new'd structures, so that a wrong one is told (ht_is).
 */
#ifndef HT_CORE_H
#define HT_CORE_H
#include <stddef.h>
#include <stdint.h>

#include "../../include/hightide_device.h"

#define HT_EXPORT __attribute__((visibility("default")))

/* ---- devices: an ordinal counts visible devices (CUDA_VISIBLE_DEVICES), a table index all of them */
int ht_device_count(void);
int ht_device_current(void);                 /* the calling thread's ordinal */
const struct ht_gpu *ht_device(int ordinal); /* NULL: no such ordinal */
int ht_device_index(int ordinal);            /* index in the device table, -1: no such ordinal */

/* A figure of the device's part of the SPEC: ht_figure(0, "nccl_bytes", 0). Decimal, or `absent`. */
uint64_t ht_figure(int ordinal, const char *key, uint64_t absent);

/* The CUDA version this process's libraries were built for, 12040 or 13020 or such; from the
 * runtime library that is loaded. */
int ht_cuda_version(void);

/* ---- the device table. All return 1 for done; 0: it does not fit (an event is kept there). */

/* The process's context on the device, charged once. 0: it does not fit. */
int ht_context(int ordinal);

/* Device memory that has no address: contexts, workspaces inside a library, NCCL's buffers. */
int ht_charge(int ordinal, enum ht_gpu_kind kind, uint64_t bytes);
void ht_refund(int ordinal, enum ht_gpu_kind kind, uint64_t bytes);

/* Device memory with an address, as cudaMalloc gives it; 0 where it does not fit. */
uint64_t ht_device_alloc(int ordinal, enum ht_gpu_kind kind, uint64_t bytes);
int ht_device_free(uint64_t address); /* 0: not the start of an allocation */

struct ht_place { /* where an address points */
    uint64_t base, size;
    int device;            /* ordinal; -1: host memory */
    enum ht_place_kind { HT_PLACE_NONE, HT_PLACE_DEVICE, HT_PLACE_MAPPED, HT_PLACE_POOL, HT_PLACE_MANAGED,
                         HT_PLACE_PINNED, HT_PLACE_REGISTERED, HT_PLACE_IMPORTED } kind;
};
/* Whether the address is known: device, managed or pinned. */
int ht_place(uint64_t address, struct ht_place *place);
/* Whether the address is device memory that the host cannot follow. Cheap. */
int ht_on_device(const void *address);

/* ---- shadows: what the host wrote to device memory, kept while nothing else wrote there */

/* The host wrote these bytes to the device: kept if small. */
void ht_host_wrote(uint64_t address, const void *bytes, size_t n);
/* Copies what the host once wrote, 1; 0 if a kernel may have written it since, or nobody did: then
 * `into` is zeros. Counts nothing: for libraries that move small values between processes. */
int ht_kept(uint64_t address, void *into, size_t n);
/* The host reads device memory: as ht_kept, and counts what nobody wrote with its Python line. */
void ht_host_reads(uint64_t address, void *into, size_t n);
/* A kernel writes there: what was kept is forgotten. n 0: the extent is not known. */
void ht_written(uint64_t address, size_t n);
unsigned long ht_writes(void); /* how often this thread told it */
/* A copy on the device: what was kept follows. */
void ht_copied(uint64_t to, uint64_t from, size_t n);
/* Any copy, by where the addresses point; what cudaMemcpyDefault does. */
void ht_copy(void *to, const void *from, size_t n);

/* ---- calls, counted by name in the device table; each call site keeps its slot, so it is cheap. Its name is no part of
   the site: thousands of pointers would be as many relocations. */
struct ht_call_site { enum ht_gpu_call_kind kind; uint32_t slot, generation; };
void ht_count(struct ht_call_site *site, const char *name);
#define HT_COUNT(k) \
    do { static struct ht_call_site site_ = {k, 0, 0}; ht_count(&site_, __func__); } while (0)
#define HT_COMMAND() HT_COUNT(HT_CALL_COMMAND)   /* nothing of it is modelled; it succeeds */
#define HT_REFUSED() HT_COUNT(HT_CALL_REFUSED)   /* it has an output we cannot give; it fails */
#define HT_MODELLED() HT_COUNT(HT_CALL_MODELLED) /* answered from a model the reader should know of */

/* ---- memory of our own, from raw system calls; zeroed. */
void *ht_new(size_t bytes);
void ht_drop(void *memory, size_t bytes);

/* A handle: its first word is a magic of its own kind. */
#define HT_HANDLE uint64_t magic
static inline int ht_is(const void *handle, uint64_t magic) {
    return handle && (uintptr_t)handle % 8 == 0 && *(const uint64_t *)handle == magic;
}

/* ---- streams */
/* Whether work given to the stream is recorded into a graph instead of run; a library that would
 * talk to other processes does nothing then. `id` may be NULL. */
int ht_capturing(void *stream, uint64_t *id);
/* Work given to a stream: if it is being captured a node is added to its graph, and 1 is given. Type 0 is a kernel. */
int ht_stream_work(void *stream, int node_type);
int ht_stream_device(void *stream); /* ordinal; the current device for the default streams */

/* ---- the library itself */
/* The address of a symbol in the real library that is loaded in this process ("libcudnn.so.9",
 * "cudnnBackendFinalize"), found past our own; NULL: not loaded, or it has none. "libcublas.so." is any version. */
void *ht_real_symbol(const char *library, const char *symbol);
/* A thread that is inside a real library we forward to: our driver says "no device" to it meanwhile,
 * as on the machine that it runs on. Nests. */
void ht_forward_enter(void);
void ht_forward_leave(void);
/* HIGHTIDE_DEVICE_VERBOSE=1: one line to stderr. */
void ht_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Field 22 of /proc/self/stat, our pid, our process's slot in the device table; after a fork the child's. */
uint64_t ht_process_start(void);
struct ht_gpu_process *ht_slot(void);
/* The folder in shared memory for what the processes of a run share (where the device table is); "" without. */
const char *ht_shared_folder(void);
#endif
