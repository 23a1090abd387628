/* nccl_math.c: reductions of small buffers on the host, in every type NCCL has. Narrow floating-point
 * types are computed in float and rounded to nearest even after each step, as the GPU does. */
#include <string.h>

#include "nccl.h"

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT, E4M3, E5M2, TYPES };

size_t ht_nccl_size(int type) {
    static const uint8_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < TYPES ? sizes[type] : 0;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* A small float: `e` bits of exponent, `m` of mantissa. E4M3 has no infinity: all ones is not-a-number. */
struct format { int e, m, infinity; };
static const struct format formats[TYPES] = {[HALF] = {5, 10, 1}, [BFLOAT] = {8, 7, 1}, [E4M3] = {4, 3, 0}, [E5M2] = {5, 2, 1}};

static float widen(uint32_t small, struct format f) {
    uint32_t sign = small >> (f.e + f.m) & 1, exponent = small >> f.m & ((1u << f.e) - 1), mantissa = small & ((1u << f.m) - 1);
    int bias = (1 << (f.e - 1)) - 1;
    float value;
    if (f.e == 8) /* bfloat16 is the upper half of a float */
        return float_of(small << 16);
    if (exponent == (1u << f.e) - 1 && (f.infinity || mantissa == (1u << f.m) - 1))
        value = float_of(0x7f800000u | (mantissa ? 0x400000u : 0));
    else if (exponent == 0)
        value = (float)mantissa * float_of((uint32_t)(127 + 1 - bias - f.m) << 23);
    else
        value = float_of((exponent - (uint32_t)bias + 127) << 23 | mantissa << (23 - f.m));
    return sign ? -value : value;
}

static uint32_t narrow(float value, struct format f) {
    uint32_t bits = bits_of(value), sign = bits >> 31 << (f.e + f.m);
    uint32_t top = ((1u << f.e) - 1) << f.m, largest = f.infinity ? top - 1 : top | ((1u << f.m) - 2);
    int bias = (1 << (f.e - 1)) - 1, exponent = (int)(bits >> 23 & 255) - 127 + bias;
    if ((bits & 0x7fffffff) > 0x7f800000)
        return sign | top | ((1u << f.m) - 1);
    if ((bits & 0x7fffffff) == 0x7f800000)
        return sign | (f.infinity ? top : largest);
    uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
    int shift = 23 - f.m;
    if ((bits >> 23 & 255) == 0) { /* a denormal float: far below all but bfloat16's range */
        mantissa = bits & 0x7fffff;
        exponent++;
    }
    if (exponent <= 0) {
        shift += 1 - exponent;
        exponent = 0;
    }
    if (shift > 40)
        return sign;
    uint64_t kept = mantissa >> shift, rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    uint64_t small = exponent > 0 ? ((uint64_t)(exponent - 1) << f.m) + kept : kept; /* a carry raises the exponent */
    if (small > largest)
        small = f.infinity ? top : largest;
    return sign | (uint32_t)small;
}

static float load(const void *at, size_t i, int type) {
    return widen(ht_nccl_size(type) == 2 ? ((const uint16_t *)at)[i] : ((const uint8_t *)at)[i], formats[type]);
}
static void store(void *at, size_t i, int type, float value) {
    uint32_t small = narrow(value, formats[type]);
    if (ht_nccl_size(type) == 2)
        ((uint16_t *)at)[i] = (uint16_t)small;
    else
        ((uint8_t *)at)[i] = (uint8_t)small;
}

#define COMBINE(x, y) (op == NCCL_PROD ? (x) * (y) : op == NCCL_MAX ? ((x) > (y) ? (x) : (y)) : op == NCCL_MIN ? ((x) < (y) ? (x) : (y)) : (x) + (y))
#define EACH_TYPE(DO) \
    switch (type) { \
    case INT8: DO(int8_t, uint8_t) break; \
    case UINT8: DO(uint8_t, uint8_t) break; \
    case INT32: DO(int32_t, uint32_t) break; \
    case UINT32: DO(uint32_t, uint32_t) break; \
    case INT64: DO(int64_t, uint64_t) break; \
    case UINT64: DO(uint64_t, uint64_t) break; \
    case FLOAT: DO(float, float) break; \
    case DOUBLE: DO(double, double) break; \
    default: break; \
    }

/* Sums and products of integers wrap around: in the unsigned twin. */
#define FOLD(T, U) \
    for (size_t i = 0; i < count; i++) { \
        T x, y; \
        memcpy(&x, (char *)sum + i * sizeof x, sizeof x); \
        memcpy(&y, (const char *)more + i * sizeof y, sizeof y); \
        T z = op == NCCL_MAX ? (x > y ? x : y) : op == NCCL_MIN ? (x < y ? x : y) \
            : op == NCCL_PROD ? (T)((U)x * (U)y) : (T)((U)x + (U)y); \
        memcpy((char *)sum + i * sizeof z, &z, sizeof z); \
    }
#define DIVIDE(T, U) \
    for (size_t i = 0; i < count; i++) { \
        T x; \
        memcpy(&x, (char *)sum + i * sizeof x, sizeof x); \
        x = (T)(x / (T)ranks); \
        memcpy((char *)sum + i * sizeof x, &x, sizeof x); \
    }
#define SCALE(T, U) \
    for (size_t i = 0; i < count; i++) { \
        T x, by; \
        memcpy(&x, (char *)values + i * sizeof x, sizeof x); \
        memcpy(&by, scalar, sizeof by); \
        x = (T)((U)x * (U)by); \
        memcpy((char *)values + i * sizeof x, &x, sizeof x); \
    }

static int is_small(int type) { return type >= 0 && type < TYPES && formats[type].e; }

void ht_nccl_fold(void *sum, const void *more, size_t count, int type, int op) {
    if (is_small(type))
        for (size_t i = 0; i < count; i++) {
            float x = load(sum, i, type), y = load(more, i, type);
            store(sum, i, type, COMBINE(x, y));
        }
    else
        EACH_TYPE(FOLD)
}

void ht_nccl_finish(void *sum, size_t count, int type, int op, int ranks) {
    if (op != NCCL_AVG || ranks < 1)
        return;
    if (is_small(type))
        for (size_t i = 0; i < count; i++)
            store(sum, i, type, load(sum, i, type) / (float)ranks);
    else
        EACH_TYPE(DIVIDE)
}

void ht_nccl_scale(void *values, const void *scalar, size_t count, int type) {
    if (is_small(type))
        for (size_t i = 0; i < count; i++)
            store(values, i, type, load(values, i, type) * load(scalar, 0, type));
    else
        EACH_TYPE(SCALE)
}
