/* rate.h: the mean of the sample, and how it follows the overhead budget. */
#ifndef HT_RATE_H
#define HT_RATE_H
#include <stdint.h>

/* Where `mean` stands and what the current window has cost. Times in ns, from the caller. */
struct ht_rate {
    uint64_t base;   /* wanted: the default, the environment's or the engine's */
    uint64_t mean;   /* in force, >= base */
    uint64_t window; /* when the current window began */
    uint64_t spent;  /* ns spent sampling in it */
    uint32_t calm;   /* windows in a row that stayed far below the budget */
};

#define HT_WINDOW_NS 100000000u    /* 100 ms */
#define HT_BUDGET_NS 250000u       /* 0.25 % of the time by our own clock, see HT_WHOLE_TIME */
#define HT_CALM_NS (HT_BUDGET_NS * 2 / 5) /* below, half the mean stays within the budget */
#define HT_IDLE_NS (HT_CALM_NS / 4) /* below, a burst is over: one window of it is enough */
#define HT_SAMPLE_CAP_NS 20000u    /* a sample that took longer was interrupted: it counts as this */
#define HT_CALM_WINDOWS 10u
#define HT_MOST_TIMES 32u          /* the wanted mean: one sample of more would say nothing of a line */
#define HT_WHOLE_TIME 65536u       /* the unit of `waiting` */
#define HT_LEAST_TIME 4096u        /* of it, that a program has a processor: less is not believed */

uint64_t ht_mean_within(uint64_t mean);
void ht_rate_start(struct ht_rate *rate, uint64_t base, uint64_t now);
void ht_rate_want(struct ht_rate *rate, uint64_t base);

/* Accounts for a sample that ran from `began` to `now`, adapting the mean where a window is over
 * or its budget is spent. `waiting`: of HT_WHOLE_TIME, what the program waits for a processor: what is spent weighs more
 * in the rest. Racing threads may lose a sample's cost, never the bounds of the mean. */
void ht_rate_spend(struct ht_rate *rate, uint64_t began, uint64_t now, uint64_t waiting);

/* A draw from the exponential distribution with that mean, in bytes; *random is xorshift64*'s state. */
uint64_t ht_draw(uint64_t *random, uint64_t mean);

/* What one sampled allocation stands for: size / (1 - exp(-size / mean)). */
uint64_t ht_weight(uint64_t size, uint64_t mean);
#endif
