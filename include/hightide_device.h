/* hightide_device.h: the device table, in shared memory.
 *
 * One file, created by the first process that touches a GPU, at the path in $HIGHTIDE_DEVICE_TABLE,
 * from the text in $HIGHTIDE_DEVICE_SPEC; mapped MAP_SHARED by every process of the run:
 *
 *     [ header, 4096 ][ devices x ht_gpu ][ slots x ht_gpu_process ]
 *
 * The library in device/ is the only writer; the engine reads (internal/shm), and takes every word
 * for a stranger's. docs/formats/device.md is the specification. Little endian, natural
 * alignment, no padding that is not named. Texts end with a zero byte and are cut to fit.
 *
 * Consistency: what concerns several processes (struct ht_gpu, `used` and `peak` of a slot) changes
 * under the lock, with `sequence` odd meanwhile. Read it before and after, and take the copy if both are
 * the same even number. Still odd after 100 ms, its writer was killed and the copy is taken as it is.
 * Counters of a slot are written by its process alone, each word at once.
 */
#ifndef HIGHTIDE_DEVICE_H
#define HIGHTIDE_DEVICE_H
#include <stdint.h>

#define HT_GPU_MAGIC 0x3142545645445448ull /* "HTDEVTB1" in memory */
#define HT_GPU_ABI 3u
#define HT_GPU_DEVICES 16
#define HT_GPU_SLOTS 256    /* processes of one run that ever touched a GPU; ended ones are reused last */
#define HT_GPU_CALLS 512    /* distinct names counted per process */
#define HT_GPU_READS 128    /* distinct Python lines per process */
#define HT_GPU_OOMS 64      /* the last ones, a ring */

/* What device memory is used for, by who asked for it. Pinned host memory is not device memory: it
 * is counted per process but not in a device's `used`. */
enum ht_gpu_kind {
    HT_KIND_ALLOCATION = 0, /* cudaMalloc and its like, in the steps of the hardware */
    HT_KIND_MAPPED = 1,     /* cuMemCreate: expandable segments */
    HT_KIND_POOL = 2,       /* cudaMallocAsync: what its pools hold */
    HT_KIND_CONTEXT = 3,    /* context and loaded kernels; from the catalogue */
    HT_KIND_CUBLAS = 4,     /* memory that libraries take past the framework's allocator: modelled */
    HT_KIND_CUDNN = 5,
    HT_KIND_NCCL = 6,
    HT_KIND_OTHER = 7,      /* managed memory, cuFFT plans, other libraries */
    HT_KIND_GRAPH = 8,      /* what the driver keeps for the nodes of CUDA graphs; from the catalogue */
    HT_KIND_PINNED = 9,     /* pinned host memory */
    HT_KINDS = 10
};

enum ht_gpu_state { HT_GPU_FREE = 0, HT_GPU_LIVE = 1, HT_GPU_ENDED = 2, HT_GPU_REAPED = 3 };

struct ht_gpu_header {
    uint64_t magic;           /*   0 written last, with release */
    uint32_t abi;             /*   8 */
    uint32_t header_bytes;    /*  12 4096 */
    uint32_t device_count;    /*  16 1..HT_GPU_DEVICES */
    uint32_t device_bytes;    /*  20 sizeof(struct ht_gpu) */
    uint32_t slot_count;      /*  24 HT_GPU_SLOTS */
    uint32_t slot_bytes;      /*  28 sizeof(struct ht_gpu_process) */
    uint64_t devices_at;      /*  32 offset of the first device */
    uint64_t slots_at;        /*  40 offset of the first slot */
    uint64_t total_bytes;     /*  48 size of the file */
    uint64_t created_mono_ns; /*  56 CLOCK_MONOTONIC */
    uint64_t created_wall_ns; /*  64 CLOCK_REALTIME */
    uint64_t sequence;        /*  72 odd while something changes under the lock */
    uint64_t slots_lacking;   /*  80 processes that found no slot, or no memory for one: not in the device table */
    uint64_t reaped;          /*  88 processes that died without saying so */
    uint64_t lock[8];         /*  96 the writers' own */
    char spec[2048];          /* 160 the text the table was made from */
    uint64_t slots_used;      /* 2208 slots from the first one on that were ever taken. Those behind have no memory
                                      yet: where the file system is full, a look at one would be a SIGBUS */
    uint64_t pad[235];        /* 2216 .. 4096 */
};

