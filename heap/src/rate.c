#include "rate.h"

#include "numbers.h"

uint64_t ht_mean_within(uint64_t mean) {
    const uint64_t least = 4u << 10, most = 1u << 30;
    return mean < least ? least : mean > most ? most : mean;
}

static uint64_t get(const uint64_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
static void set(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

void ht_rate_start(struct ht_rate *rate, uint64_t base, uint64_t now) {
    set(&rate->base, ht_mean_within(base));
    set(&rate->mean, get(&rate->base));
    set(&rate->window, now);
    set(&rate->spent, 0);
    __atomic_store_n(&rate->calm, 0, __ATOMIC_RELAXED);
}

void ht_rate_want(struct ht_rate *rate, uint64_t base) {
    base = ht_mean_within(base);
    if (base == get(&rate->base))
        return;
    set(&rate->base, base);
    set(&rate->mean, base);
}

static void next_window(struct ht_rate *rate, uint64_t now) {
    set(&rate->window, now);
    set(&rate->spent, 0);
}

static uint64_t cost_of(uint64_t ns, uint64_t waiting) {
    const uint64_t most = HT_WHOLE_TIME - HT_LEAST_TIME;
    ns = ns < HT_SAMPLE_CAP_NS ? ns : HT_SAMPLE_CAP_NS;
    return ns * HT_WHOLE_TIME / (HT_WHOLE_TIME - (waiting < most ? waiting : most));
}

void ht_rate_spend(struct ht_rate *rate, uint64_t began, uint64_t now, uint64_t waiting) {
    uint64_t cost = cost_of(now - began, waiting);
    uint64_t spent = __atomic_add_fetch(&rate->spent, cost, __ATOMIC_RELAXED);
    uint64_t mean = get(&rate->mean), age = now - get(&rate->window), most = get(&rate->base) * HT_MOST_TIMES;
    if (spent > HT_BUDGET_NS && age < HT_WINDOW_NS) { /* do not wait for the end of the window */
        set(&rate->mean, ht_mean_within(mean * 2 < most ? mean * 2 : most));
        __atomic_store_n(&rate->calm, 0, __ATOMIC_RELAXED);
        next_window(rate, now);
        return;
    }
    if (age < HT_WINDOW_NS)
        return;
    /* The window may be long over: what counts is the cost in each 100 ms of it, and how many these are. */
    uint64_t each = spent * HT_WINDOW_NS / age, passed = age / HT_WINDOW_NS;
    uint32_t more = passed < HT_CALM_WINDOWS ? (uint32_t)passed : HT_CALM_WINDOWS;
    uint32_t windows = each < HT_CALM_NS ? __atomic_add_fetch(&rate->calm, more, __ATOMIC_RELAXED) : 0;
    if (windows >= (each < HT_IDLE_NS ? 1 : HT_CALM_WINDOWS) && mean > get(&rate->base)) {
        set(&rate->mean, mean / 2 > get(&rate->base) ? mean / 2 : get(&rate->base));
        windows = 0;
    }
    __atomic_store_n(&rate->calm, windows, __ATOMIC_RELAXED);
    next_window(rate, now);
}

/* The program may run with rounding modes or floating-point traps of its own: those of a new process meanwhile. */
#if defined(__x86_64__)
static uint64_t enter_float(void) {
    uint32_t saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80);
    return saved;
}
static void leave_float(uint64_t saved) { __builtin_ia32_ldmxcsr((uint32_t)saved); }
#else
static void leave_float(uint64_t saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
static uint64_t enter_float(void) {
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    leave_float(0);
    return saved;
}
#endif

uint64_t ht_draw(uint64_t *random, uint64_t mean) {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    uint64_t bits = (*random * 0x2545F4914F6CDD1Dull) >> 11;
    uint64_t saved = enter_float();
    /* u in (0, 1], so the draw is finite: at most 36.7 means. */
    double draw = -ht_log((double)(bits + 1) * (1.0 / 9007199254740992.0)) * (double)mean;
    leave_float(saved);
    return (uint64_t)draw;
}

uint64_t ht_weight(uint64_t size, uint64_t mean) {
    uint64_t saved = enter_float();
    double weight = (double)size / ht_one_minus_exp((double)size / (double)mean);
    leave_float(saved);
    return (uint64_t)(weight + 0.5);
}
