/* raw.h: what the core's own files share and no library's file needs. */
#ifndef HT_RAW_H
#define HT_RAW_H
#include <pthread.h>

#include "../../common/identity.h"
#include "../../common/since.h"
#include "../../common/sys.h"
#include "core.h"

#define HT_MIB (1ull << 20)
#define HT_GRANULE (2 * HT_MIB) /* of device memory: the driver's page */

static inline uint64_t ht_round(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* ---- fork.c: each file's own lock, and in which order they are taken */
extern pthread_mutex_t ht_mappings_lock, ht_streams_lock, ht_pools_lock, ht_shadows_lock, ht_memory_lock, ht_images_lock,
    ht_counters_lock, ht_context_lock, ht_table_lock, ht_threads_lock, ht_arena_lock;
void ht_table_in_child(void);

/* ---- spec.c */
/* Fills header->device_count and the devices from the text; 0 and a line on stderr: it says nothing usable. */
uint64_t ht_spec_number(const char *text, const char *key, uint64_t absent); /* of the first kind of device */
int ht_spec_read(const char *text, struct ht_gpu_header *header, struct ht_gpu *gpus);

/* ---- table.c */
/* The table, opened if need be: its devices, and its processes, of which NULL follows the last. Its header's counts may be
 * anything: it is shared. */
const struct ht_gpu_header *ht_table(void); /* NULL: there is none */
uint32_t ht_gpu_count(void);
const struct ht_gpu *ht_gpu_at(uint32_t index);
const struct ht_gpu_process *ht_process_at(uint64_t index);
/* CUDA's error for using the device: 0, 2 no room for a context, 3 after a fork, 100 no device, 101 bad ordinal. */
int ht_use(int ordinal);
int ht_has_context(int ordinal);
/* Bytes in use on the device by all processes, with what this process would still take for its context. */
uint64_t ht_in_use(int ordinal);
uint64_t ht_generation(void);      /* changes after a fork */
void ht_device_set(int ordinal);   /* the calling thread's */
void ht_launched(int ordinal);
void ht_context_gone(int ordinal); /* cudaDeviceReset */
/* ht_charge in two halves, for who holds a lock in between: the second looks for the Python line, and for that may
 * ask the loader. The device has its context. */
int ht_charge_quietly(int ordinal, enum ht_gpu_kind kind, uint64_t bytes);
void ht_refused(int ordinal, enum ht_gpu_kind kind, uint64_t bytes);

/* ---- counters.c */
void ht_count_read(uint64_t bytes);                       /* of memory nobody wrote, by the host */
void ht_count_shadow(int64_t kept, uint64_t dropped);

/* ---- process.c */
int ht_forwarding(void); /* this thread is inside a real library that must see no device */

/* ---- opened.c */
#define HT_PASS_ON ((void *)-1)
void *ht_opened(const char *name, int flags, const void *caller); /* what dlopen returns; HT_PASS_ON: what the loader's does */
void *ht_open_real(const char *path, int flags);                  /* the loader's dlopen */
void *ht_own_handle(void);
/* Whether code is part of a real CUDA library. Each carries a runtime of its own inside, which must see no device: it
 * would look into a driver that has nothing inside. */
int ht_in_real_library(const void *code);

/* ---- memory.c */
int ht_memory_reset(int ordinal);                     /* frees everything on it; 0: no memory to do so */
uint64_t ht_reserve(uint64_t bytes, uint64_t align);  /* address space alone; 0: none */
void ht_unreserve(uint64_t base, uint64_t bytes);
int ht_range_add(uint64_t base, uint64_t size, int device, enum ht_place_kind kind, void *owner);
int ht_range_take(uint64_t base, struct ht_place *place, void **owner); /* the range that starts there */
int ht_range_owner(uint64_t address, struct ht_place *place, void **owner);
uint64_t ht_managed_alloc(int ordinal, uint64_t bytes);
uint64_t ht_host_alloc(uint64_t bytes);               /* pinned */
int ht_host_free(uint64_t address);

/* ---- pool.c: cudaMallocAsync */
int ht_pool_free(uint64_t address);

/* ---- python.c: where the calling thread's script is; line 0: not known */
struct ht_line { int32_t line; char file[160]; char function[72]; };
void ht_python_line(struct ht_line *line);

/* ---- shadow.c */
void ht_host_set(uint64_t address, uint8_t value, size_t n); /* memset */
void ht_scan(const void *from, size_t bytes); /* a kernel was given these bytes: addresses in them are written */
void ht_scan_arguments(void **arguments);     /* of a launch */
#define HT_MOST_ARGUMENTS 256
size_t ht_arguments(void **arguments, uint64_t *into, size_t room); /* the first 8 bytes of each; how many */
#endif
