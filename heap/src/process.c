#define _GNU_SOURCE
#include "process.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "code.h"
#include "got.h"
#include "late.h"
#include "maps.h"
#include "python.h"
#include "rate.h"
#include "../../common/sys.h"
#include "table.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct ht_config ht_config;
struct ht_channel ht_channel;

/* A page that the kernel zeroes in a forked child (Linux 4.14): how raw forks are noticed. Older
 * kernels leave it to the fork handler, and a raw fork then writes nothing: the pid differs. */
static struct state {
    uint32_t process; /* enum ht_process */
    uint32_t pid;     /* whose state this is; 0: wiped */
} *state;
enum { NOT_YET, ON, NEVER };
static int started; /* NOT_YET until the constructor has run */
static struct ht_opening at_opening;
static int torn;
static uint32_t writers; /* threads that write at this moment */

/* Weak: musl has none, and a program of it would not start. There the page that is wiped tells of forks. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso) __attribute__((weak));
extern void *__dso_handle;

const char *ht_variable(char **environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static uint64_t number(char **environment, const char *name, uint64_t otherwise) {
    const char *text = ht_variable(environment, name);
    uint64_t value = 0;
    if (!text || *text < '0' || *text > '9')
        return otherwise;
    for (; *text >= '0' && *text <= '9' && value < UINT64_MAX / 16; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

static uint32_t ring_bytes(uint64_t wanted) {
    uint32_t bytes = 1u << 16;
    while (bytes < wanted && bytes < (1u << 30))
        bytes <<= 1;
    return bytes;
}

/* Runs in the child, before anything else of it does. Where the parent's ring lay, lies memory of
 * our own now, so that a word written through an inherited address never reaches the parent's. */
static void after_fork(void) {
    if (ht_channel.header)
        sys_mmap(ht_channel.header, ht_channel.mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    state->process = HT_PROCESS_IDLE;
    state->pid = (uint32_t)sys_getpid();
    __atomic_store_n(&writers, 0, __ATOMIC_RELAXED);
    ht_got_forked();
}

static int configure(char **environment) {
    const char *folder = ht_variable(environment, "HIGHTIDE_CHANNELS");
    if (!folder || *folder != '/' || strlen(folder) >= sizeof ht_config.folder)
        return NEVER;
    memcpy(ht_config.folder, folder, strlen(folder) + 1);
    ht_config.mean = ht_mean_within(number(environment, "HIGHTIDE_HEAP_MEAN", HT_DEFAULT_MEAN));
    ht_config.seed = number(environment, "HIGHTIDE_HEAP_SEED", 0);
    ht_config.adapt = number(environment, "HIGHTIDE_HEAP_ADAPT", 1) != 0;
    ht_config.ring = ring_bytes(number(environment, "HIGHTIDE_HEAP_RING", HT_HEAP_RING));
    long page = sys_mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(page))
        return NEVER;
    state = (struct state *)page;
    sys_madvise(state, 4096, MADV_WIPEONFORK);
    state->pid = (uint32_t)sys_getpid();
    if (__register_atfork)
        __register_atfork(NULL, NULL, after_fork, &__dso_handle);
    return ON;
}

void ht_process_start(char **environment, struct ht_opening calls) {
    at_opening = calls;
    __atomic_store_n(&started, configure(environment), __ATOMIC_RELEASE);
}

int ht_process_started(void) { return __atomic_load_n(&started, __ATOMIC_ACQUIRE) != NOT_YET; }

int ht_process_off(void) {
    int now = __atomic_load_n(&started, __ATOMIC_ACQUIRE);
    return now == NEVER || (now == ON && __atomic_load_n(&state->process, __ATOMIC_RELAXED) == HT_PROCESS_OFF);
}

/* What a forked child inherited describes its parent's records; its own start from nothing. */
static int open_channel(void) {
    ht_channel.header = NULL;
    if (ht_table_reset() < 0)
        return 0;
    ht_maps_reset();
    ht_late_reset();
    ht_code_reset();
    ht_python_reset();
    at_opening.reset();
    return 1;
}

