#define _GNU_SOURCE
#include "sample.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "channel.h"
#include "count.h"
#include "../../common/identity.h"
#include "../../common/interpreter.h"
#include "late.h"
#include "maps.h"
#include "native.h"
#include "process.h"
#include "python.h"
#include "rate.h"
#include "real.h"
#include "../../common/sys.h"

#define RECORD(payload) (uint32_t)((sizeof(struct ht_record) + (payload) + 7) & ~7ull)
#define LARGEST RECORD(sizeof(struct ht_alloc) + HT_MAX_FRAMES * sizeof(struct ht_frame))
/* Of the ring, a quarter is kept for frees: one that is lost makes memory look alive for good. */
#define SPARE (ht_config.ring / 4)

__thread struct ht_thread ht_thread;
static uint32_t generation, threads;
static struct ht_rate rate;

void ht_sample_reset(void) {
    ht_rate_start(&rate, ht_config.mean, ht_now());
    ht_count_reset();
    __atomic_store_n(&threads, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

static uint64_t scramble(uint64_t x) { /* splitmix64's finish */
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static void seed(struct ht_thread *thread) {
    uint32_t ordinal = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    uint64_t from = ht_config.seed ? ht_config.seed : ht_now() ^ (uint64_t)(uintptr_t)thread ^ (uint64_t)sys_gettid() << 40;
    thread->random = scramble(from + ordinal * 0x9E3779B97F4A7C15ull) | 1;
}

/* Distributes bytes to come between `left` and `beyond`. */
static void refill(struct ht_thread *thread) {
    uint64_t room = HT_ALWAYS - 1 - thread->left;
    uint64_t bytes = thread->beyond < room ? thread->beyond : room;
    thread->left += bytes;
    thread->beyond -= bytes;
}

static void draw(struct ht_thread *thread) {
    uint64_t mean = __atomic_load_n(&rate.mean, __ATOMIC_RELAXED);
    thread->mean = mean ? mean : ht_config.mean;
    thread->left = 0;
    thread->beyond = ht_draw(&thread->random, thread->mean);
    refill(thread);
}

static void fill_record(struct ht_record *record, uint16_t kind, uint64_t now) {
    record->kind = kind;
    record->aux = 0;
    record->time_ns = now;
}

static int tell_thread(uint32_t tid, uint64_t now) {
    struct { uint32_t tid, length; char name[16]; } body = {.tid = tid};
    sys6(SYS_prctl, PR_GET_NAME, (long)body.name, 0, 0, 0, 0);
    body.length = (uint32_t)strnlen(body.name, sizeof body.name);
    uint32_t bytes = RECORD(sizeof body);
    struct ht_record *record = ht_channel_reserve(&ht_channel, bytes, SPARE);
    if (!record)
        return 0;
    fill_record(record, HT_HEAP_THREAD, now);
    memcpy(record + 1, &body, sizeof body);
    ht_channel_commit(record, bytes);
    return 1;
}

/* First record of this thread in this process: a forked child's thread has a new id. */
static int introduce(struct ht_thread *thread, uint64_t now) {
    uint32_t current = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (thread->generation == current)
        return 1;
    thread->tid = (uint32_t)sys_gettid();
    if (!tell_thread(thread->tid, now))
        return 0;
    thread->generation = current;
    seed(thread);
    return 1;
}

static int track(const struct ht_alloc *alloc) {
    if (alloc->flags & HT_ALLOC_FAILED)
        return 1;
    if (alloc->origin >= HT_MMAP)
        return ht_maps_add((struct ht_map){alloc->address, alloc->size, alloc->weight});
    return ht_table_add(alloc->address);
}

static void untrack(const struct ht_alloc *alloc) {
    struct ht_cut cut;
    if (alloc->flags & HT_ALLOC_FAILED)
        return;
    if (alloc->origin >= HT_MMAP)
        ht_maps_cut(alloc->address, alloc->size, &cut);
    else
        ht_table_take(alloc->address);
}

static void write_alloc(struct ht_alloc *alloc, const struct ht_frame *frames, uint64_t now) {
    struct ht_header *header = ht_channel.header;
    if (!track(alloc)) {
        __atomic_fetch_add(&header->heap_untracked, 1, __ATOMIC_RELAXED);
        return;
    }
    size_t frame_bytes = alloc->frames * sizeof *frames;
    uint32_t bytes = RECORD(sizeof *alloc + frame_bytes);
    struct ht_record *record = ht_channel_reserve(&ht_channel, bytes, SPARE);
    if (!record) {
        untrack(alloc);
        return;
    }
    fill_record(record, HT_HEAP_ALLOC, now);
    memcpy(record + 1, alloc, sizeof *alloc);
    memcpy((char *)(record + 1) + sizeof *alloc, frames, frame_bytes);
    ht_channel_commit(record, bytes);
    __atomic_fetch_add(&header->heap_sampled, 1, __ATOMIC_RELAXED);
}

/* The stack of this thread; -1 if it could not be told. */
static int stack(struct ht_frame *frames, uint8_t *flags, const void *hook, uint64_t now) {
    int truncated, n = ht_python_frames(&ht_channel, frames, &truncated, now);
    *flags = truncated ? HT_ALLOC_TRUNCATED : 0;
    if (n == 0) {
        *flags = HT_ALLOC_OTHER_THREAD;
        n = ht_native_frames(frames, hook);
    }
    return n;
}

void ht_sample_flags(void) {
    uint64_t flags = ht_interpreter_flags() | ht_real_flags();
    __atomic_store_n(&ht_channel.header->heap_flags, flags, __ATOMIC_RELAXED);
}

/* Accounts for a record. Only those that the mean decides about are spent on: to take fewer of these makes up for no
 * large block, which is recorded whatever the mean is. */
static void account(uint64_t began, size_t bytes) {
    struct ht_header *header = ht_channel.header;
    uint64_t wanted = __atomic_load_n(&header->heap_mean_bytes, __ATOMIC_RELAXED);
    if (wanted)
        ht_rate_want(&rate, wanted);
    if (ht_config.adapt) {
        uint64_t now = ht_now();
        ht_rate_spend(&rate, bytes < HT_ALWAYS ? began : now, now, __atomic_load_n(&header->waiting, __ATOMIC_RELAXED));
    }
    __atomic_store_n(&header->heap_mean_now, __atomic_load_n(&rate.mean, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    ht_sample_flags();
}

static int tell_free_now(const struct ht_free *body) {
    uint32_t size = RECORD(sizeof *body);
    if (!ht_channel_room(&ht_channel, size, 0))
        return 0;
    struct ht_record *record = ht_channel_reserve(&ht_channel, size, 0);
    if (!record)
        return 0;
    fill_record(record, HT_HEAP_FREE, ht_now());
    memcpy(record + 1, body, sizeof *body);
    ht_channel_commit(record, size);
    return 1;
}

static void tell_free(uintptr_t address, size_t bytes) {
    struct ht_free body = {address, bytes};
    int first = !ht_late_any() || ht_late_flush(tell_free_now);
    if (first && tell_free_now(&body))
        return;
    if (!ht_late_keep(body))
        ht_channel_drop(&ht_channel, RECORD(sizeof body));
}

void ht_sample_finish(void) {
    if (ht_late_any())
        ht_late_flush(tell_free_now);
    __atomic_store_n(&ht_channel.header->heap_peak_rss, ht_high_water(), __ATOMIC_RELAXED);
    __atomic_store_n(&ht_channel.header->state, HT_STATE_CLOSED, __ATOMIC_RELEASE);
}

static void tell_count(uint64_t now) {
    struct ht_malloc count;
    uint32_t bytes = RECORD(sizeof count);
    if (!ht_count_due(&count, now))
        return;
    struct ht_record *record = ht_channel_reserve(&ht_channel, bytes, SPARE);
    if (!record)
        return;
    fill_record(record, HT_HEAP_MALLOC, ht_now());
    memcpy(record + 1, &count, sizeof count);
    ht_channel_commit(record, bytes);
}

static void write_record(uintptr_t address, size_t bytes, uint64_t weight, int origin, const void *hook) {
    struct ht_thread *thread = &ht_thread;
    struct ht_frame frames[HT_MAX_FRAMES];
    uint64_t now = ht_now();
    int late = ht_late_any() && !ht_late_flush(tell_free_now);
    if (late || !ht_channel_room(&ht_channel, LARGEST, SPARE)) { /* do not even walk the stack */
        ht_channel_drop(&ht_channel, LARGEST);
        return;
    }
    if (!introduce(thread, now))
        return;
    struct ht_alloc alloc = {.address = address, .size = bytes, .weight = weight, .tid = thread->tid,
                             .origin = (uint8_t)origin,
                             .word = __atomic_load_n(&ht_channel.header->word, __ATOMIC_RELAXED)};
    int n = stack(frames, &alloc.flags, hook, now);
    if (n >= 0) {
        alloc.frames = (uint16_t)n;
        if (!address)
            alloc.flags |= HT_ALLOC_FAILED;
        write_alloc(&alloc, frames, now);
    }
    account(now, bytes);
    if (origin < HT_MMAP)
        tell_count(now);
}

/* Records one allocation; the caller has set thread->busy. */
static void record(uintptr_t address, size_t bytes, uint64_t weight, int origin, const void *hook) {
    if (!ht_process_ready(1))
        return;
    write_record(address, bytes, weight, origin, hook);
    ht_process_wrote();
}

static void consider(struct ht_thread *thread, void *p, size_t bytes, int origin, const void *hook) {
    if (bytes >= HT_ALWAYS) {
        record((uintptr_t)p, bytes, bytes, origin, hook);
        return;
    }
    if (!thread->mean) {
        seed(thread);
        draw(thread);
    }
    while (bytes > thread->left && thread->beyond)
        refill(thread);
    if (bytes <= thread->left) {
        thread->left -= bytes;
        return;
    }
    record((uintptr_t)p, bytes, ht_weight(bytes, thread->mean), origin, hook);
    draw(thread); /* the distribution has no memory: the next draw begins behind this allocation */
}

void ht_sample_slow(void *p, size_t bytes, int origin, const void *hook) {
    struct ht_thread *thread = &ht_thread;
    if (thread->busy || (!p && bytes < HT_ALWAYS))
        return;
    if (ht_process_off()) {
        thread->left = UINT64_MAX; /* this thread will not come here again */
        return;
    }
    if (!ht_process_started())
        return;
    int saved = errno;
    thread->busy = 1;
    consider(thread, p, bytes, origin, hook);
    thread->busy = 0;
    errno = saved;
}

int ht_sample_forget(void *p) {
    if (!ht_table_has((uintptr_t)p) || !ht_process_ready(0))
        return 0; /* the filter errs now and then, and asking whose process this is costs a system call */
    int tracked = ht_table_take((uintptr_t)p);
    if (tracked)
        tell_free((uintptr_t)p, 0);
    ht_process_wrote();
    return tracked;
}

void ht_sample_remember(void *p, const void *hook) {
    struct ht_thread *thread = &ht_thread;
    if (thread->busy || !ht_real.malloc_usable_size)
        return;
    size_t bytes = ht_real.malloc_usable_size(p);
    int saved = errno;
    thread->busy = 1;
    uint64_t mean = thread->mean ? thread->mean : ht_config.mean;
    record((uintptr_t)p, bytes, bytes >= HT_ALWAYS ? bytes : ht_weight(bytes, mean), HT_REALLOC, hook);
    thread->busy = 0;
    errno = saved;
}

/* Records a mapping under its own address, with the stack at hand. */
static void record_map(const struct ht_map *map, const void *hook) {
    int saved = errno;
    ht_thread.busy = 1;
    record(map->start, map->bytes, map->weight, HT_MMAP, hook);
    ht_thread.busy = 0;
    errno = saved;
}

static void note_piece(struct ht_told *told, const struct ht_cut *cut) {
    if (told->count < HT_TOLD)
        told->pieces[told->count] = (struct ht_map){cut->map.start + cut->left.bytes, cut->freed,
                                                    cut->map.weight - cut->left.weight - cut->right.weight};
    told->count++;
}

void ht_sample_unmapping(void *p, size_t bytes, struct ht_told *told, const void *hook) {
    struct ht_cut cut;
    told->count = 0;
    if (!ht_maps_any() || !bytes || (uintptr_t)p % 4096 || !ht_process_ready(0))
        return;
    bytes = (bytes + 4095) & ~(size_t)4095;
    while (ht_maps_cut((uintptr_t)p, bytes, &cut)) {
        note_piece(told, &cut);
        tell_free(cut.map.start, cut.left.bytes ? cut.map.bytes - cut.left.bytes : 0);
        if (cut.right.bytes && !ht_thread.busy) /* what remains behind the hole */
            record_map(&cut.right, hook);
    }
    ht_process_wrote();
}

void ht_sample_refused(const struct ht_told *told, const void *hook) {
    uint32_t known = told->count < HT_TOLD ? told->count : HT_TOLD;
    if (!told->count || ht_thread.busy)
        return;
    for (uint32_t i = 0; i < known; i++)
        record_map(&told->pieces[i], hook);
    __atomic_fetch_add(&ht_channel.header->heap_untracked, told->count - known, __ATOMIC_RELAXED);
}
