#define _GNU_SOURCE
#include "process.h"

#include <string.h>
#include <sys/mman.h>

#include "code.h"
#include "late.h"
#include "maps.h"
#include "python.h"
#include "rate.h"
#include "sample.h"
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

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
extern void *__dso_handle;

static const char *variable(char **environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static uint64_t number(char **environment, const char *name, uint64_t otherwise) {
    const char *text = variable(environment, name);
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
}

static int configure(char **environment) {
    const char *folder = variable(environment, "HIGHTIDE_CHANNELS");
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
    __register_atfork(NULL, NULL, after_fork, &__dso_handle);
    return ON;
}

void ht_process_start(char **environment) { __atomic_store_n(&started, configure(environment), __ATOMIC_RELEASE); }

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
    ht_sample_reset();
    return 1;
}

static int open_once(uint32_t pid) {
    uint32_t expected = HT_PROCESS_IDLE;
    if (!__atomic_compare_exchange_n(&state->process, &expected, HT_PROCESS_OPENING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return 0; /* another thread is at it: what it misses meanwhile is not sampled */
    __atomic_store_n(&state->pid, pid, __ATOMIC_RELAXED);
    void *inherited = ht_channel.header;
    struct ht_channel fresh = {0};
    int open = open_channel() && ht_channel_open(&fresh, ht_config.folder, ht_config.ring, inherited) == 0;
    if (open) {
        ht_channel = fresh;
        ht_sample_flags();
    } else if (inherited) { /* never the parent's again */
        sys_mmap(inherited, HT_HEADER_BYTES + ht_config.ring, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    __atomic_store_n(&state->process, open ? HT_PROCESS_OPEN : HT_PROCESS_OFF, __ATOMIC_RELEASE);
    return open;
}

int ht_process_ready(int open) {
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
