/* cusolver.c: cuSOLVER's dense routines: handles, and how much workspace each wants.
 *
 * The real library cannot be asked without a GPU, so sizes are those that LAPACK's blocked algorithms
 * need, which cuSOLVER's names promise, with a block of 64 columns. Divide and conquer and the SVD add
 * the matrices they work on. A model: cuSOLVER's own depend on version and GPU, and differ by up to twice.
 * Workspace lives only as long as the call, and matters where the matrix itself is large.
 *
 * How a routine went is read from device memory, where zero says well. */
#include "core.h"

enum { OK = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 2, INVALID_VALUE = 3 };
#define MAGIC 0x7265766c6f73ull
#define BLOCK 64ull
struct handle { HT_HANDLE; void *stream; int device; };

#define CREATE(name, size) \
    HT_EXPORT int name(void **into) { \
        struct handle *h = into ? ht_new(size) : NULL; \
        if (!h) \
            return into ? ALLOC_FAILED : INVALID_VALUE; \
        *h = (struct handle){.magic = MAGIC, .device = ht_device_current()}; \
        *into = h; \
        return OK; \
    }
#define DESTROY(name, size) \
    HT_EXPORT int name(void *handle) { \
        if (!ht_is(handle, MAGIC)) \
            return NOT_INITIALIZED; \
        ((struct handle *)handle)->magic = 0; \
        ht_drop(handle, size); \
        return OK; \
    }
#define OBJECT(kind) CREATE(cusolverDnCreate##kind, sizeof(struct handle)) DESTROY(cusolverDnDestroy##kind, sizeof(struct handle))
OBJECT()
OBJECT(Params)
OBJECT(GesvdjInfo)
OBJECT(SyevjInfo)
CREATE(cusolverSpCreate, sizeof(struct handle))
DESTROY(cusolverSpDestroy, sizeof(struct handle))

HT_EXPORT int cusolverDnSetStream(void *handle, void *stream) {
    if (!ht_is(handle, MAGIC))
        return NOT_INITIALIZED;
    ((struct handle *)handle)->stream = stream;
    return OK;
}
HT_EXPORT int cusolverDnGetStream(void *handle, void **stream) {
    if (!ht_is(handle, MAGIC) || !stream)
        return NOT_INITIALIZED;
    *stream = ((struct handle *)handle)->stream;
    return OK;
}

/* ---- elements of workspace */
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t panel(uint64_t n) { return n * BLOCK; }                         /* Cholesky, QR, LDL */
static uint64_t lu(uint64_t m, uint64_t n) { return larger(m, n) * BLOCK + m; }     /* a panel and the pivots */
static uint64_t eigen(uint64_t n) { return 1 + 6 * n + 2 * n * n; }             /* LAPACK's xSYEVD with vectors */
static uint64_t jacobi(uint64_t n, uint64_t batch) { return (2 * n * n + 4 * n) * larger(batch, 1); }
static uint64_t svd(uint64_t m, uint64_t n) { return 3 * smaller(m, n) + larger(larger(m, n), 5 * smaller(m, n)) + panel(m + n) + m * n; }
static uint64_t svd_jacobi(uint64_t m, uint64_t n, uint64_t batch) { return (m * n + 2 * n * n + m + n) * larger(batch, 1); }
static uint64_t general_eigen(uint64_t n) { return n * n * 2 + panel(n) + 4 * n; }

static int answer(int *lwork, uint64_t elements) {
    if (!lwork)
        return INVALID_VALUE;
    *lwork = elements > 0x7fffffff ? 0x7fffffff : (int)elements;
    return OK;
}
/* cudaDataType: real and complex by turns of single, double, half. */
static uint64_t type_bytes(uint64_t type) {
    static const uint8_t sizes[] = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2, 4, 8};
    return type < sizeof sizes ? sizes[type] : 4;
}
static int answer_bytes(size_t *device, size_t *host, uint64_t elements, uint64_t type) {
    if (!device || !host)
        return INVALID_VALUE;
    *device = elements * type_bytes(type);
    *host = 0;
    return OK;
}

#define WORDS void *w0, void *w1, void *w2, void *w3, void *w4, void *w5, void *w6, void *w7, void *w8, void *w9, void *w10, \
              void *w11, void *w12, void *w13, void *w14, void *w15, void *w16, void *w17, void *w18, void *w19
#define UNUSED (void)w0, (void)w1, (void)w2, (void)w3, (void)w4, (void)w5, (void)w6, (void)w7, (void)w8, (void)w9, (void)w10, \
               (void)w11, (void)w12, (void)w13, (void)w14, (void)w15, (void)w16, (void)w17, (void)w18, (void)w19
#define I(word) ((uint64_t)(uint32_t)(uintptr_t)(word)) /* an int */
#define L(word) ((uint64_t)(uintptr_t)(word))           /* an int64_t */

#define SIZE(name, out, elements) HT_EXPORT int name(WORDS) { UNUSED; HT_MODELLED(); return answer((int *)(out), elements); }
#define BYTES(name, device, host, elements, type) \
    HT_EXPORT int name(WORDS) { UNUSED; HT_MODELLED(); return answer_bytes((size_t *)(device), (size_t *)(host), elements, I(type)); }
