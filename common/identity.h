/* identity.h: when it is, and which process this is: pids are given again, with the start they are not. */
#ifndef HT_IDENTITY_H
#define HT_IDENTITY_H
#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC or CLOCK_REALTIME. */
static inline uint64_t ht_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static inline uint64_t ht_now(void) { return ht_clock(CLOCK_MONOTONIC); }

/* When a process started: field 22 of /proc/PID/stat, clock ticks since boot; pid 0: the calling one. 0: there is no
 * such process, or it is a zombie. HT_START_UNKNOWN: it cannot be read (no file to be had, no /proc). */
#define HT_START_UNKNOWN UINT64_MAX
uint64_t ht_started(uint32_t pid);

/* The most that the calling process has had resident since it runs its program, VmHWM in bytes; 0: it cannot be read. */
uint64_t ht_high_water(void);

/* Writes a number in decimal behind `to`, as far as it fits in front of `end`; gives the place behind it. */
char *ht_put_number(char *to, char *end, uint64_t value);
char *ht_put_text(char *to, char *end, const char *from);
#endif
