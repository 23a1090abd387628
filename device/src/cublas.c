/* cublas.c: cuBLAS and cuBLASLt.
 *
 * Handles and what they remember are ours. Descriptors of cuBLASLt are plain host data: the real library
 * keeps them. Multiplications run nothing; where they would write is told. The real library's heuristics
 * cannot be asked without a GPU (its CUDA runtime is linked in, and asks the driver for tables that are
 * no public interface). So one algorithm that needs no workspace is offered: PyTorch gives cuBLASLt a
 * workspace of a size of its own choice, whatever the heuristics say.
 *
 * A handle takes a pool of device memory for workspaces when it is made (cublasSetWorkspace's
 * documentation); of 32 MiB on Hopper, else 8.125 MiB: the sizes of PyTorch's own default. */
#include <string.h>

#include "forward.h"

enum { OK = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
#define MAGIC 0x73616c627563ull
struct handle {
    HT_HANDLE;
    int device, pointer_mode, math_mode, atomics, sm_target, logging;
    void *stream, *workspace;
    uint64_t charged;
};
static struct handle *ours(void *handle) { return ht_is(handle, MAGIC) ? handle : NULL; }

/* A captured routine is one node: how many kernels the real one would start is not known, and is mostly one. */
void ht_cublas_ran(void *handle) {
    struct handle *h = ours(handle);
    if (h)
        ht_stream_work(h->stream, 0);
}

static uint64_t pool_bytes(int device) {
    const struct ht_gpu *gpu = ht_device(device);
    return ht_figure(device, "cublas_bytes", gpu && gpu->cc_major == 9 ? 32u << 20 : 10u << 20);
}

HT_EXPORT int cublasCreate_v2(void **into) {
    int device = ht_device_current();
    if (!into)
        return INVALID_VALUE;
    if (!ht_context(device) || !ht_charge(device, HT_KIND_CUBLAS, pool_bytes(device)))
        return ALLOC_FAILED;
    struct handle *h = ht_new(sizeof *h);
    if (!h)
        return ALLOC_FAILED;
    *h = (struct handle){.magic = MAGIC, .device = device, .charged = pool_bytes(device)};
    *into = h;
    return OK;
}

HT_EXPORT int cublasDestroy_v2(void *handle) {
    struct handle *h = ours(handle);
    if (!h)
        return NOT_INITIALIZED;
    ht_refund(h->device, HT_KIND_CUBLAS, h->charged);
    h->magic = 0;
    ht_drop(h, sizeof *h);
    return OK;
}

/* A handle of its own has no pool: workspaces are the caller's. */
HT_EXPORT int cublasLtCreate(void **into) {
    struct handle *h = into && ht_context(ht_device_current()) ? ht_new(sizeof *h) : NULL;
    if (!h)
        return into ? ALLOC_FAILED : INVALID_VALUE;
    *h = (struct handle){.magic = MAGIC, .device = ht_device_current()};
    *into = h;
    return OK;
}
HT_EXPORT int cublasLtDestroy(void *handle) { return cublasDestroy_v2(handle); }

#define REMEMBER(set, get, type, field) \
    HT_EXPORT int set(void *handle, type value) { \
        struct handle *h = ours(handle); \
        if (!h) \
            return NOT_INITIALIZED; \
        h->field = value; \
        return OK; \
    } \
    HT_EXPORT int get(void *handle, type *value) { \
        struct handle *h = ours(handle); \
        if (!h || !value) \
            return h ? INVALID_VALUE : NOT_INITIALIZED; \
        *value = h->field; \
        return OK; \
    }
REMEMBER(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
REMEMBER(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
REMEMBER(cublasSetMathMode, cublasGetMathMode, int, math_mode)
REMEMBER(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
REMEMBER(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_target)

HT_EXPORT int cublasSetWorkspace_v2(void *handle, void *address, size_t bytes) {
    struct handle *h = ours(handle);
    (void)bytes;
    if (!h)
        return NOT_INITIALIZED;
    h->workspace = address;
    return OK;
}

int cublasGetProperty(int which, int *value);
HT_EXPORT int cublasGetVersion_v2(void *handle, int *version) {
    int part[3] = {0, 0, 0};
    (void)handle;
    if (!version)
        return INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (cublasGetProperty(i, &part[i]))
            return NOT_INITIALIZED;
    *version = part[0] * 10000 + part[1] * 100 + part[2];
    return OK;
}
HT_EXPORT int cublasGetVersion(void *handle, int *version) { return cublasGetVersion_v2(handle, version); }

/* ---- the real library's own */

__attribute__((used)) static int absent(void) { return NOT_INITIALIZED; }
__attribute__((used)) static const char *absent_text(void) { return "cuBLAS is not loaded"; }
HT_FORWARD_TO("libcublas.so.", cublasGetProperty, absent)
HT_FORWARD_TO("libcublas.so.", cublasGetCudartVersion, absent)
HT_FORWARD_TO("libcublas.so.", cublasGetStatusName, absent_text)
HT_FORWARD_TO("libcublas.so.", cublasGetStatusString, absent_text)
#define LT(function) HT_FORWARD_TO("libcublasLt.so.", function, absent)
LT(cublasLtGetVersion)
LT(cublasLtGetCudartVersion)
LT(cublasLtGetProperty)
HT_FORWARD_TO("libcublasLt.so.", cublasLtGetStatusName, absent_text)
HT_FORWARD_TO("libcublasLt.so.", cublasLtGetStatusString, absent_text)
LT(cublasLtMatmulDescCreate)
LT(cublasLtMatmulDescInit_internal)
LT(cublasLtMatmulDescDestroy)
LT(cublasLtMatmulDescSetAttribute)
LT(cublasLtMatmulDescGetAttribute)
LT(cublasLtMatrixLayoutCreate)
LT(cublasLtMatrixLayoutInit_internal)
LT(cublasLtMatrixLayoutDestroy)
LT(cublasLtMatrixLayoutSetAttribute)
LT(cublasLtMatrixLayoutGetAttribute)
LT(cublasLtGroupedMatrixLayoutCreate)
LT(cublasLtMatmulPreferenceCreate)
LT(cublasLtMatmulPreferenceInit_internal)
LT(cublasLtMatmulPreferenceDestroy)
LT(cublasLtMatmulPreferenceSetAttribute)
LT(cublasLtMatmulPreferenceGetAttribute)
LT(cublasLtMatrixTransformDescCreate)
LT(cublasLtMatrixTransformDescInit_internal)
LT(cublasLtMatrixTransformDescDestroy)
LT(cublasLtMatrixTransformDescSetAttribute)
LT(cublasLtMatrixTransformDescGetAttribute)
LT(cublasLtMatmulAlgoConfigSetAttribute)
LT(cublasLtMatmulAlgoConfigGetAttribute)
LT(cublasLtLoggerSetCallback)
LT(cublasLtLoggerSetFile)
LT(cublasLtLoggerOpenFile)
LT(cublasLtLoggerSetLevel)
LT(cublasLtLoggerSetMask)
LT(cublasLtLoggerForceDisable)

/* ---- cuBLASLt's heuristics: a model */

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

HT_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *what, void *a, void *b, void *c, void *d, void *preference,
                                             int wanted, struct heuristic *results, int *given) {
    (void)handle, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (!what || !results || !given || wanted < 1)
        return INVALID_VALUE;
    HT_MODELLED();
    *results = (struct heuristic){.waves = 1};
    *given = 1;
    return OK;
}

HT_EXPORT int cublasLtMatmulAlgoCheck(void *handle, void *what, void *a, void *b, void *c, void *d, void *algorithm, struct heuristic *result) {
    (void)handle, (void)what, (void)a, (void)b, (void)c, (void)d;
    if (!result || !algorithm)
        return INVALID_VALUE;
    HT_MODELLED();
    *result = (struct heuristic){.waves = 1};
    memcpy(result->algorithm, algorithm, sizeof result->algorithm);
    return OK;
}

HT_EXPORT int cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b, int c, int d, int wanted, int *ids, int *given) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!ids || !given || wanted < 1)
        return INVALID_VALUE;
    HT_MODELLED();
    ids[0] = 0;
    *given = 1;
    return OK;
}

HT_EXPORT int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d, int id, void *algorithm) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d, (void)id;
    if (!algorithm)
        return INVALID_VALUE;
    HT_MODELLED();
    memset(algorithm, 0, sizeof(uint64_t[8]));
    return OK;
}

HT_EXPORT int cublasLtMatmul(void *handle, void *what, const void *alpha, const void *a, void *ad, const void *b, void *bd,
                             const void *beta, const void *c, void *cd, void *d, void *dd, const void *algorithm,
                             void *workspace, size_t bytes, void *stream) {
    (void)what, (void)alpha, (void)a, (void)ad, (void)b, (void)bd, (void)beta, (void)c, (void)cd, (void)dd, (void)algorithm;
    (void)workspace, (void)bytes;
    if (!ours(handle))
        return NOT_INITIALIZED;
    ht_written((uint64_t)d, 0);
    ht_stream_work(stream, 0);
    return OK;
}
