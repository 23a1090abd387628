/* curand.c: generators; what they fill is told. PyTorch has kernels of its own for random numbers; CuPy asks here. */
#include "core.h"

enum { OK = 0, NOT_INITIALIZED = 101, ALLOC_FAILED = 102 };
#define MAGIC 0x646e61727563ull
struct generator { HT_HANDLE; int kind; void *stream; };

HT_EXPORT int curandCreateGenerator(void **into, int kind) {
    struct generator *g = into ? ht_new(sizeof *g) : NULL;
    if (!g)
        return ALLOC_FAILED;
    *g = (struct generator){.magic = MAGIC, .kind = kind};
    *into = g;
    return OK;
}
HT_EXPORT int curandDestroyGenerator(void *generator) {
    if (!ht_is(generator, MAGIC))
        return NOT_INITIALIZED;
    ((struct generator *)generator)->magic = 0;
    ht_drop(generator, sizeof(struct generator));
    return OK;
}
HT_EXPORT int curandSetStream(void *generator, void *stream) {
    if (!ht_is(generator, MAGIC))
        return NOT_INITIALIZED;
    ((struct generator *)generator)->stream = stream;
    return OK;
}
/* Where its numbers begin changes none of the memory. */
HT_EXPORT int curandSetPseudoRandomGeneratorSeed(void *generator) { return ht_is(generator, MAGIC) ? OK : NOT_INITIALIZED; }
HT_EXPORT int curandSetGeneratorOffset(void *generator) { return ht_is(generator, MAGIC) ? OK : NOT_INITIALIZED; }

static int fill(void *generator, void *to, size_t bytes) {
    if (!ht_is(generator, MAGIC))
        return NOT_INITIALIZED;
    ht_written((uint64_t)to, bytes);
    return OK;
}
#define UNIFORM(name, bytes) HT_EXPORT int name(void *generator, void *to, size_t n) { return fill(generator, to, n * (bytes)); }
UNIFORM(curandGenerate, 4)
UNIFORM(curandGenerateLongLong, 8)
UNIFORM(curandGenerateUniform, 4)
UNIFORM(curandGenerateUniformDouble, 8)
HT_EXPORT int curandGenerateNormal(void *g, float *to, size_t n, float mean, float deviation) {
    (void)mean, (void)deviation;
    return fill(g, to, n * 4);
}
HT_EXPORT int curandGenerateNormalDouble(void *g, double *to, size_t n, double mean, double deviation) {
    (void)mean, (void)deviation;
    return fill(g, to, n * 8);
}
HT_EXPORT int curandGenerateLogNormal(void *g, float *to, size_t n, float mean, float deviation) {
    (void)mean, (void)deviation;
    return fill(g, to, n * 4);
}
HT_EXPORT int curandGeneratePoisson(void *g, unsigned *to, size_t n, double lambda) {
    (void)lambda;
    return fill(g, to, n * 4);
}
