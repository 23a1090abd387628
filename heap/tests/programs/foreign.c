/* foreign.c: an allocator like those that users preload (build with -shared -fPIC). It has memory by mmap,
 * a mark before each block, and abort where a block is freed that is not its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MARK 0x666f726569676e21ull
struct head { uint64_t mark, mapped, offset, bytes; };

static void *take(size_t align, size_t n) {
    if (n > 1ul << 46)
        return errno = ENOMEM, NULL;
    size_t mapped = (n + align + sizeof(struct head) + 4095) & ~4095ul;
    char *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    uintptr_t at = ((uintptr_t)base + sizeof(struct head) + align - 1) & ~(align - 1);
    ((struct head *)at)[-1] = (struct head){MARK, mapped, at - (uintptr_t)base, n};
    return (void *)at;
}

static struct head *head_of(void *p) {
    struct head *head = (struct head *)p - 1;
    if (head->mark != MARK)
        abort();
    return head;
}

void *malloc(size_t n) { return take(16, n); }
void *memalign(size_t align, size_t n) { return take(align < 16 ? 16 : align, n); }
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void **out, size_t align, size_t n) { return (*out = memalign(align, n)) ? 0 : ENOMEM; }
void *calloc(size_t n, size_t size) { return take(16, n * size); }
void free(void *p) {
    if (p) {
        struct head *head = head_of(p);
        head->mark = 0;
        munmap((char *)p - head->offset, head->mapped);
    }
}
void *realloc(void *old, size_t n) {
    void *p = take(16, n);
    if (p && old) {
        size_t had = head_of(old)->bytes;
        memcpy(p, old, had < n ? had : n);
        free(old);
    }
    return p;
}
size_t malloc_usable_size(void *p) { return p ? head_of(p)->bytes : 0; }
