/* stress.c: many threads allocate, free each other's blocks, and map, through the sampler itself
 * (no preloading), while a reader drains. Built with the thread sanitizer as well. What was read
 * must add up: every free names a live block, nothing is lost, nothing left busy. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "../src/process.h"
#include "../src/rate.h"
#include "../src/sample.h"
#include "../../common/check.h"

enum { THREADS = 6, ROUNDS = 30000, SLOTS = 512 };
static char folder[] = "/tmp/hightide-stress-XXXXXX";
static void *shared[SLOTS]; /* blocks pass from thread to thread */
static int running = THREADS;

static void hook_free(void *p) {
    if (!p)
        return;
    ht_forget(p);
    free(p);
}

static void *worker(void *argument) {
    uint64_t random = (uint64_t)(uintptr_t)argument * 2654435761u + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = 16 + (random >> 40 & 1023);
        void *p = malloc(bytes);
        ht_sample(p, bytes, HT_MALLOC, __builtin_frame_address(0));
        hook_free(__atomic_exchange_n(&shared[random >> 32 & (SLOTS - 1)], p, __ATOMIC_ACQ_REL));
        if (i % 64 == 0) {
            uintptr_t fake = ((uintptr_t)argument << 36) + ((uintptr_t)i << 13);
            ht_sample((void *)fake, 8192, HT_MMAP, __builtin_frame_address(0));
            struct ht_told told;
            ht_sample_unmapping((void *)fake, 4096, &told, __builtin_frame_address(0));
            ht_sample_refused(&told, __builtin_frame_address(0));
            ht_sample_unmapping((void *)fake, 4096, &told, __builtin_frame_address(0));
            ht_sample_unmapping((void *)(fake + 4096), 4096, &told, __builtin_frame_address(0));
        }
    }
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

enum { KNOWN = 1 << 20 };
static uint64_t known[KNOWN]; /* live addresses, as the reader sees them */
static uint64_t allocs, frees, unknown;

static uint64_t *find(uint64_t address) {
    for (uint32_t i = (uint32_t)(address * 0x9E3779B97F4A7C15ull >> 44);; i = (i + 1) % KNOWN)
        if (known[i] == address || known[i] == 0)
            return &known[i];
}

static void see(const struct ht_record *record) {
    if (record->kind == HT_HEAP_ALLOC) {
        const struct ht_alloc *alloc = (const struct ht_alloc *)(record + 1);
        CHECK(alloc->weight >= alloc->size && alloc->frames >= 1, "alloc of %lu", alloc->size);
        *find(alloc->address) = alloc->address;
        allocs++;
    } else if (record->kind == HT_HEAP_FREE) {
        const struct ht_free *body = (const struct ht_free *)(record + 1);
        unknown += *find(body->address) == 0; /* slots are never emptied: seen once is enough */
        frees++;
    } else {
        CHECK(record->kind == HT_PAD || record->kind == HT_HEAP_THREAD, "kind %u", record->kind);
    }
}

static int drain(void) {
    struct ht_header *header = ht_channel.header;
    uint64_t tail = header->tail, size = header->ring_bytes;
    while (tail < __atomic_load_n(&header->head, __ATOMIC_ACQUIRE)) {
        struct ht_record *record = (struct ht_record *)(ht_channel.ring + tail % size);
        uint32_t bytes = __atomic_load_n(&record->bytes, __ATOMIC_ACQUIRE);
        if (!bytes || bytes & HT_BUSY)
            break;
        if (bytes >= sizeof *record)
            see(record);
        memset((char *)record + 4, 0, bytes - 4);
        __atomic_store_n(&record->bytes, 0, __ATOMIC_RELAXED);
        tail += bytes;
        __atomic_store_n(&header->tail, tail, __ATOMIC_RELEASE);
    }
    return tail == __atomic_load_n(&header->head, __ATOMIC_ACQUIRE);
}

int main(void) {
    CHECK(mkdtemp(folder), "a folder");
    char channels[64];
    snprintf(channels, sizeof channels, "HIGHTIDE_CHANNELS=%s", folder);
    char *environment[] = {channels, "HIGHTIDE_HEAP_MEAN=4096", "HIGHTIDE_HEAP_ADAPT=0", "HIGHTIDE_HEAP_RING=262144", NULL};
    ht_process_start(environment, (struct ht_opening){ht_sample_reset, ht_sample_flags});
    CHECK(ht_process_ready(1), "a channel");
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        drain();
        sched_yield();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        hook_free(shared[i]);
    ht_sample_finish();
    CHECK(drain(), "the last record is complete");
    struct ht_header *header = ht_channel.header;
    CHECK(header->heap_sampled == allocs, "%lu sampled, %lu read", header->heap_sampled, allocs);
    CHECK(unknown == 0, "%lu frees of what was never told", unknown);
    uint64_t taken = allocs + header->dropped_records;
    CHECK(taken > THREADS * ROUNDS / 10 && taken < THREADS * ROUNDS / 6, "%lu samples", taken); /* 528 of 4096 bytes */
    CHECK(ht_table_live() == 0, "%u blocks still tracked", ht_table_live());
    printf("stress: %lu allocs, %lu frees, %lu dropped, %d checks passed\n", allocs, frees, header->dropped_records, checks);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}
