/* hightide_channel.h: the shared-memory channel between an observed process and the engine.
 *
 * One file per (process, writer), created by the writer in $HIGHTIDE_CHANNELS, mapped MAP_SHARED:
 *
 *     [ header, 4096 bytes ][ ring, ring_bytes, a power of two ]
 *
 * The writer never blocks, never waits for the engine and never needs a file descriptor after
 * mapping; when the ring is full it drops the record and counts it. What is in the ring survives
 * the death of either side. docs/formats/channel.md is the specification, internal/shm the reader,
 * agent/python/src/hightide_agent/channel.py the writer in Python, heap/ the writer in C.
 * Little endian, natural alignment, no padding that is not named.
 */
#ifndef HIGHTIDE_CHANNEL_H
#define HIGHTIDE_CHANNEL_H
#include <stdint.h>

#define HT_CHANNEL_MAGIC 0x31304e4148435448ull /* "HTCHAN01" in memory */
#define HT_CHANNEL_ABI 1u
#define HT_HEADER_BYTES 4096u

enum ht_role { HT_ROLE_AGENT = 1, HT_ROLE_HEAP = 2 };
enum ht_state { HT_STATE_OPEN = 1, HT_STATE_CLOSED = 2, HT_STATE_GAVE_UP = 3 };

#define HT_ALERTS 64
enum { HT_ALERT_TAKEN = 1, HT_ALERT_REFUSED = 2 };

struct ht_header {
    uint64_t magic;           /*   0 written last, with release: a header without it is not ready */
    uint32_t abi;             /*   8 */
    uint32_t role;            /*  12 enum ht_role */
    uint32_t pid;             /*  16 */
    uint32_t header_bytes;    /*  20 HT_HEADER_BYTES */
    uint64_t process_start;   /*  24 field 22 of /proc/self/stat, clock ticks since boot: with pid an identity */
    uint64_t ring_bytes;      /*  32 power of two, 64 KiB .. 1 GiB */
    uint64_t created_mono_ns; /*  40 CLOCK_MONOTONIC */
    uint64_t created_wall_ns; /*  48 CLOCK_REALTIME, read right after created_mono_ns */
    uint64_t flags;           /*  56 zero */
    /* producer line */
    uint64_t head;            /*  64 bytes ever reserved; a multiple of 8 */
    uint64_t dropped_records; /*  72 */
    uint64_t dropped_bytes;   /*  80 */
    uint64_t state;           /*  88 enum ht_state */
    uint64_t pad0[4];         /*  96 */
    /* consumer line: written by the engine only */
    uint64_t tail;            /* 128 bytes ever consumed; <= head */
    uint64_t engine_pid;      /* 136 */
    uint64_t engine_beat_ns;  /* 144 CLOCK_MONOTONIC of the engine's last visit */
    uint64_t pad1[5];         /* 152 */
    /* control line: written by the engine only, read by the writer at its own pace */
    uint64_t control_seq;     /* 192 bumped after any change below */
    uint64_t stop_at_step;    /* 200 0: never */
    uint64_t snapshot_seq;    /* 208 bumped to ask for an allocator snapshot now */
    uint64_t interval_ns;     /* 216 sampling interval wanted; 0: the writer's default */
    uint64_t heap_mean_bytes; /* 224 mean of the Poisson sample wanted; 0: the default */
    uint64_t scan_seq;        /* 232 bumped to ask the agent to look for growing containers */
    uint64_t malloc_seq;      /* 240 bumped to ask the heap library for an HT_HEAP_MALLOC record */
    uint64_t waiting;         /* 248 of 65,536 parts of the last second: those in which the first thread could run and
                               * waited for a processor. Kept up to date without control_seq */
    /* the word: what the training is doing now. The agent writes it into its own header and, where
     * the heap library is loaded, into the heap's as well. For that libhightide_heap.so exports
     * `uint64_t *hightide_heap_word(void)`, the address of this field in the heap's header of this
     * process (NULL: no channel; ask again in a forked child). */
    uint64_t word;            /* 256 HT_WORD(step, phase, module) */
    uint64_t pad3[7];         /* 264 */
    /* heap counters, cumulative, updated at every sample (role heap) */
    uint64_t heap_sampled;    /* 320 allocations recorded */
    uint64_t heap_mean_now;   /* 328 bytes: mean in force */
    uint64_t heap_untracked;  /* 336 sampled allocations that found no room in the table of tracked pointers */
    uint64_t heap_flags;      /* 344 HT_HEAP_* */
    uint64_t heap_peak_rss;   /* 352 bytes: the kernel's high-water mark, written as the process ends; 0: it has not */
    uint64_t pad4[83];        /* 360 */
    /* alerts that the process asked for with "alert" messages, by their id: written by the engine only */
    uint64_t alert_state[HT_ALERTS]; /* 1024 0: not answered yet, or HT_ALERT_* */
    uint64_t alert_count[HT_ALERTS]; /* 1536 how often it has sounded */
    int64_t alert_value[HT_ALERTS];  /* 2048 what passed the limit, in the series' unit; written before the count */
    uint64_t pad5[192];       /* 2560 .. 4096 */
};