static int open_once(uint32_t pid) {
    uint32_t expected = HT_PROCESS_IDLE;
    if (!__atomic_compare_exchange_n(&state->process, &expected, HT_PROCESS_OPENING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return 0; /* another thread is at it */
    torn = torn || !__atomic_load_n(&state->pid, __ATOMIC_RELAXED);
    __atomic_store_n(&state->pid, pid, __ATOMIC_RELAXED);
    void *inherited = ht_channel.header;
    struct ht_channel fresh = {0};
    int open = open_channel() && ht_channel_open(&fresh, ht_config.folder, ht_config.ring, inherited) == 0;
    if (open) {
        ht_channel = fresh;
        at_opening.opened();
    } else if (inherited) { /* never the parent's again */
        sys_mmap(inherited, HT_HEADER_BYTES + ht_config.ring, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    __atomic_store_n(&state->process, open ? HT_PROCESS_OPEN : HT_PROCESS_OFF, __ATOMIC_RELEASE);
    return open;
}

int ht_process_torn(void) { return torn; }

static int may_write(int open) {
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) != ON)
        return 0;
    uint32_t process = __atomic_load_n(&state->process, __ATOMIC_ACQUIRE);
    uint32_t owner = __atomic_load_n(&state->pid, __ATOMIC_RELAXED);
    uint32_t pid = (uint32_t)sys_getpid();
    if (process == HT_PROCESS_OPEN)
        return owner == pid;
    if (process != HT_PROCESS_IDLE || !open || (owner != 0 && owner != pid))
        return 0;
    return open_once(pid);
}

static int opening(void) {
    return __atomic_load_n(&started, __ATOMIC_ACQUIRE) == ON &&
           __atomic_load_n(&state->process, __ATOMIC_ACQUIRE) == HT_PROCESS_OPENING;
}

#define PATIENCE_NS 250000000 /* for one opening; a busy machine may let the thread that opens wait for its turn */

/* Another thread opens the channel. What this one has to tell would be lost meanwhile: it waits until that is done. A
 * child that was forked in the middle of it has no such thread: so all waiting together has an end. */
static void let_open(void) {
    static uint64_t waited;
    const struct timespec pause = {0, 50000};
    for (uint64_t began = ht_now(), now = began; opening(); now = ht_now()) {
        if (now - began > PATIENCE_NS || __atomic_load_n(&waited, __ATOMIC_RELAXED) > 8 * (uint64_t)PATIENCE_NS)
            return;
        if (now - began < 100000)
            sys6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        else
            sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
        __atomic_fetch_add(&waited, ht_now() - now, __ATOMIC_RELAXED);
    }
}

int ht_process_ready(int open) {
    for (int again = 0;; again++) {
        __atomic_fetch_add(&writers, 1, __ATOMIC_ACQ_REL);
        if (may_write(open))
            return 1;
        ht_process_wrote();
        if (!open || again)
            return 0;
        let_open();
    }
}

void ht_process_wrote(void) { __atomic_fetch_sub(&writers, 1, __ATOMIC_ACQ_REL); }

/* No writer may be between the old channel and the new one: the state keeps further ones out, those inside are few
 * microseconds from their end. */
int ht_process_move(const char *folder) {
    const struct timespec pause = {0, 1000000};
    uint32_t open = HT_PROCESS_OPEN;
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) != ON || *folder != '/' || strlen(folder) >= sizeof ht_config.folder)
        return 0;
    if (!__atomic_compare_exchange_n(&state->process, &open, HT_PROCESS_OPENING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
        open != HT_PROCESS_IDLE)
        return 0;
    for (int tries = 0; __atomic_load_n(&writers, __ATOMIC_ACQUIRE) != 0; tries++) {
        if (tries == 1000)
            return 0; /* a thread that was stopped inside: what it would write has no place */
        sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    }
    memcpy(ht_config.folder, folder, strlen(folder) + 1);
    __atomic_store_n(&state->process, HT_PROCESS_IDLE, __ATOMIC_RELEASE);
    return 1;
}
