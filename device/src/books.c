/* books.c: who uses how much of which device, in shared memory (include/hightide_device.h).
 *
 *     first use ─▶ open the book (or make it) ─▶ first context ─▶ take a slot ─▶ charge, refund
 *     fork: the child has no slot and, where its parent had a context, no use of its devices
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "books.h"

enum { UNOPENED, OPENED };

static struct {
    int state;
    struct ht_gpu_header *header;
    struct ht_gpu *gpus;
    struct ht_gpu_process *slots, *slot;
    char folder[400];
    int visible[HT_GPU_DEVICES], visible_count;
    uint8_t context[HT_GPU_DEVICES]; /* by book index: this process has one */
    int inherited;                   /* the parent had a context: as CUDA does, this child gets none */
    uint64_t generation;
} book = {.generation = 1};
static pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER; /* state, slot, names of counters */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* a context; taken before `local` */
static __thread int current;

static uint64_t sum(const struct ht_gpu_use *use) {
    uint64_t bytes = 0;
    for (int kind = 0; kind < HT_KIND_PINNED; kind++)
        bytes += use->used[kind];
    return bytes;
}

/* A holder was killed in the middle: what the processes have is the truth. */
static void recount(void) {
    for (uint32_t i = 0; i < book.header->device_count; i++) {
        uint64_t bytes = book.gpus[i].reserved;
        for (int slot = 0; slot < HT_GPU_SLOTS; slot++)
            bytes += sum(&book.slots[slot].devices[i]);
        book.gpus[i].used = bytes;
    }
}

static void enter(void) {
    if (ht_lock(book.header))
        recount();
}
static void leave(void) { ht_unlock(book.header); }

/* ---- opening */

/* CUDA_VISIBLE_DEVICES: numbers or the beginnings of UUIDs; the first that is none ends the list. */
static int visible_one(const char *word, size_t n) {
    if (n > 4 && memcmp(word, "GPU-", 4) == 0) {
        for (uint32_t i = 0; i < book.header->device_count; i++)
            if (strncmp(book.gpus[i].uuid, word, n) == 0)
                return (int)i;
        return -1;
    }
    char *end;
    long index = strtol(word, &end, 10);
    return end != word && index >= 0 && index < (long)book.header->device_count ? (int)index : -1;
}

static void see_all(void) {
    for (uint32_t i = 0; i < book.header->device_count; i++)
        book.visible[i] = (int)i;
    book.visible_count = (int)book.header->device_count;
}

static void find_visible(void) {
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    book.visible_count = 0;
    if (!at) {
        see_all();
        return;
    }
    while (*at && book.visible_count < HT_GPU_DEVICES) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        int index = n ? visible_one(at, n) : -1;
        if (index < 0)
            return;
        book.visible[book.visible_count++] = index;
        at += n + (at[n] == ',');
    }
}

