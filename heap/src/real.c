#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "../../common/loader.h"
#include "objects.h"
#include "../../include/hightide_channel.h"

/* Weak: a program that has none of them still starts. */
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void __libc_free(void *) __attribute__((weak));
extern void *__libc_calloc(size_t, size_t) __attribute__((weak));
extern void *__libc_realloc(void *, size_t) __attribute__((weak));
extern void *__libc_memalign(size_t, size_t) __attribute__((weak));

/* What dlsym itself asks for while we look for the allocator. Never given back. */
static char arena[16384] __attribute__((aligned(64)));
static size_t arena_used;
static uint64_t flags;

struct info { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };
static struct info (*mallinfo2)(void); /* of glibc */

static uintptr_t foreign_from, foreign_to; /* its code; empty: glibc's */

static void *arena_take(size_t bytes, size_t align) {
    size_t at = (arena_used + 16 + align - 1) & ~(align - 1); /* 16: the size, for realloc */
    if (align < 16 || at + bytes > sizeof arena)
        return NULL;
    memcpy(arena + at - 16, &bytes, sizeof bytes);
    arena_used = at + bytes;
    return arena + at;
}

static int in_arena(const void *p) { return (const char *)p >= arena && (const char *)p < arena + sizeof arena; }

static void *early_malloc(size_t n) { return arena_take(n, 16); }
static void *early_calloc(size_t n, size_t size) {
    return size && n > sizeof arena / size ? NULL : arena_take(n * size, 16); /* fresh, so zero */
}
static void early_free(void *p) { (void)p; }

/* Only a process in which the arena was used pays for asking where a pointer is from. */
static void (*real_free)(void *);
static void *(*real_realloc)(void *, size_t);
static void checked_free(void *p) {
    if (!in_arena(p))
        real_free(p);
}
static void *checked_realloc(void *p, size_t n) {
    if (!in_arena(p))
        return real_realloc(p, n);
    size_t old;
    memcpy(&old, (char *)p - 16, sizeof old);
    void *fresh = ht_real.malloc(n);
    if (fresh)
        memcpy(fresh, p, old < n ? old : n);
    return fresh;
}

static int libc_posix_memalign(void **out, size_t align, size_t n) {
    if (align % sizeof(void *) || !align || (align & (align - 1)))
        return EINVAL;
    void *p = __libc_memalign(align, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}
static void *libc_valloc(size_t n) { return __libc_memalign(4096, n); }
static void *libc_pvalloc(size_t n) { return __libc_memalign(4096, (n + 4095) & ~(size_t)4095); }

static void resolve(void);
#define FIRST(result, name, params, args) \
    static result first_##name params { \
        resolve(); \
        return ht_real.name args; \
    }
FIRST(void *, malloc, (size_t n), (n))
FIRST(void *, calloc, (size_t n, size_t size), (n, size))
FIRST(void *, realloc, (void *p, size_t n), (p, n))
FIRST(int, posix_memalign, (void **out, size_t align, size_t n), (out, align, n))
FIRST(void *, aligned_alloc, (size_t align, size_t n), (align, n))
FIRST(void *, memalign, (size_t align, size_t n), (align, n))
FIRST(void *, valloc, (size_t n), (n))
FIRST(void *, pvalloc, (size_t n), (n))
static void first_free(void *p) {
    resolve();
    ht_real.free(p);
}

struct ht_real ht_real = {first_malloc,        first_free,     first_calloc, first_realloc, first_posix_memalign,
                          first_aligned_alloc, first_memalign, first_valloc, first_pvalloc,
                          NULL};

struct range { uintptr_t from, to, holds; };

static int find_object(struct dl_phdr_info *info, size_t size, void *wanted) {
    (void)size;
    struct range *range = wanted;
    uintptr_t from = UINTPTR_MAX, to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        from = start < from ? start : from;
        to = start + segment->p_memsz > to ? start + segment->p_memsz : to;
    }
    if (range->holds < from || range->holds >= to)
        return 0;
    range->from = from;
    range->to = to;
    return 1;
}

/* The program or library that holds an address; empty if none does. */
static struct range object_of(const void *address) {
    struct range range = {0, 0, (uintptr_t)address};
    if (address)
        dl_iterate_phdr(find_object, &range);
    return range;
}

static void use_libc(struct ht_real *real) {
    real->malloc = __libc_malloc;
    real->free = __libc_free;
    real->calloc = __libc_calloc;
    real->realloc = __libc_realloc;
    real->memalign = real->aligned_alloc = __libc_memalign;
    real->posix_memalign = libc_posix_memalign;
    real->valloc = libc_valloc;
    real->pvalloc = libc_pvalloc;
}

