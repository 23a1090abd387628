/* mix.c: a mixture of allocations whose true sums are known. Keeps every other one, frees the rest
 * (some in another thread), and prints: bytes allocated, bytes alive at the end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 10000 };
static void *kept[N];

static size_t size_of(unsigned i) {
    static const size_t sizes[] = {24, 100, 700, 4000, 30000, 64, 200000, 48, 1000000, 512};
    unsigned which = i * 2654435761u >> 16;
    return sizes[which % 10 >= 8 && which % 7 ? which % 8 : which % 10] + i % 13;
}

static void *take(unsigned i) {
    size_t n = size_of(i);
    void *p = NULL;
    switch (i % 5) {
    case 0: return malloc(n);
    case 1: return calloc(1, n);
    case 2: return realloc(NULL, n);
    case 3: return posix_memalign(&p, 64, n) ? NULL : p;
    default: return aligned_alloc(64, n);
    }
}

static void *release(void *unused) {
    (void)unused;
    for (unsigned i = 1; i < N; i += 4)
        free(kept[i]);
    return NULL;
}

int main(void) {
    unsigned long total = 0, alive = 0;
    for (unsigned i = 0; i < N; i++) {
        kept[i] = take(i);
        total += size_of(i);
        alive += i % 2 ? 0 : size_of(i);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, release, NULL);
    for (unsigned i = 3; i < N; i += 4)
        free(kept[i]);
    pthread_join(thread, NULL);
    printf("%lu %lu\n", total, alive);
    fflush(stdout);
    _exit(0);
}
