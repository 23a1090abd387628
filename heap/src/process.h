/* process.h: which process are we, may it write, and where.
 *
 *     no HIGHTIDE_CHANNELS ─▶ OFF for good (every hook only passes through)
 *     constructor ─▶ IDLE ─first sample─▶ OPENING ─▶ OPEN, or OFF if there is no room for a channel
 *     fork (any kind) wipes the state page: the child is IDLE again and opens its own channel
 *     vfork shares the page but not the pid: nothing is written
 */
#ifndef HT_PROCESS_H
#define HT_PROCESS_H
#include "channel.h"

#define HT_DEFAULT_MEAN (512u << 10)

struct ht_config {
    char folder[400];
    uint64_t mean;  /* bytes; HIGHTIDE_HEAP_MEAN, default 512 KiB */
    uint64_t seed;  /* HIGHTIDE_HEAP_SEED; 0: from clock and address */
    int adapt;      /* HIGHTIDE_HEAP_ADAPT=0 holds the mean (tests) */
    uint32_t ring;  /* bytes; HIGHTIDE_HEAP_RING, default 1 MiB */
};
extern struct ht_config ht_config;
extern struct ht_channel ht_channel;

enum ht_process { HT_PROCESS_IDLE = 0, HT_PROCESS_OPENING, HT_PROCESS_OPEN, HT_PROCESS_OFF };

/* What is called as a channel opens: before, when all begins anew, and once it is there. */
struct ht_opening {
    void (*reset)(void);
    void (*opened)(void);
};

/* Reads the environment; called once, before main. */
void ht_process_start(char **environment, struct ht_opening calls);

/* The value of a variable; NULL: it is not set. */
const char *ht_variable(char **environment, const char *name);

/* Whether nothing will ever be written: no run is recorded, or there was no room for a channel. */
int ht_process_off(void);

/* Whether the environment has been read; before, nothing is sampled. */
int ht_process_started(void);

/* Whether this process was forked without libc's knowledge: locks of libc may be held by threads that it does not have. */
int ht_process_torn(void);

/* 1 if this process may write records now, opening its channel if `open` says so. Then ht_process_wrote() must follow
 * what it writes. */
int ht_process_ready(int open);
void ht_process_wrote(void);

/* Goes on with a new channel in another folder, for a second recording of a process; 0: it cannot. */
int ht_process_move(const char *folder);
#endif
