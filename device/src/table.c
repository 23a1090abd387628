/* table.c: who uses how much of which device, in shared memory (include/hightide_device.h).
 *
 *     first use ─▶ open the table (or make it) ─▶ first context ─▶ take a slot ─▶ charge, refund
 *     fork: the child has no slot and, where its parent had a context, no use of its devices
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

enum { UNOPENED, OPENED };

static struct {
    int state;
    uint32_t count; /* of devices, read once: the table is shared, and any of its writers may be broken */
    struct ht_gpu_header *header;
    struct ht_gpu *gpus;
    struct ht_gpu_process *slots, *slot;
    char folder[400];
    int visible[HT_GPU_DEVICES], visible_count;
    uint8_t context[HT_GPU_DEVICES]; /* by table index: this process has one */
    int inherited;                   /* the parent had a context: as CUDA does, this child gets none */
    uint64_t generation;
} table = {.generation = 1};
pthread_mutex_t ht_table_lock = PTHREAD_MUTEX_INITIALIZER, ht_context_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int current;

static uint64_t sum(const struct ht_gpu_use *use) {
    uint64_t bytes = 0;
    for (int kind = 0; kind < HT_KIND_PINNED; kind++)
        bytes += use->used[kind];
    return bytes;
}

/* How many slots have memory: none behind them may be looked at. */
static uint64_t slots_used(void) {
    uint64_t used = __atomic_load_n(&table.header->slots_used, __ATOMIC_ACQUIRE);
    return used < HT_GPU_SLOTS ? used : HT_GPU_SLOTS;
}

/* A holder was killed in the middle: what the processes have is the truth. */
static void recount(void) {
    uint64_t used = slots_used();
    for (uint32_t i = 0; i < table.count; i++) {
        uint64_t bytes = table.gpus[i].reserved;
        for (uint64_t slot = 0; slot < used; slot++)
            bytes += sum(&table.slots[slot].devices[i]);
        table.gpus[i].used = bytes;
    }
}

static void enter(void) {
    if (ht_lock(table.header))
        recount();
}
static void leave(void) { ht_unlock(table.header); }

/* ---- opening */

/* CUDA_VISIBLE_DEVICES: numbers or the beginnings of UUIDs; the first that is none ends the list. */
static int visible_one(const char *word, size_t n) {
    if (n > 4 && memcmp(word, "GPU-", 4) == 0) {
        for (uint32_t i = 0; i < table.count; i++)
            if (n <= sizeof table.gpus[i].uuid && strncmp(table.gpus[i].uuid, word, n) == 0)
                return (int)i;
        return -1;
    }
    char *end;
    long index = strtol(word, &end, 10);
    return end != word && index >= 0 && index < (long)table.count ? (int)index : -1;
}

static void see_all(void) {
    for (uint32_t i = 0; i < table.count; i++)
        table.visible[i] = (int)i;
    table.visible_count = (int)table.count;
}

static void find_visible(void) {
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    table.visible_count = 0;
    if (!at) {
        see_all();
        return;
    }
    while (*at && table.visible_count < HT_GPU_DEVICES) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        int index = n ? visible_one(at, n) : -1;
        if (index < 0)
            return;
        table.visible[table.visible_count++] = index;
        at += n + (at[n] == ',');
    }
}