#define SD(middle, out, elements) \
    SIZE(cusolverDnS##middle##_bufferSize, out, elements) SIZE(cusolverDnD##middle##_bufferSize, out, elements)
#define CZ(middle, out, elements) \
    SIZE(cusolverDnC##middle##_bufferSize, out, elements) SIZE(cusolverDnZ##middle##_bufferSize, out, elements)
#define SDCZ(middle, out, elements) SD(middle, out, elements) CZ(middle, out, elements)

SDCZ(potrf, w5, panel(I(w2)))
SDCZ(potri, w5, panel(I(w2)))
SDCZ(getrf, w5, lu(I(w1), I(w2)))
SDCZ(geqrf, w5, panel(I(w2)))
SD(orgqr, w7, panel(I(w2)))
CZ(ungqr, w7, panel(I(w2)))
SD(ormqr, w11, panel(larger(I(w3), I(w4))))
CZ(unmqr, w11, panel(larger(I(w3), I(w4))))
SDCZ(sytrf, w4, panel(I(w1)))
SDCZ(gebrd, w3, panel(I(w1) + I(w2)))
SDCZ(gesvd, w3, svd(I(w1), I(w2)))
SD(syevd, w7, eigen(I(w3)))
CZ(heevd, w7, eigen(I(w3)))
SD(syevj, w7, jacobi(I(w3), 1))
CZ(heevj, w7, jacobi(I(w3), 1))
SD(syevjBatched, w7, jacobi(I(w3), I(w9)))
CZ(heevjBatched, w7, jacobi(I(w3), I(w9)))
SDCZ(gesvdjBatched, w11, svd_jacobi(I(w2), I(w3), I(w13)))
SDCZ(gesvdj, w12, svd_jacobi(I(w3), I(w4), 1))
SDCZ(gesvdaStridedBatched, w16, svd_jacobi(I(w3), I(w4), I(w17)))
BYTES(cusolverDnXpotrf_bufferSize, w8, w9, panel(L(w3)), w4)
BYTES(cusolverDnXgeqrf_bufferSize, w10, w11, panel(L(w3)), w4)
BYTES(cusolverDnXgetrf_bufferSize, w8, w9, lu(L(w2), L(w3)), w4)
BYTES(cusolverDnXsyevd_bufferSize, w11, w12, eigen(L(w4)), w5)
BYTES(cusolverDnXsyevBatched_bufferSize, w11, w12, jacobi(L(w4), L(w13)), w5)
BYTES(cusolverDnXsytrs_bufferSize, w11, w12, L(w2), w4)
BYTES(cusolverDnXtrtri_bufferSize, w7, w8, panel(L(w3)), w4)
BYTES(cusolverDnXgeev_bufferSize, w17, w18, general_eigen(L(w4)), w5)
BYTES(cusolverDnXgesvd_bufferSize, w18, w19, svd(L(w4), L(w5)), w6)
BYTES(cusolverDnXgesvdp_bufferSize, w18, w19, svd(L(w4), L(w5)), w6)

/* ---- routines: what they write, and that it went well (a kernel's answer that the host reads next) */

static int ran(void *first, void *second, void *info, uint64_t batch) {
    static const int well[1024];
    ht_written((uint64_t)first, 0);
    ht_written((uint64_t)second, 0);
    for (uint64_t i = 0; info && i < batch; i += 1024)
        ht_host_wrote((uint64_t)info + 4 * i, well, 4 * smaller(batch - i, 1024));
    return OK;
}
#define RUN(name, first, second, info, batch) HT_EXPORT int name(WORDS) { UNUSED; return ran(first, second, info, batch); }
#define RUN_SD(middle, first, second, info, batch) \
    RUN(cusolverDnS##middle, first, second, info, batch) RUN(cusolverDnD##middle, first, second, info, batch)
#define RUN_CZ(middle, first, second, info, batch) \
    RUN(cusolverDnC##middle, first, second, info, batch) RUN(cusolverDnZ##middle, first, second, info, batch)
#define RUN_SDCZ(middle, first, second, info, batch) RUN_SD(middle, first, second, info, batch) RUN_CZ(middle, first, second, info, batch)
RUN_SDCZ(potrf, w3, NULL, w7, 1)
RUN_SDCZ(potrs, w6, NULL, w8, 1)
RUN_SDCZ(potri, w3, NULL, w7, 1)
RUN_SDCZ(potrfBatched, NULL, NULL, w5, I(w6))
RUN_SDCZ(potrsBatched, NULL, NULL, w8, 1)
RUN_SDCZ(getrf, w3, w6, w7, 1)
RUN_SDCZ(getrs, w7, NULL, w9, 1)
RUN_SDCZ(geqrf, w3, w5, w8, 1)
RUN_SDCZ(sytrf, w3, w5, w8, 1)
RUN_SD(orgqr, w4, NULL, w9, 1)
RUN_CZ(ungqr, w4, NULL, w9, 1)
RUN_SD(ormqr, w9, NULL, w13, 1)
RUN_CZ(unmqr, w9, NULL, w13, 1)
RUN_SD(syevd, w4, w6, w9, 1)
RUN_CZ(heevd, w4, w6, w9, 1)
RUN_SD(syevj, w4, w6, w9, 1)
RUN_CZ(heevj, w4, w6, w9, 1)
RUN_SD(syevjBatched, w4, w6, w9, I(w11))
RUN_CZ(heevjBatched, w4, w6, w9, I(w11))
RUN_SDCZ(gesvd, w5, w7, w15, 1)
RUN_SDCZ(gesvdj, w5, w7, w14, 1)
RUN_SDCZ(gesvdjBatched, w4, w6, w13, I(w15))
RUN(cusolverDnXpotrf, w5, NULL, w12, 1)
RUN(cusolverDnXpotrs, w9, NULL, w11, 1)
RUN(cusolverDnXgetrf, w5, w7, w13, 1)
RUN(cusolverDnXgeqrf, w5, w8, w14, 1)
RUN(cusolverDnXsyevd, w6, w9, w15, 1)
RUN(cusolverDnXsyevBatched, w6, w9, w15, L(w16))