#define HT_WORD(step, phase, module) \
    (((uint64_t)(step) << 24) | ((uint64_t)((module) & 0xffffu) << 8) | ((uint64_t)(phase) & 0xffu))

/* Phases nest; the innermost wins in the word. */
enum ht_phase {
    HT_PHASE_NONE = 0, HT_PHASE_STEP = 1, HT_PHASE_DATA = 2, HT_PHASE_FORWARD = 3, HT_PHASE_BACKWARD = 4,
    HT_PHASE_OPTIMIZER = 5, HT_PHASE_EVALUATION = 6, HT_PHASE_CHECKPOINT = 7, HT_PHASE_MODULE = 8,
    HT_PHASE_USER = 9
};

/* Why the heap is seen less well than usual. NO_PYTHON, UNKNOWN_PYTHON, FREE_THREADED: stacks are
 * native only. FOREIGN_MALLOC: the allocator behind the library is not glibc's (all is seen).
 * BYPASSED: another allocator stands before the library, so only mappings are seen. LATE: loaded into a program that ran
 * already: what that held then is not known, and functions that it had looked up by name are not seen. */
enum { HT_HEAP_NO_PYTHON = 1, HT_HEAP_UNKNOWN_PYTHON = 2, HT_HEAP_FOREIGN_MALLOC = 4, HT_HEAP_FREE_THREADED = 8,
       HT_HEAP_BYPASSED = 16, HT_HEAP_LATE = 32 };

/* A record starts at a multiple of 8 and never wraps. What does not fit before the end of the ring
 * is preceded by an HT_PAD record that fills it (its `bytes` may be 8, less than a record header).
 * Writing: reserve by compare-and-swap on head (only if head - tail + n <= ring_bytes), store bytes|HT_BUSY, then the
 * payload, then bytes with release. Reading: at tail, bytes == 0 or busy means "not yet"; after
 * copying records out the reader zeroes their bytes, then advances tail with release.
 * A single writer under a lock may instead write the record first and advance head last. */
#define HT_BUSY 0x80000000u
struct ht_record {
    uint32_t bytes;   /* header included, multiple of 8 */
    uint16_t kind;    /* enum ht_kind */
    uint16_t aux;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
};

enum ht_kind {
    HT_PAD = 0,
    HT_JSON = 1,        /* u32 length, UTF-8 JSON object with "type"; aux 0 */
    HT_EDGE = 2,        /* struct ht_edge */
    HT_COUNTERS = 3,    /* aux = n, then n x struct ht_counter */
    HT_STEP = 4,        /* struct ht_step */
    HT_HEAP_CODE = 64,  /* struct ht_code, then filename, name, line table bytes, no terminators */
    HT_HEAP_ALLOC = 65, /* struct ht_alloc, then frames x struct ht_frame */
    HT_HEAP_FREE = 66,  /* struct ht_free */
    HT_HEAP_THREAD = 67, /* u32 tid, u32 length, name */
    HT_HEAP_MALLOC = 68 /* struct ht_malloc */
};

