/* Loaded in front of the imaginary GPU by scripts/oracle.py: decides what a test of the allocator's
 * model must be able to decide.
 *
 *   addresses  of cudaMalloc: as the device gives them, ascending, descending, or scattered
 *   events     per stream: finished at once, or not before the gate of their stream opens
 *   capacity   a block of memory held aside, so that the rest is what a program can have
 *
 * No CUDA headers: the few types are pointers, sizes and ints.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 1, NOT_READY = 600 };
enum { SLOTS = 4096, EVENTS = 1 << 16 };
#define SLOT_BYTES (8ull << 30)
#define SLOTS_BASE (16ull << 40)

static int order;     /* 0 the device's, 1 ascending, 2 descending, 3 scattered */
static uint64_t next; /* ascending, descending: slots used; scattered: state of the generator */
static void *real[SLOTS]; /* by slot */
static void *ballast;
static uint64_t closed[64]; /* streams whose events are not finished */
static int closed_count;
static struct { void *event; uint64_t stream; } events[EVENTS]; /* hash table of what was recorded last */

static void *following(const char *name) { return dlsym(RTLD_NEXT, name); }

static int slot_free(void)
{
    for (int tries = 0; tries < SLOTS; tries++) {
        uint64_t slot;
        if (order == 3) {
            next = next * 6364136223846793005ull + 1442695040888963407ull;
            slot = (next >> 33) % SLOTS;
        } else {
            slot = order == 1 ? next % SLOTS : SLOTS - 1 - next % SLOTS;
            next++;
        }
        if (!real[slot])
            return (int)slot;
    }
    return -1;
}

int cudaMalloc(void **address, size_t size)
{
    int (*go)(void **, size_t) = (int (*)(void **, size_t))following("cudaMalloc");
    void *p = 0;
    int error = go(&p, size);
    if (error)
        return error;
    int slot = order && size < SLOT_BYTES ? slot_free() : -1;
    if (slot < 0) {
        *address = p;
        return SUCCESS;
    }
    real[slot] = p;
    *address = (void *)(SLOTS_BASE + (uint64_t)slot * SLOT_BYTES);
    return SUCCESS;
}

int cudaFree(void *address)
{
    int (*go)(void *) = (int (*)(void *))following("cudaFree");
    uint64_t a = (uint64_t)address;
    if (a >= SLOTS_BASE && a < SLOTS_BASE + SLOTS * SLOT_BYTES && real[(a - SLOTS_BASE) / SLOT_BYTES]) {
        void **held = &real[(a - SLOTS_BASE) / SLOT_BYTES];
        address = *held;
        *held = 0;
    }
    return go(address);
}

static unsigned place(void *event)
{
    unsigned at = (unsigned)(((uint64_t)event >> 3) * 2654435761u) % EVENTS;
    while (events[at].event && events[at].event != event)
        at = (at + 1) % EVENTS;
    return at;
}

int cudaEventRecord(void *event, void *stream)
{
    unsigned at = place(event);
    events[at].event = event;
    events[at].stream = (uint64_t)stream;
    int (*go)(void *, void *) = (int (*)(void *, void *))following("cudaEventRecord");
    return go(event, stream);
}

int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, stream);
}

int cudaEventQuery(void *event)
{
    unsigned at = place(event);
    for (int i = 0; events[at].event && i < closed_count; i++)
        if (closed[i] == events[at].stream)
            return NOT_READY;
    int (*go)(void *) = (int (*)(void *))following("cudaEventQuery");
    return go(event);
}

/* For the program, by ctypes. */

void oracle_order(int mode, uint64_t seed)
{
    order = mode;
    next = seed;
}

void oracle_gate(uint64_t stream, int open)
{
    for (int i = 0; i < closed_count; i++)
        if (closed[i] == stream) {
            if (open)
                closed[i] = closed[--closed_count];
            return;
        }
    if (!open && closed_count < 64)
        closed[closed_count++] = stream;
}

/* Leaves capacity bytes of the device; 0: all. Returns what is free then. */
uint64_t oracle_capacity(uint64_t capacity)
{
    int (*take)(void **, size_t) = (int (*)(void **, size_t))following("cudaMalloc");
    int (*give)(void *) = (int (*)(void *))following("cudaFree");
    int (*info)(size_t *, size_t *) = (int (*)(size_t *, size_t *))following("cudaMemGetInfo");
    size_t free_bytes = 0, total = 0;
    if (ballast)
        give(ballast);
    ballast = 0;
    if (info(&free_bytes, &total))
        return 0;
    if (capacity && free_bytes > capacity && take(&ballast, free_bytes - capacity))
        return 0;
    if (info(&free_bytes, &total))
        return 0;
    return free_bytes;
}
