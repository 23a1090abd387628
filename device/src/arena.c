/* arena.c: memory of our own from raw system calls, which the heap sampler cannot see. Blocks of up
 * to 512 KiB come in powers of two from 1 MiB chunks and are reused; larger ones are mapped alone. */
#include <string.h>
#include <sys/mman.h>

#include "raw.h"

#define CHUNK HT_MIB
#define SMALLEST 5 /* 2^5 bytes */
#define LARGEST 19 /* 2^19 bytes */

struct node { struct node *next; };
static struct node *lists[LARGEST + 1];
static char *chunk, *chunk_end;
pthread_mutex_t ht_arena_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned size_class(size_t bytes) {
    unsigned order = SMALLEST;
    while ((1ull << order) < bytes)
        order++;
    return order;
}

static void *map(size_t bytes) {
    long at = sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sys_failed(at) ? NULL : (void *)at;
}

static void *carve(unsigned order) {
    size_t bytes = 1ull << order;
    if ((size_t)(chunk_end - chunk) < bytes) {
        char *fresh = map(CHUNK);
        if (!fresh)
            return NULL;
        chunk = fresh;
        chunk_end = fresh + CHUNK;
    }
    char *block = chunk;
    chunk += bytes;
    return block;
}

void *ht_new(size_t bytes) {
    unsigned order = size_class(bytes);
    if (order > LARGEST)
        return map(bytes);
    pthread_mutex_lock(&ht_arena_lock);
    struct node *block = lists[order];
    if (block)
        lists[order] = block->next;
    else
        block = carve(order);
    pthread_mutex_unlock(&ht_arena_lock);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void ht_drop(void *memory, size_t bytes) {
    unsigned order = size_class(bytes);
    if (!memory)
        return;
    if (order > LARGEST) {
        sys_munmap(memory, bytes);
        return;
    }
    struct node *block = memory;
    *(volatile uint64_t *)memory = 0; /* a handle's magic dies with it */
    pthread_mutex_lock(&ht_arena_lock);
    block->next = lists[order];
    lists[order] = block;
    pthread_mutex_unlock(&ht_arena_lock);
}
