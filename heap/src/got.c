#define _GNU_SOURCE
#include "got.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "lock.h"
#include "objects.h"
#include "real.h"
#include "../../common/identity.h"
#include "../../common/sys.h"

/* Threads run meanwhile: a slot is one word, written at once, and either function does for a call. The loader may be at
 * work in another thread. What it has not finished is known by its pages that will be read-only and are not yet: those
 * objects wait, or else we would take its right to write from under it. Slots elsewhere it may overwrite; then they are
 * written again, for an object is looked at until it is finished. */

#if defined(__x86_64__)
enum { CALL = R_X86_64_JUMP_SLOT, ADDRESS = R_X86_64_GLOB_DAT, DATA = R_X86_64_64 };
#else
enum { CALL = R_AARCH64_JUMP_SLOT, ADDRESS = R_AARCH64_GLOB_DAT, DATA = R_AARCH64_ABS64 };
#endif

#define OBJECTS 4096
#define UNFINISHED_NS 10000000000u /* whose pages are writable for so long is not an object that is being loaded */

static const struct ht_hook *hooks;
static unsigned hook_count;
static struct ht_lock lock;
static uintptr_t done[OBJECTS]; /* where objects begin whose slots are written */
static unsigned done_count;
static int waiting; /* some are not finished */
static uint64_t waiting_since;
static unsigned long long adds, subs; /* objects ever loaded and unloaded, when last looked */

static const struct ht_hook *hook_of(const char *name) {
    for (unsigned i = 0; i < hook_count; i++)
        if (*name == *hooks[i].name && !strcmp(name, hooks[i].name))
            return &hooks[i];
    return NULL;
}

/* An atomic addition of 0, which the kernel refuses where memory cannot be written. */
static int writable(uintptr_t at) {
    static int unused;
    return sys6(SYS_futex, (long)&unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, (long)at,
                FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) != -EFAULT;
}

static int is_fixed(const struct ht_object *object, uintptr_t at) {
    return at - object->fixed_from < object->fixed_to - object->fixed_from;
}

static long protect(const struct ht_object *object, int protection) {
    return sys6(SYS_mprotect, (long)object->fixed_from, (long)(object->fixed_to - object->fixed_from), protection, 0, 0, 0);
}

/* The slot of a relocation that names one of our functions; NULL: it names none. */
static void **slot_of(const struct ht_object *object, const ElfW(Rela) *relocation, void **ours) {
    unsigned type = ELF64_R_TYPE(relocation->r_info);
    if (type != CALL && type != ADDRESS && type != DATA)
        return NULL;
    const struct ht_hook *hook = hook_of(object->names + object->symbols[ELF64_R_SYM(relocation->r_info)].st_name);
    void **slot = (void **)(object->base + relocation->r_offset);
    if (!hook || (type == DATA && *slot != hook->real)) /* data, which the program may have changed */
        return NULL;
    *ours = hook->ours;
    return slot;
}

static void write_slots(const struct ht_object *object, const ElfW(Rela) *relocations, size_t bytes, int *opened) {
    for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++) {
        void *ours, **slot = slot_of(object, &relocations[i], &ours);
        if (!slot)
            continue;
        if (is_fixed(object, (uintptr_t)slot) && !*opened) {
            if (protect(object, PROT_READ | PROT_WRITE) < 0)
                return;
            *opened = 1;
        }
        __atomic_store_n(slot, ours, __ATOMIC_RELEASE);
    }
}

static int is_done(uintptr_t from) {
    for (unsigned i = 0; i < done_count; i++)
        if (done[i] == from)
            return 1;
    return 0;
}

static int finished(const struct ht_object *object) {
    return object->fixed_from == object->fixed_to || !writable(object->fixed_from);
}

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    struct ht_object object;
    if (!ht_object_read(&object, info) || is_done(object.from))
        return 0;
    if ((uintptr_t)hooks - object.from < object.to - object.from || ht_real_is_allocator((void *)object.from))
        return 0; /* ourselves; an allocator's own calls */
    if (!finished(&object)) {
        waiting = 1;
        if (!waiting_since)
            waiting_since = ht_now();
        if (ht_now() - waiting_since < UNFINISHED_NS)
            return 0;
    }
    int opened = 0;
    write_slots(&object, object.calls, object.call_bytes, &opened);
    write_slots(&object, object.others, object.other_bytes, &opened);
    if (opened)
        protect(&object, PROT_READ);
    if (done_count < OBJECTS)
        done[done_count++] = object.from;
    return 0;
}

static int count(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    unsigned long long *counts = data;
    counts[0] = info->dlpi_adds;
    counts[1] = info->dlpi_subs;
    return 1;
}

void ht_got_again(void) {
    unsigned long long now[2] = {0, 0};
    dl_iterate_phdr(count, now);
    if ((now[0] == adds && now[1] == subs && !waiting) || !ht_lock(&lock))
        return;
    if (now[1] != subs)
        done_count = 0; /* another object may lie where one was unloaded */
    adds = now[0];
    subs = now[1];
    waiting = 0;
    dl_iterate_phdr(look, NULL);
    if (!waiting)
        waiting_since = 0;
    ht_unlock(&lock);
}

void ht_got_take(const struct ht_hook *list, unsigned length) {
    hooks = list;
    hook_count = length;
    ht_got_again();
}

void ht_got_forked(void) { ht_unlock(&lock); }