static int open_once(void) {
    if (__atomic_load_n(&book.state, __ATOMIC_ACQUIRE) == OPENED)
        return book.header != NULL;
    pthread_mutex_lock(&local);
    if (book.state == UNOPENED) {
        book.header = ht_book_open(book.folder, sizeof book.folder);
        if (book.header) {
            book.gpus = (struct ht_gpu *)(book.header + 1);
            book.slots = (struct ht_gpu_process *)(book.gpus + HT_GPU_DEVICES);
            find_visible();
        }
        __atomic_store_n(&book.state, OPENED, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&local);
    return book.header != NULL;
}

const struct ht_gpu_header *ht_books(void) { return open_once() ? book.header : NULL; }
const char *ht_shared_folder(void) { return open_once() ? book.folder : ""; }
uint64_t ht_generation(void) { return __atomic_load_n(&book.generation, __ATOMIC_RELAXED); }

/* ---- slots */

static void give_back(struct ht_gpu_process *slot, enum ht_gpu_state state) {
    for (uint32_t i = 0; i < book.header->device_count; i++) {
        book.gpus[i].used -= sum(&slot->devices[i]);
        memset(slot->devices[i].used, 0, sizeof slot->devices[i].used);
    }
    __atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

/* Under the lock: processes that were killed hold nothing any more. */
static int reap(void) {
    int found = 0;
    for (int i = 0; i < HT_GPU_SLOTS; i++) {
        struct ht_gpu_process *slot = &book.slots[i];
        if (slot->state != HT_GPU_LIVE || ht_lives(slot->pid, (uint32_t)slot->process_start))
            continue;
        give_back(slot, HT_GPU_REAPED);
        book.header->reaped++;
        found++;
    }
    return found;
}

static struct ht_gpu_process *free_slot(void) {
    struct ht_gpu_process *oldest = NULL;
    for (int i = 0; i < HT_GPU_SLOTS; i++) {
        struct ht_gpu_process *slot = &book.slots[i];
        if (slot->state == HT_GPU_FREE)
            return slot;
        if (slot->state != HT_GPU_LIVE && (!oldest || slot->sequence < oldest->sequence))
            oldest = slot;
    }
    return oldest;
}

static void read_command(char *into, size_t room) {
    long fd = sys_open("/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, into, room - 1);
    if (fd >= 0)
        sys_close((int)fd);
    if (n > 0)
        into[into[n - 1] == '\n' ? n - 1 : n] = 0;
}

static void introduce(struct ht_gpu_process *slot, uint64_t sequence) {
    const char *rank = getenv("RANK");
    memset(slot, 0, sizeof *slot);
    slot->pid = (uint32_t)sys_getpid();
    slot->process_start = ht_process_start();
    slot->sequence = sequence;
    slot->began_mono_ns = ht_now_ns();
    slot->cuda = (uint32_t)ht_cuda_version();
    slot->rank = rank && *rank ? (uint32_t)strtoul(rank, NULL, 10) : UINT32_MAX;
    for (int i = 0; i < book.visible_count; i++)
        slot->visible |= 1ull << book.visible[i];
    read_command(slot->command, sizeof slot->command);
    __atomic_store_n(&slot->state, HT_GPU_LIVE, __ATOMIC_RELEASE);
}

static struct ht_gpu_process *take_slot(void) {
    enter();
    reap();
    struct ht_gpu_process *slot = free_slot();
    uint64_t sequence = 0;
    for (int i = 0; i < HT_GPU_SLOTS; i++)
        if (book.slots[i].state != HT_GPU_FREE && book.slots[i].sequence >= sequence)
            sequence = book.slots[i].sequence + 1;
    if (slot)
        introduce(slot, sequence);
    else
        book.header->slots_lacking++;
    leave();
    if (!slot && (slot = ht_new(sizeof *slot)))
        introduce(slot, 0);
    return slot;
}

struct ht_gpu_process *ht_slot(void) {
    struct ht_gpu_process *slot = __atomic_load_n(&book.slot, __ATOMIC_ACQUIRE);
    if (slot || !open_once())
        return slot;
    pthread_mutex_lock(&local);
    if (!book.slot)
        __atomic_store_n(&book.slot, take_slot(), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&local);
    return book.slot;
}

/* ---- devices */

int ht_device_count(void) { return open_once() ? book.visible_count : 0; }
int ht_device_current(void) { return current; }
void ht_device_set(int ordinal) { current = ordinal; }
int ht_device_index(int ordinal) {
    return open_once() && ordinal >= 0 && ordinal < book.visible_count ? book.visible[ordinal] : -1;
}
const struct ht_gpu *ht_device(int ordinal) {
    int index = ht_device_index(ordinal);
    return index < 0 ? NULL : &book.gpus[index];
}

/* ---- charging */

static void note_oom(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes, const struct ht_line *line) {
    struct ht_gpu *gpu = &book.gpus[index];
    struct ht_gpu_oom *oom = &slot->ooms[slot->ooms_count % HT_GPU_OOMS];
    memset(oom, 0, sizeof *oom);
    oom->mono_ns = ht_now_ns();
    oom->asked = bytes;
    oom->free = gpu->used < gpu->total ? gpu->total - gpu->used : 0;
    oom->own = sum(&slot->devices[index]);
    oom->device = (uint32_t)index;
    oom->kind = kind;
    oom->line = line->line;
    memcpy(oom->file, line->file, sizeof oom->file);
    oom->number = ++slot->ooms_count;
    slot->devices[index].failed++;
    gpu->failed++;
}

static void add(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes) {
    struct ht_gpu *gpu = &book.gpus[index];
    struct ht_gpu_use *use = &slot->devices[index];
    uint64_t now = ht_now_ns();
    use->used[kind] += bytes;
    if (kind == HT_KIND_PINNED)
        return;
    gpu->used += bytes;
    uint64_t own = sum(use);
    if (own > use->peak) {
        use->peak = own;
        use->peak_mono_ns = now;
        memcpy(use->at_peak, use->used, sizeof use->at_peak);
    }
    if (gpu->used > gpu->peak) {
        gpu->peak = gpu->used;
        gpu->peak_mono_ns = now;
    }
}

static int room(int index, uint64_t bytes) {
    const struct ht_gpu *gpu = &book.gpus[index];
    return bytes <= gpu->total && gpu->used <= gpu->total - bytes;
}

static int charge(int index, enum ht_gpu_kind kind, uint64_t bytes) {
    struct ht_gpu_process *slot = ht_slot();
    if (!slot)
        return 0;
    enter();
    int done = kind == HT_KIND_PINNED || room(index, bytes) || (reap() && room(index, bytes));
    if (done)
        add(slot, index, kind, bytes);
    leave();
    if (done)
        return 1;
    struct ht_line line;
    ht_python_line(&line); /* outside the lock: it reads a lot */
    enter();
    note_oom(slot, index, kind, bytes, &line);
    leave();
    return 0;
}

int ht_charge(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    return index >= 0 && ht_context(ordinal) && charge(index, kind, bytes);
}

void ht_refund(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    struct ht_gpu_process *slot = index < 0 ? NULL : ht_slot();
    if (!slot)
        return;
    enter();
    uint64_t *used = &slot->devices[index].used[kind];
    if (bytes > *used)
        bytes = *used;
    *used -= bytes;
    if (kind != HT_KIND_PINNED)
        book.gpus[index].used -= bytes;
    leave();
}

uint64_t ht_in_use(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index < 0)
        return 0;
    enter();
    reap();
    uint64_t used = book.gpus[index].used;
    leave();
    return used;
}

int ht_has_context(int ordinal) {
    int index = ht_device_index(ordinal);
    return index >= 0 && __atomic_load_n(&book.context[index], __ATOMIC_ACQUIRE);
}

int ht_use(int ordinal) {
    if (!open_once() || book.visible_count == 0)
        return 100;
    int index = ht_device_index(ordinal);
    if (index < 0)
        return 101;
    if (__atomic_load_n(&book.context[index], __ATOMIC_ACQUIRE))
        return 0;
    if (book.inherited)
        return 3;
    pthread_mutex_lock(&making);
    int done = book.context[index] || charge(index, HT_KIND_CONTEXT, book.gpus[index].context);
    if (done)
        __atomic_store_n(&book.context[index], 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&making);
    return done ? 0 : 2;
}

int ht_context(int ordinal) { return ht_use(ordinal) == 0; }

void ht_context_gone(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index < 0 || !book.context[index])
        return;
    ht_refund(ordinal, HT_KIND_CONTEXT, book.gpus[index].context);
    __atomic_store_n(&book.context[index], 0, __ATOMIC_RELEASE);
}

void ht_launched(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index >= 0 && book.slot)
        __atomic_fetch_add(&book.slot->devices[index].launches, 1, __ATOMIC_RELAXED);
}

/* ---- the process's end and its children */

static void before_fork(void) {
    pthread_mutex_lock(&making);
    pthread_mutex_lock(&local);
    ht_lock_before_fork();
}
static void after_fork(void) {
    ht_lock_after_fork();
    pthread_mutex_unlock(&local);
    pthread_mutex_unlock(&making);
}
static void in_child(void) {
    for (int i = 0; i < HT_GPU_DEVICES; i++) {
        book.inherited |= book.context[i];
        book.context[i] = 0;
    }
    book.slot = NULL;
    book.generation++;
    after_fork();
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(before_fork, after_fork, in_child); }

__attribute__((destructor)) static void end(void) {
    struct ht_gpu_process *slot = book.slot;
    if (!slot || slot->pid != (uint32_t)sys_getpid())
        return;
    enter();
    slot->ended_mono_ns = ht_now_ns();
    if (slot >= book.slots && slot < book.slots + HT_GPU_SLOTS)
        give_back(slot, HT_GPU_ENDED);
    leave();
}