struct ht_gpu {
    char name[96];            /*   0 as the driver gives it: "NVIDIA A10" */
    char slug[32];            /*  96 of the catalogue: "a10" */
    char uuid[48];            /* 128 "GPU-..." */
    char bus[16];             /* 176 "0000:01:00.0" */
    uint64_t total;           /* 192 bytes, as frameworks see it */
    uint64_t reserved;        /* 200 bytes the driver keeps before any process */
    uint64_t context;         /* 208 bytes of a process's context */
    uint64_t used;            /* 216 bytes: reserved + all processes */
    uint64_t peak;            /* 224 of used */
    uint64_t peak_mono_ns;    /* 232 when */
    uint64_t failed;          /* 240 requests that did not fit */
    uint32_t index;           /* 248 */
    uint32_t cc_major;        /* 252 */
    uint32_t cc_minor;        /* 256 */
    uint32_t sm_count;        /* 260 */
    uint32_t threads_per_sm;  /* 264 */
    uint32_t blocks_per_sm;   /* 268 */
    uint32_t shared_per_block;/* 272 bytes */
    uint32_t shared_optin;    /* 276 bytes */
    uint32_t shared_per_sm;   /* 280 bytes */
    uint32_t l2_bytes;        /* 284 */
    uint32_t clock_khz;       /* 288 */
    uint32_t memory_khz;      /* 292 */
    uint32_t bus_bits;        /* 296 */
    uint32_t driver;          /* 300 CUDA version of the driver: 13020 */
    uint32_t ecc;             /* 304 */
    uint32_t pci_device;      /* 308 device id << 16 | vendor id */
    char driver_name[16];     /* 312 "595.58" */
    char spec[696];           /* 328 this device's part of the text: figures for the libraries */
};

struct ht_gpu_use {           /* of one process on one device */
    uint64_t used[HT_KINDS];  /* bytes, by enum ht_gpu_kind */
    uint64_t peak;            /* bytes, of the sum without pinned */
    uint64_t peak_mono_ns;
    uint64_t at_peak[HT_KINDS]; /* used[] when it was at its peak */
    uint64_t failed;          /* requests that did not fit */
    uint64_t launches;        /* kernels started */
};

enum ht_gpu_call_kind {
    HT_CALL_MODELLED = 1,     /* answered from a model worth naming */
    HT_CALL_COMMAND = 2,      /* a command of which nothing is modelled: it succeeded and did nothing */
    HT_CALL_REFUSED = 3       /* has an output that is not modelled: it failed */
};
struct ht_gpu_call {
    uint64_t count;           /* 0: this entry is free */
    uint32_t kind;            /* enum ht_gpu_call_kind */
    uint32_t pad;
    char name[64];            /* "cufftXtQueryPlan" */
};

struct ht_gpu_read {          /* the host read memory that a kernel would have written */
    uint64_t count;           /* 0: this entry is free */
    uint64_t bytes;
    int32_t line;             /* 0: not known */
    uint32_t smallest;        /* bytes of the smallest such read: 1 to 8 is a number that decides something */
    char file[160];           /* the end of the path, where it is longer; "": no Python on this thread */
    char function[72];
};

struct ht_gpu_oom {
    uint64_t number;          /* 1 for the first of the process; 0: free */
    uint64_t mono_ns;
    uint64_t asked;           /* bytes */
    uint64_t free;            /* bytes free on the device */
    uint64_t own;             /* bytes this process had on it */
    uint32_t device;
    uint32_t kind;            /* enum ht_gpu_kind */
    int32_t line;
    uint32_t pad;
    char file[160];
};

struct ht_gpu_process {
    uint32_t state;           /* enum ht_gpu_state, written last */
    uint32_t pid;
    uint64_t process_start;   /* field 22 of /proc/PID/stat: with pid an identity */
    uint64_t sequence;        /* how many slots were taken before: orders them */
    uint64_t began_mono_ns;
    uint64_t ended_mono_ns;   /* 0: lives, or was killed */
    uint64_t calls_lost;      /* calls by names that found no room */
    uint64_t reads_count;     /* all reads of unmodelled memory, also those that found no room below */
    uint64_t reads_bytes;
    uint64_t ooms_count;
    uint64_t shadow_bytes;    /* host memory that keeps what the host wrote */
    uint64_t shadow_dropped;  /* bytes the host wrote that were not kept: too large, or too many */
    uint32_t cuda;            /* CUDA version of the runtime this process was built for: 12040; 0: not known */
    uint32_t rank;            /* $RANK, or 0xffffffff */
    uint64_t visible;         /* bit i: the process can see device i */
    char command[16];         /* /proc/PID/comm */
    uint64_t pad[13];
    struct ht_gpu_use devices[HT_GPU_DEVICES];
    struct ht_gpu_oom ooms[HT_GPU_OOMS];   /* number n is at (n - 1) % HT_GPU_OOMS */
    struct ht_gpu_read reads[HT_GPU_READS];
    struct ht_gpu_call calls[HT_GPU_CALLS];
};

_Static_assert(sizeof(struct ht_gpu_header) == 4096, "header layout");
_Static_assert(sizeof(struct ht_gpu) == 1024, "device layout");
_Static_assert(sizeof(struct ht_gpu_use) == 192 && sizeof(struct ht_gpu_call) == 80, "layouts");
_Static_assert(sizeof(struct ht_gpu_read) == 256 && sizeof(struct ht_gpu_oom) == 216, "layouts");
_Static_assert(sizeof(struct ht_gpu_process) == 224 + 16 * 192 + 64 * 216 + 128 * 256 + 512 * 80, "slot layout");
#endif