static int open_once(void) {
    if (__atomic_load_n(&table.state, __ATOMIC_ACQUIRE) == OPENED)
        return table.header != NULL;
    pthread_mutex_lock(&ht_table_lock);
    if (table.state == UNOPENED) {
        table.header = ht_table_open(table.folder, sizeof table.folder);
        if (table.header) {
            table.count = __atomic_load_n(&table.header->device_count, __ATOMIC_RELAXED);
            table.count = table.count < HT_GPU_DEVICES ? table.count : HT_GPU_DEVICES;
            table.gpus = (struct ht_gpu *)(table.header + 1);
            table.slots = (struct ht_gpu_process *)(table.gpus + HT_GPU_DEVICES);
            find_visible();
        }
        __atomic_store_n(&table.state, OPENED, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&ht_table_lock);
    return table.header != NULL;
}

const struct ht_gpu_header *ht_table(void) { return open_once() ? table.header : NULL; }
uint32_t ht_gpu_count(void) { return open_once() ? table.count : 0; }
const struct ht_gpu *ht_gpu_at(uint32_t index) { return index < ht_gpu_count() ? &table.gpus[index] : NULL; }
const struct ht_gpu_process *ht_process_at(uint64_t index) {
    return open_once() && index < slots_used() ? &table.slots[index] : NULL;
}
const char *ht_shared_folder(void) { return open_once() ? table.folder : ""; }
uint64_t ht_generation(void) { return __atomic_load_n(&table.generation, __ATOMIC_RELAXED); }

/* ---- slots */

static void give_back(struct ht_gpu_process *slot, enum ht_gpu_state state) {
    for (uint32_t i = 0; i < table.count; i++) {
        table.gpus[i].used -= sum(&slot->devices[i]);
        memset(slot->devices[i].used, 0, sizeof slot->devices[i].used);
    }
    __atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

/* Under the lock: processes that were killed hold nothing any more. */
static int reap(void) {
    int found = 0;
    uint64_t used = slots_used();
    for (uint64_t i = 0; i < used; i++) {
        struct ht_gpu_process *slot = &table.slots[i];
        if (slot->state != HT_GPU_LIVE || ht_lives(slot->pid, (uint32_t)slot->process_start))
            continue;
        give_back(slot, HT_GPU_REAPED);
        table.header->reaped++;
        found++;
    }
    return found;
}

/* A slot that was never used, if there is memory for it; once all have been, the one that ended first. */
static struct ht_gpu_process *free_slot(void) {
    uint64_t used = slots_used();
    struct ht_gpu_process *fresh = used < HT_GPU_SLOTS ? &table.slots[used] : NULL, *oldest = NULL;
    if (fresh && sys_populate(fresh, sizeof *fresh) != 0)
        return NULL;
    if (fresh) {
        __atomic_store_n(&table.header->slots_used, used + 1, __ATOMIC_RELEASE);
        return fresh;
    }
    for (uint64_t i = 0; i < used; i++) {
        struct ht_gpu_process *slot = &table.slots[i];
        if (slot->state != HT_GPU_LIVE && (!oldest || slot->sequence < oldest->sequence))
            oldest = slot;
    }
    return oldest;
}

/* What a slot says of its process. Asks the loader, so none of our locks may be held: a thread in a library's
 * constructor has the loader's, and may wait for ours. */
struct facts { uint32_t cuda, rank; uint64_t start; char command[sizeof((struct ht_gpu_process *)0)->command]; };

static void read_command(char *into, size_t room) {
    long fd = sys_open("/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, into, room - 1);
    if (fd >= 0)
        sys_close((int)fd);
    if (n > 0)
        into[into[n - 1] == '\n' ? n - 1 : n] = 0;
}

static struct facts own_facts(void) {
    const char *rank = getenv("RANK");
    struct facts facts = {.cuda = (uint32_t)ht_cuda_version(), .start = ht_process_start()};
    facts.rank = rank && *rank ? (uint32_t)strtoul(rank, NULL, 10) : UINT32_MAX;
    read_command(facts.command, sizeof facts.command);
    return facts;
}

static void introduce(struct ht_gpu_process *slot, uint64_t sequence, const struct facts *facts) {
    memset(slot, 0, sizeof *slot);
    slot->pid = (uint32_t)sys_getpid();
    slot->process_start = facts->start;
    slot->sequence = sequence;
    slot->began_mono_ns = ht_now();
    slot->cuda = facts->cuda;
    slot->rank = facts->rank;
    for (int i = 0; i < table.visible_count; i++)
        slot->visible |= 1ull << table.visible[i];
    memcpy(slot->command, facts->command, sizeof slot->command);
    __atomic_store_n(&slot->state, HT_GPU_LIVE, __ATOMIC_RELEASE);
}

static struct ht_gpu_process *take_slot(const struct facts *facts) {
    enter();
    reap();
    uint64_t sequence = 0, used = slots_used();
    for (uint64_t i = 0; i < used; i++)
        if (table.slots[i].state != HT_GPU_FREE && table.slots[i].sequence >= sequence)
            sequence = table.slots[i].sequence + 1;
    struct ht_gpu_process *slot = free_slot();
    if (slot)
        introduce(slot, sequence, facts);
    else
        table.header->slots_lacking++;
    leave();
    if (slot)
        return slot;
    fprintf(stderr, "hightide: %s: no room for another process: what this one has on the imaginary GPUs is not seen\n",
            *table.folder ? table.folder : "shared memory");
    if ((slot = ht_new(sizeof *slot)))
        introduce(slot, 0, facts);
    return slot;
}

struct ht_gpu_process *ht_slot(void) {
    struct ht_gpu_process *slot = __atomic_load_n(&table.slot, __ATOMIC_ACQUIRE);
    if (slot || !open_once())
        return slot;
    struct facts facts = own_facts();
    pthread_mutex_lock(&ht_table_lock);
    if (!table.slot)
        __atomic_store_n(&table.slot, take_slot(&facts), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ht_table_lock);
    return table.slot;
}

/* ---- devices */

int ht_device_count(void) { return open_once() ? table.visible_count : 0; }
int ht_device_current(void) { return current; }
void ht_device_set(int ordinal) { current = ordinal; }
int ht_device_index(int ordinal) {
    return open_once() && ordinal >= 0 && ordinal < table.visible_count ? table.visible[ordinal] : -1;
}
const struct ht_gpu *ht_device(int ordinal) {
    int index = ht_device_index(ordinal);
    return index < 0 ? NULL : &table.gpus[index];
}

uint64_t ht_figure(int ordinal, const char *key, uint64_t absent) {
    const struct ht_gpu *gpu = ht_device(ordinal);
    return gpu ? ht_spec_number(gpu->spec, key, absent) : absent;
}

/* ---- charging */

static void note_oom(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes, const struct ht_line *line) {
    struct ht_gpu *gpu = &table.gpus[index];
    uint64_t before = slot->ooms_count;
    struct ht_gpu_oom *oom = &slot->ooms[before % HT_GPU_OOMS];
    memset(oom, 0, sizeof *oom);
    oom->mono_ns = ht_now();
    oom->asked = bytes;
    oom->free = gpu->used < gpu->total ? gpu->total - gpu->used : 0;
    oom->own = sum(&slot->devices[index]);
    oom->device = (uint32_t)index;
    oom->kind = kind;
    oom->line = line->line;
    memcpy(oom->file, line->file, sizeof oom->file);
    oom->number = slot->ooms_count = before + 1;
    slot->devices[index].failed++;
    gpu->failed++;
}

static void add(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes) {
    struct ht_gpu *gpu = &table.gpus[index];
    struct ht_gpu_use *use = &slot->devices[index];
    uint64_t now = ht_now();
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
    const struct ht_gpu *gpu = &table.gpus[index];
    return bytes <= gpu->total && gpu->used <= gpu->total - bytes;
}

static int take(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes) {
    if (!slot)
        return 0;
    enter();
    int done = kind == HT_KIND_PINNED || room(index, bytes) || (reap() && room(index, bytes));
    if (done)
        add(slot, index, kind, bytes);
    leave();
    return done;
}

static void refuse(struct ht_gpu_process *slot, int index, enum ht_gpu_kind kind, uint64_t bytes) {
    struct ht_line line;
    if (!slot)
        return;
    ht_python_line(&line);
    enter();
    note_oom(slot, index, kind, bytes, &line);
    leave();
}

int ht_charge_quietly(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    return index >= 0 && take(__atomic_load_n(&table.slot, __ATOMIC_ACQUIRE), index, kind, bytes);
}

void ht_refused(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    if (index >= 0)
        refuse(ht_slot(), index, kind, bytes);
}

int ht_charge(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    if (!ht_context(ordinal))
        return 0;
    if (ht_charge_quietly(ordinal, kind, bytes))
        return 1;
    ht_refused(ordinal, kind, bytes);
    return 0;
}

void ht_refund(int ordinal, enum ht_gpu_kind kind, uint64_t bytes) {
    int index = ht_device_index(ordinal);
    struct ht_gpu_process *slot = index < 0 ? NULL : __atomic_load_n(&table.slot, __ATOMIC_ACQUIRE);
    if (!slot) /* it was charged nothing: a forked child */
        return;
    enter();
    uint64_t *used = &slot->devices[index].used[kind];
    if (bytes > *used)
        bytes = *used;
    *used -= bytes;
    if (kind != HT_KIND_PINNED)
        table.gpus[index].used -= bytes;
    leave();
}

uint64_t ht_in_use(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index < 0)
        return 0;
    enter();
    reap();
    uint64_t used = table.gpus[index].used;
    leave();
    return used;
}

int ht_has_context(int ordinal) {
    int index = ht_device_index(ordinal);
    return index >= 0 && __atomic_load_n(&table.context[index], __ATOMIC_ACQUIRE);
}

int ht_use(int ordinal) {
    if (!open_once() || table.visible_count == 0)
        return 100;
    int index = ht_device_index(ordinal);
    if (index < 0)
        return 101;
    if (__atomic_load_n(&table.context[index], __ATOMIC_ACQUIRE))
        return 0;
    if (table.inherited)
        return 3;
    struct ht_gpu_process *slot = ht_slot();
    uint64_t bytes = table.gpus[index].context;
    pthread_mutex_lock(&ht_context_lock);
    int done = table.context[index] || take(slot, index, HT_KIND_CONTEXT, bytes);
    if (done)
        __atomic_store_n(&table.context[index], 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ht_context_lock);
    if (!done)
        refuse(slot, index, HT_KIND_CONTEXT, bytes);
    return done ? 0 : 2;
}

int ht_context(int ordinal) { return ht_use(ordinal) == 0; }

void ht_context_gone(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index < 0 || !table.context[index])
        return;
    ht_refund(ordinal, HT_KIND_CONTEXT, table.gpus[index].context);
    __atomic_store_n(&table.context[index], 0, __ATOMIC_RELEASE);
}

void ht_launched(int ordinal) {
    int index = ht_device_index(ordinal);
    if (index >= 0 && table.slot)
        __atomic_fetch_add(&table.slot->devices[index].launches, 1, __ATOMIC_RELAXED);
}

/* ---- the process's end and its children */

void ht_table_in_child(void) {
    for (int i = 0; i < HT_GPU_DEVICES; i++) {
        table.inherited |= table.context[i];
        table.context[i] = 0;
    }
    table.slot = NULL;
    table.generation++;
}

/* Whether this process, or one that it was forked from, has used a device and not only asked about it. */
HT_EXPORT int hightide_device_used(void) {
    int used = table.inherited;
    for (int i = 0; i < HT_GPU_DEVICES; i++)
        used |= table.context[i];
    return used;
}

/* In a child that has used none: the table that the environment names now takes the place of its parent's. That one
 * stays where it is, as handles to its GPUs may have been given out. */
HT_EXPORT void hightide_device_renew(void) {
    pthread_mutex_lock(&ht_table_lock);
    table.slot = NULL;
    table.generation++;
    __atomic_store_n(&table.state, UNOPENED, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ht_table_lock);
}

__attribute__((destructor)) static void end(void) {
    struct ht_gpu_process *slot = table.slot;
    if (!slot || slot->pid != (uint32_t)sys_getpid())
        return;
    enter();
    slot->ended_mono_ns = ht_now();
    give_back(slot, HT_GPU_ENDED);
    leave();
}
