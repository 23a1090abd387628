/* calls.c: every entry point once, above the size that is always recorded, and its edges. Prints
 * one line per call: name, size, whether it is alive at the end. Sizes are all different. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ul << 20)
static void need(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        _exit(1);
    }
}

static void heap(void) {
    void *p, *q;
    p = malloc(5 * MIB);
    need(malloc_usable_size(p) >= 5 * MIB, "malloc_usable_size");
    free(p);
    p = calloc(6, MIB);
    for (unsigned long i = 0; i < 6 * MIB; i++)
        need(((char *)p)[i] == 0, "calloc is zero");
    p = realloc(p, 7 * MIB); /* alive: 7 */
    q = malloc(8 * MIB);
    q = realloc(q, 100);
    need(realloc(q, 0) == NULL, "realloc to nothing frees");
    q = reallocarray(NULL, 9, MIB); /* alive: 9 */
    need(posix_memalign(&p, 4096, 10 * MIB) == 0 && (uintptr_t)p % 4096 == 0, "posix_memalign"); /* alive: 10 */
    need(posix_memalign(&q, 3, 10 * MIB) == EINVAL, "a bad alignment");
    p = aligned_alloc(128, 11 * MIB); /* alive: 11 */
    need((uintptr_t)p % 128 == 0, "aligned_alloc");
    p = memalign(1 << 16, 12 * MIB); /* alive: 12 */
    need((uintptr_t)p % (1 << 16) == 0, "memalign");
    free(valloc(13 * MIB));
    free(pvalloc(14 * MIB));
    p = malloc(15 * MIB);
    errno = 0;
    need(realloc(p, SIZE_MAX / 2) == NULL && errno == ENOMEM, "an impossible realloc"); /* alive: 15 */
    volatile size_t huge = SIZE_MAX;
    need(malloc(huge) == NULL && malloc(huge / 2) == NULL && malloc(huge - MIB * MIB) == NULL, "impossible mallocs");
    need(calloc(huge / 2, 4) == NULL && reallocarray(NULL, huge / 2, 4) == NULL, "overflow");
    errno = 77;
    free(malloc(16 * MIB));
    free(NULL);
    need(errno == 77, "errno is the program's");
    free(malloc(0));
}

static void maps(void) {
    int rw = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    char *p = mmap(NULL, 20 * MIB, rw, anonymous, -1, 0);
    munmap(p, 20 * MIB);
    mmap(NULL, 21 * MIB, PROT_NONE, anonymous, -1, 0); /* holds nothing */
    p = mmap(NULL, 22 * MIB, rw, anonymous, -1, 0);
    munmap(p + 18 * MIB, 4 * MIB); /* alive: 18 of 22 */
    p = mmap(NULL, 24 * MIB, rw, anonymous, -1, 0);
    munmap(p, 4 * MIB); /* alive: 20 under an address of their own */
    p = mmap(NULL, 32 * MIB, rw, anonymous, -1, 0);
    munmap(p + 8 * MIB, 8 * MIB); /* alive: 8 and 16 */
    p = mmap(NULL, 40 * MIB, rw, anonymous, -1, 0);
    p = mremap(p, 40 * MIB, 44 * MIB, MREMAP_MAYMOVE);
    need(p != MAP_FAILED, "mremap"); /* alive: 44 */
    p = mmap(NULL, 48 * MIB, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mmap(p, 48 * MIB, PROT_NONE, anonymous | MAP_FIXED, -1, 0); /* mapped over: gone */
    errno = 0;
    need(mmap(NULL, 0, rw, anonymous, -1, 0) == MAP_FAILED && errno == EINVAL, "mmap of nothing");
    errno = 0;
    need(munmap((void *)1, 4096) == -1 && errno == EINVAL, "munmap at an odd address");
    need(mremap((void *)4096, 4096, 8192, 0) == MAP_FAILED && errno, "mremap of nothing");
    FILE *file = tmpfile();
    need(file && ftruncate(fileno(file), 52 * MIB) == 0, "a file");
    mmap(NULL, 52 * MIB, PROT_READ, MAP_PRIVATE, fileno(file), 0); /* page cache */
    int shared = (int)syscall(SYS_memfd_create, "shared", 0);
    need(shared >= 0 && ftruncate(shared, 50 * MIB) == 0, "a file in memory");
    mmap(NULL, 50 * MIB, rw, MAP_SHARED, shared, 0); /* alive: 50 */
}

int main(void) {
    heap();
    maps();
    _exit(0);
}
