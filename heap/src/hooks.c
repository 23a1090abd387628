/* hooks.c: the functions this library stands in for.
 *
 *     malloc ──▶ ht_passes: one comparison ──▶ the real one, and (rarely) a record with the stack
 *     free   ──▶ ht_forget: one byte of a filter ──▶ (rarely) record ──▶ the real one
 *
 * Built with frame pointers (Makefile): the frame of a hook is where a native stack begins.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "got.h"
#include "objects.h"
#include "process.h"
#include "../../common/interpreter.h"
#include "real.h"
#include "sample.h"
#include "../../common/sys.h"

#define EXPORT __attribute__((visibility("default")))
#define HOOK __builtin_frame_address(0)

/* Each function for a few instructions jumps on to the real one, or to its rare half below. That one
 * keeps a frame, which stands for the hook's: its return address is the hook's caller. */
#define RARE static __attribute__((noinline, cold))

RARE void *sampled_malloc(size_t n) {
    void *p = ht_real.malloc(n);
    ht_sample_slow(p, n, HT_MALLOC, HOOK);
    return p;
}

EXPORT void *malloc(size_t n) {
    if (ht_passes(n))
        return ht_real.malloc(n);
    return sampled_malloc(n);
}

RARE void tracked_free(void *p) {
    ht_sample_forget(p);
    ht_real.free(p);
}

EXPORT void free(void *p) {
    if (ht_maybe_tracked(p))
        tracked_free(p);
    else
        ht_real.free(p);
}

RARE void *sampled_calloc(size_t n, size_t size) {
    void *p = ht_real.calloc(n, size);
    size_t bytes;
    if (!__builtin_mul_overflow(n, size, &bytes))
        ht_sample_slow(p, bytes, HT_CALLOC, HOOK);
    return p;
}

EXPORT void *calloc(size_t n, size_t size) {
    if (ht_passes(n * size))
        return ht_real.calloc(n, size);
    return sampled_calloc(n, size);
}

RARE void *tracked_realloc(void *old, size_t n) {
    int tracked = old && ht_forget(old);
    void *p = ht_real.realloc(old, n);
    if (!ht_passes(n))
        ht_sample_slow(p, n, old ? HT_REALLOC : HT_MALLOC, HOOK);
    if (!p && tracked && n)
        ht_sample_remember(old, HOOK);
    return p;
}

EXPORT void *realloc(void *old, size_t n) {
    if (!ht_maybe_tracked(old) && ht_passes(n))
        return ht_real.realloc(old, n);
    return tracked_realloc(old, n);
}