#define NEXT(name) \
    do { \
        void *next = ht_dlsym(RTLD_NEXT, #name); \
        if (next) \
            memcpy(&real->name, &next, sizeof next); \
    } while (0)

/* An allocator that has malloc but not, say, valloc: the request goes to its memalign, never to
 * glibc, whose memory it could not free. */
static void *own_valloc(size_t n) { return ht_real.memalign(4096, n); }
static void *own_pvalloc(size_t n) { return ht_real.memalign(4096, (n + 4095) & ~(size_t)4095); }
static void use_next(struct ht_real *real) {
    real->valloc = own_valloc;
    real->pvalloc = own_pvalloc;
    NEXT(malloc);
    NEXT(free);
    NEXT(calloc);
    NEXT(realloc);
    NEXT(posix_memalign);
    NEXT(memalign);
    NEXT(aligned_alloc);
    NEXT(valloc);
    NEXT(pvalloc);
}

/* An allocator may have a mallinfo2 of its own. */
static void find_count(struct range libc) {
    void *found = ht_symbol("mallinfo2");
    if (found && object_of(found).from == libc.from && libc.to)
        memcpy(&mallinfo2, &found, sizeof found);
}

int ht_real_count(struct ht_malloc *count) {
    if (!mallinfo2 || flags & (HT_HEAP_FOREIGN_MALLOC | HT_HEAP_BYPASSED))
        return 0;
    struct info info = mallinfo2();
    *count = (struct ht_malloc){.used = info.uordblks, .free = info.fordblks, .top = info.keepcost, .mapped = info.hblkhd};
    return 1;
}

static void set_foreign(struct range object) {
    foreign_from = object.from;
    foreign_to = object.to;
}

/* Runs at the first allocation, when there is one thread. An allocator may stand in for __libc_malloc
 * too (tcmalloc and mimalloc do), so whose malloc it is, its address says. */
static void resolve(void) {
    struct ht_real found = {0};
    ht_real.malloc = early_malloc;
    ht_real.calloc = early_calloc;
    ht_real.free = early_free;
    ht_real.realloc = checked_realloc;
    void *next = ht_dlsym(RTLD_NEXT, "malloc");
    struct range object = object_of(next), libc = object_of(ht_symbol("gnu_get_libc_version"));
    use_libc(&found);
    if (next)
        use_next(&found);
    if (object.to && object.from != libc.from) {
        flags |= HT_HEAP_FOREIGN_MALLOC;
        set_foreign(object);
    }
    find_count(libc);
    void *usable = ht_dlsym(RTLD_NEXT, "malloc_usable_size");
    memcpy(&found.malloc_usable_size, &usable, sizeof usable);
    real_free = found.free;
    real_realloc = found.realloc;
    if (arena_used) {
        found.free = checked_free;
        found.realloc = checked_realloc;
    }
    ht_real = found;
}

#define DEFINED(name) \
    do { \
        void *defined = ht_objects_define(#name, &ht_real); \
        if (defined) \
            memcpy(&found.name, &defined, sizeof defined); \
    } while (0)

void ht_real_late(void) {
    struct ht_real found = {0};
    void *real = ht_objects_define("malloc", &ht_real);
    struct range object = object_of(real), libc = object_of(ht_objects_define("gnu_get_libc_version", &ht_real));
    flags |= HT_HEAP_LATE;
    use_libc(&found);
    if (object.to && object.from != libc.from) { /* what it lacks goes to its own memalign, see use_next */
        flags |= HT_HEAP_FOREIGN_MALLOC;
        set_foreign(object);
        found.valloc = own_valloc;
        found.pvalloc = own_pvalloc;
    }
    DEFINED(malloc);
    DEFINED(free);
    DEFINED(calloc);
    DEFINED(realloc);
    DEFINED(posix_memalign);
    DEFINED(memalign);
    DEFINED(aligned_alloc);
    DEFINED(malloc_usable_size);
    if (object.from == libc.from) {
        DEFINED(valloc);
        DEFINED(pvalloc);
    }
    find_count(libc);
    ht_real = found;
}

/* A function whose address a program takes may have its address in that program (a PLT entry), so
 * names are tried that are rarely taken, and the program itself counts only if it has them all. */
void ht_real_bypassed(void) {
    static const char *const names[] = {"memalign", "posix_memalign", "aligned_alloc", "calloc", "malloc"};
    flags |= HT_HEAP_BYPASSED;
    resolve();
    void *program = ht_symbol("malloc");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = ht_symbol(names[i]);
        if (!found)
            continue;
        set_foreign(object_of(found));
        if (!ht_real_is_allocator(program))
            return;
    }
}

uint64_t ht_real_flags(void) { return flags; }
int ht_real_is_allocator(const void *return_address) {
    return (uintptr_t)return_address - foreign_from < foreign_to - foreign_from;
}