struct ht_edge {                /* entering or leaving a phase, a module, or a user's span: HT_PHASE_USER. Then `module`
                                 * is an id of the "spans" JSON record, and the record's aux the number of the stay: the
                                 * same at both ends, and that of no other that is open. Stays of threads and tasks overlap */
    uint8_t phase;              /* enum ht_phase */
    uint8_t leave;              /* 0 enter, 1 leave */
    uint16_t module;            /* id from the "modules" JSON record; 0: none */
    uint32_t tid;
    uint64_t step;              /* optimizer steps completed before this edge */
    int64_t rss_bytes;          /* from statm; -1: not read */
    int64_t device_allocated;   /* torch.cuda allocated bytes on the current device; -1: none */
    int64_t device_reserved;    /* -1: none */
};
struct ht_counter { uint32_t series; uint32_t pad; int64_t value; }; /* ids from the "series" JSON record */
struct ht_step {                /* at the end of an optimizer step */
    uint64_t step;              /* 1 after the first */
    uint64_t duration_ns;       /* since the previous step's end; 0 for the first */
    int64_t rss_bytes;          /* -1: not read */
    uint32_t micro_steps;       /* backward passes in this step */
    uint32_t flags;             /* HT_STEP_* */
    int64_t device_allocated;   /* -1: none */
};
enum { HT_STEP_SKIPPED = 1 };   /* a GradScaler found inf or nan and did not step */

struct ht_code {                /* sent once per code object, before the first frame that names it */
    uint32_t code;              /* id, never reused within a channel */
    int32_t first_line;
    uint16_t python;            /* 0x030b for 3.11: how to read the line table */
    uint16_t filename_bytes;
    uint16_t name_bytes;        /* qualified name where the version has one */
    uint16_t pad;
    uint32_t table_bytes;       /* co_lnotab / co_linetable, raw */
    uint32_t pad1;
};
struct ht_frame { uint64_t where; int32_t lasti; uint32_t native; };
    /* native 0: where = code id, lasti = byte offset of the instruction in co_code;
     * native 1: where = return address, lasti 0 */
struct ht_alloc {
    uint64_t address;
    uint64_t size;              /* as asked for */
    uint64_t weight;            /* bytes this sample stands for: size / (1 - exp(-size / mean)); = size when all are recorded */
    uint64_t word;              /* the word at that moment */
    uint32_t tid;
    uint16_t frames;            /* innermost first; <= HT_MAX_FRAMES */
    uint8_t origin;             /* enum ht_origin */
    uint8_t flags;              /* HT_ALLOC_* */
};
#define HT_MAX_FRAMES 64
enum ht_origin { HT_MALLOC = 1, HT_CALLOC = 2, HT_REALLOC = 3, HT_ALIGNED = 4, HT_MMAP = 5, HT_MMAP_SHARED = 6 };
enum { HT_ALLOC_TRUNCATED = 1, HT_ALLOC_OTHER_THREAD = 2, HT_ALLOC_FAILED = 4 /* address 0: there was no memory */ };
struct ht_free { uint64_t address; uint64_t size; };
    /* address: as in the alloc record. size: 0 unless munmap freed a part of it, then how many bytes;
     * its weight shrinks in proportion. What remains behind a hole is told as a new alloc of its own.
     * An alloc at an address that is still live ends the one before it. */

struct ht_malloc {              /* what glibc's malloc holds, in its own count (mallinfo2, from glibc 2.33) */
    uint64_t used;              /* bytes of its arenas that the program has, with what threads keep to hand out again */
    uint64_t free;              /* bytes of its arenas that nobody has, the top included */
    uint64_t top;               /* of free: the end of the main arena */
    uint64_t mapped;            /* bytes of blocks that have a mapping of their own */
    uint64_t duration_ns;       /* that counting took; each arena was locked for its part of it */
};

_Static_assert(sizeof(struct ht_header) == HT_HEADER_BYTES, "header layout");
_Static_assert(sizeof(struct ht_edge) == 40 && sizeof(struct ht_step) == 40 && sizeof(struct ht_malloc) == 40 && sizeof(struct ht_alloc) == 40, "record layouts");
_Static_assert(sizeof(struct ht_record) == 16 && sizeof(struct ht_code) == 24 && sizeof(struct ht_frame) == 16, "record layouts");
#endif
