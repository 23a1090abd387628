/* numbers.h: the two functions of the Poisson sample, without libm.
 *
 * A preloaded library that needed libm would pull it into every program, and newer libm's log
 * carries a symbol version newer than GLIBC_2.17. Both agree with libm to 1e-12 (tests/unit.c).
 */
#ifndef HT_NUMBERS_H
#define HT_NUMBERS_H
#include <stdint.h>

#define HT_LN2 0.69314718055994530942

/* Natural logarithm of a normal x > 0: x = m * 2^e with m in [1/sqrt2, sqrt2), ln m = 2 atanh((m-1)/(m+1)). */
static inline double ht_log(double x) {
    union { double d; uint64_t u; } bits = {x};
    int exponent = (int)(bits.u >> 52) - 1023;
    bits.u = (bits.u & 0xfffffffffffffull) | 0x3ff0000000000000ull;
    double m = bits.d;
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        exponent++;
    }
    double t = (m - 1) / (m + 1), square = t * t, power = t, sum = 0;
    for (int k = 1; k <= 21; k += 2) {
        sum += power / k;
        power *= square;
    }
    return 2 * sum + exponent * HT_LN2;
}

/* 1 - exp(-x) for x >= 0, exact for small x too: exp(-x) = 2^-k * exp(-r), r in [0, ln 2). */
static inline double ht_one_minus_exp(double x) {
    if (x > 40)
        return 1;
    int k = (int)(x / HT_LN2);
    double r = x - k * HT_LN2;
    double term = r, sum = 0; /* sum = 1 - exp(-r) = r - r^2/2 + r^3/6 ... */
    for (int n = 2; n <= 22; n++) {
        sum += term;
        term *= -r / n;
    }
    union { uint64_t u; double d; } scale = {(uint64_t)(1023 - k) << 52};
    return (1 - scale.d) + scale.d * sum; /* 1 - 2^-k (1 - sum) */
}
#endif