EXPORT void *reallocarray(void *old, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

RARE int sampled_posix_memalign(void **out, size_t align, size_t n) {
    int result = ht_real.posix_memalign(out, align, n);
    if (result == 0 || result == ENOMEM)
        ht_sample_slow(result == 0 ? *out : NULL, n, HT_ALIGNED, HOOK);
    return result;
}

EXPORT int posix_memalign(void **out, size_t align, size_t n) {
    if (ht_passes(n))
        return ht_real.posix_memalign(out, align, n);
    return sampled_posix_memalign(out, align, n);
}

EXPORT void *aligned_alloc(size_t align, size_t n) {
    void *p = ht_real.aligned_alloc(align, n);
    ht_sample(p, n, HT_ALIGNED, HOOK);
    return p;
}

EXPORT void *memalign(size_t align, size_t n) {
    void *p = ht_real.memalign(align, n);
    ht_sample(p, n, HT_ALIGNED, HOOK);
    return p;
}

EXPORT void *valloc(size_t n) {
    void *p = ht_real.valloc(n);
    ht_sample(p, n, HT_ALIGNED, HOOK);
    return p;
}

EXPORT void *pvalloc(size_t n) {
    void *p = ht_real.pvalloc(n);
    ht_sample(p, n, HT_ALIGNED, HOOK);
    return p;
}

static void *result_of(long result) {
    if (!sys_failed(result))
        return (void *)result;
    errno = (int)-result;
    return MAP_FAILED;
}

/* A file that lies in memory alone: /dev/shm, memfd, huge pages. */
static int in_memory(int fd) {
    struct statfs found;
    return sys_fstatfs(fd, &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == HUGETLBFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

/* Memory that only this mapping keeps: anonymous, or a shared file in memory that one can write (how worker
 * processes pass tensors). Mapped files otherwise are page cache; PROT_NONE and MAP_NORESERVE only
 * reserve addresses. */
static int holds_memory(int protection, int flags, int fd) {
    if (protection == PROT_NONE)
        return 0;
    if (flags & MAP_NORESERVE)
        return 0;
    return flags & MAP_ANONYMOUS || ((flags & MAP_TYPE) != MAP_PRIVATE && protection & PROT_WRITE && in_memory(fd));
}

EXPORT void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    struct ht_told told = {.count = 0};
    if (flags & MAP_FIXED)
        ht_sample_unmapping(at, n, &told, HOOK);
    void *p = result_of(sys_mmap(at, n, protection, flags, fd, offset));
    if (p == MAP_FAILED)
        ht_sample_refused(&told, HOOK);
    else if (holds_memory(protection, flags, fd) && !ht_real_is_allocator(__builtin_return_address(0)))
        ht_sample(p, n, (flags & MAP_TYPE) == MAP_PRIVATE ? HT_MMAP : HT_MMAP_SHARED, HOOK);
    return p;
}
EXPORT void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

EXPORT int munmap(void *p, size_t n) {
    struct ht_told told;
    ht_sample_unmapping(p, n, &told, HOOK);
    long result = sys_munmap(p, n);
    if (result == 0)
        return 0;
    ht_sample_refused(&told, HOOK);
    errno = (int)-result;
    return -1;
}

EXPORT void *mremap(void *old, size_t old_n, size_t n, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *at = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    struct ht_told target = {.count = 0}, source;
    if (flags & MREMAP_FIXED)
        ht_sample_unmapping(at, n, &target, HOOK);
    ht_sample_unmapping(old, old_n, &source, HOOK);
    void *p = result_of(sys6(SYS_mremap, (long)old, (long)old_n, (long)n, flags, (long)at, 0));
    if (p == MAP_FAILED) {
        ht_sample_refused(&target, HOOK);
        ht_sample_refused(&source, HOOK);
    } else if ((source.count || old_n < HT_ALWAYS) && !ht_real_is_allocator(__builtin_return_address(0))) {
        ht_sample(p, n, HT_MMAP, HOOK); /* a large one that is not tracked holds no memory of its own */
    }
    return p;
}

/* Where the agent writes what the training is doing (step, phase, module); NULL: no channel. Ask
 * again after a fork: the child has a channel of its own. */
EXPORT uint64_t *hightide_heap_word(void) {
    ht_interpreter_find();
    if (!ht_process_ready(1))
        return NULL;
    ht_process_wrote(); /* the place stays, also where the channel is another one later */
    return &ht_channel.header->word;
}

/* Has the process go on in another recording: 1, where what it allocates goes there from now on. */
EXPORT int hightide_heap_move(const char *folder) { return ht_process_move(folder); }

/* Whether the program's malloc is ours: a call through the symbol either counts bytes or does not. */
static int bypassed(void) {
    struct ht_thread saved = ht_thread;
    const uint64_t enough = UINT64_MAX / 2; /* another's malloc may map memory, which counts too */
    ht_thread.left = enough;
    void *volatile p = malloc(100);
    int counted = ht_thread.left == enough - 100;
    free(p);
    ht_thread = saved;
    return !counted;
}

/* What a process takes last is seen by nobody else: its mark is told as it ends. */
__attribute__((destructor)) static void end(void) {
    if (!ht_process_ready(0))
        return;
    ht_sample_finish();
    ht_process_wrote();
}

/* A forked worker of Python ends here, past all destructors. A child that shares its parent's memory is not
 * ready, see process.h. */
EXPORT __attribute__((noreturn)) void _exit(int code) {
    end();
    for (;;)
        sys6(SYS_exit_group, code, 0, 0, 0, 0, 0);
}
EXPORT __attribute__((noreturn)) void _Exit(int code) { _exit(code); }

/* The two by which libraries come are watched in a program that runs already. They jump on to the real ones, which look
 * at their caller. What dlopen brings is used once a function of it is looked up. */
static struct {
    void *(*dlopen)(const char *, int);
    void *(*dlsym)(void *, const char *);
} loader;
static void *late_dlopen(const char *path, int how) {
    ht_got_again();
    return loader.dlopen(path, how);
}
static void *late_dlsym(void *handle, const char *name) {
    ht_got_again();
    return loader.dlsym(handle, name);
}

/* Our own, and not what others look up by these names. */
#define OWN(name) extern __typeof__(name) own_##name __attribute__((alias(#name), visibility("hidden")))
#pragma GCC diagnostic ignored "-Wmissing-attributes"
OWN(malloc); OWN(free); OWN(calloc); OWN(realloc); OWN(posix_memalign); OWN(aligned_alloc); OWN(memalign); OWN(valloc);
OWN(pvalloc); OWN(mmap); OWN(mmap64); OWN(munmap); OWN(mremap); OWN(_exit); OWN(_Exit);

static void *late_reallocarray(void *old, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return own_realloc(old, bytes);
}

static struct ht_hook late_hooks[] = {
    {"malloc", own_malloc, 0}, {"free", own_free, 0}, {"calloc", own_calloc, 0}, {"realloc", own_realloc, 0},
    {"reallocarray", late_reallocarray, 0}, {"posix_memalign", own_posix_memalign, 0},
    {"aligned_alloc", own_aligned_alloc, 0}, {"memalign", own_memalign, 0}, {"valloc", own_valloc, 0},
    {"pvalloc", own_pvalloc, 0}, {"mmap", own_mmap, 0}, {"mmap64", own_mmap64, 0}, {"munmap", own_munmap, 0},
    {"mremap", own_mremap, 0}, {"_exit", own__exit, 0}, {"_Exit", own__Exit, 0},
    {"dlopen", late_dlopen, 0}, {"dlsym", late_dlsym, 0},
};
#define LATE_HOOKS (sizeof late_hooks / sizeof *late_hooks)

static void *real_of(const char *name) {
    for (unsigned i = 0; i < LATE_HOOKS; i++)
        if (!strcmp(late_hooks[i].name, name))
            return late_hooks[i].real;
    return NULL;
}

/* Takes the functions' place in the program that runs. */
static void take_place(void) {
    for (unsigned i = 0; i < LATE_HOOKS; i++)
        late_hooks[i].real = ht_objects_define(late_hooks[i].name, late_hooks);
    loader.dlopen = (void *(*)(const char *, int))(uintptr_t)real_of("dlopen");
    loader.dlsym = (void *(*)(void *, const char *))(uintptr_t)real_of("dlsym");
    ht_got_take(late_hooks, loader.dlopen && loader.dlsym ? LATE_HOOKS : LATE_HOOKS - 2);
}

__attribute__((constructor)) static void start(void) { /* musl hands a constructor nothing */
    char **environment = environ;
    int late = ht_variable(environment, "HIGHTIDE_HEAP_LATE") != NULL;
    if (late)
        ht_real_late();
    ht_process_start(environment, (struct ht_opening){ht_sample_reset, ht_sample_flags});
    if (ht_process_off())
        return;
    if (late) {
        ht_interpreter_find();
        take_place();
        return;
    }
    if (bypassed())
        ht_real_bypassed();
    ht_interpreter_find();
}
