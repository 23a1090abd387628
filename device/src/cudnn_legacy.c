/* cudnn_legacy.c: the part of cuDNN's older API that names a handle.
 *
 * Sizes (recurrent networks, dropout, batch normalisation, CTC) are the real library's: it computes them
 * on the host from the device's properties, which it reads of the handle (cudnn_device.c). After that it
 * makes the device current, which fails here; the sizes stand by then.
 *
 * Convolutions of this API choose their algorithm by what cannot be asked without a device: a model
 * answers, and is counted. PyTorch uses the graph API for them unless told otherwise. */
#include <string.h>

#include "cudnn.h"

/* Every argument here is an integer or an address: twelve words pass through as they came. */
#define WORDS void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j, void *k, void *l
#define PASS a, b, c, d, e, f, g, h, i, j, k, l
typedef int (*words_function)(WORDS);

static int ask(const char *name, void **cache, WORDS) {
    if (!ht_cudnn_usable(a))
        return CUDNN_NOT_SUPPORTED;
    if (!*cache)
        *cache = ht_real_symbol(HT_FORWARD_LIBRARY, name);
    if (!*cache)
        return CUDNN_NOT_INITIALIZED;
    ht_forward_enter();
    int status = ((words_function)*cache)(PASS);
    ht_forward_leave();
    return status;
}

#define ASK(name) \
    HT_EXPORT int name(WORDS) { \
        static void *real; \
        return ask(#name, &real, PASS); \
    }
ASK(cudnnGetRNNWeightSpaceSize)
ASK(cudnnGetRNNWeightParams)
ASK(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)
ASK(cudnnGetBatchNormalizationBackwardExWorkspaceSize)
ASK(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)
ASK(cudnnGetNormalizationForwardTrainingWorkspaceSize)
ASK(cudnnGetNormalizationBackwardWorkspaceSize)
ASK(cudnnGetNormalizationTrainingReserveSpaceSize)
ASK(cudnnGetCTCLossWorkspaceSize)
ASK(cudnnGetCTCLossWorkspaceSize_v8)
ASK(cudnnGetReductionWorkspaceSize)
ASK(cudnnGetReductionIndicesSize)
ASK(cudnnGetMultiHeadAttnBuffers)

static int (*states_size(void))(void *, size_t *) {
    static int (*real)(void *, size_t *);
    if (!real)
        real = (int (*)(void *, size_t *))ht_real_symbol(HT_FORWARD_LIBRARY, "cudnnDropoutGetStatesSize");
    return real;
}

HT_EXPORT int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) {
    if (!ht_cudnn_usable(handle) || !states_size())
        return CUDNN_NOT_SUPPORTED;
    return states_size()(handle, bytes);
}

int cudnnGetRNNTempSpaceSizes(void *handle, void *rnn, int mode, void *x, size_t *work, size_t *reserve);
HT_EXPORT int cudnnGetRNNTempSpaceSizes(void *handle, void *rnn, int mode, void *x, size_t *work, size_t *reserve) {
    __typeof__(&cudnnGetRNNTempSpaceSizes) real = HT_REAL(cudnnGetRNNTempSpaceSizes);
    if (!ht_cudnn_usable(handle) || !real)
        return CUDNN_NOT_SUPPORTED;
    const size_t unset = ~(size_t)0;
    size_t found_work = unset, found_reserve = unset;
    ht_forward_enter();
    int status = real(handle, rnn, mode, x, work ? &found_work : NULL, reserve ? &found_reserve : NULL);
    ht_forward_leave();
    if (status >= CUDNN_EXECUTION_FAILED && (!work || found_work != unset) && (!reserve || found_reserve != unset))
        status = CUDNN_SUCCESS;
    if (status)
        return status;
    if (work)
        *work = found_work;
    if (reserve)
        *reserve = found_reserve;
    return CUDNN_SUCCESS;
}

int cudnnRestoreDropoutDescriptor(void *dropout, void *handle, float rate, void *states, size_t bytes, uint64_t seed);
HT_EXPORT int cudnnRestoreDropoutDescriptor(void *dropout, void *handle, float rate, void *states, size_t bytes, uint64_t seed) {
    __typeof__(&cudnnRestoreDropoutDescriptor) real = HT_REAL(cudnnRestoreDropoutDescriptor);
    if (!real || (states && !ht_cudnn_usable(handle)))
        return CUDNN_NOT_SUPPORTED;
    return real(dropout, handle, rate, states, bytes, seed);
}

/* With states as restoring, but a kernel fills them; without, the real library sets a rate alone. */
int cudnnSetDropoutDescriptor(void *dropout, void *handle, float rate, void *states, size_t bytes, uint64_t seed);
HT_EXPORT int cudnnSetDropoutDescriptor(void *dropout, void *handle, float rate, void *states, size_t bytes, uint64_t seed) {
    __typeof__(&cudnnSetDropoutDescriptor) real = HT_REAL(cudnnSetDropoutDescriptor);
    if (!states)
        return real ? real(dropout, handle, rate, NULL, 0, seed) : CUDNN_NOT_INITIALIZED;
    ht_written((uint64_t)states, bytes);
    return cudnnRestoreDropoutDescriptor(dropout, handle, rate, states, bytes, seed);
}

/* ---- convolutions: a model. The algorithm that takes no workspace first, then one that takes none either. */

struct performance { /* cudnnConvolutionFwdAlgoPerf_t and its sisters */
    int algorithm, status;
    float ms;
    size_t memory;
    int determinism, math, reserved[3];
};
_Static_assert(sizeof(struct performance) == 48, "cudnnConvolution*AlgoPerf_t");

static int rank(int wanted, int *given, struct performance *into) {
    if (!given || !into || wanted < 1)
        return CUDNN_BAD_PARAM;
    *given = wanted < 2 ? wanted : 2;
    memset(into, 0, (size_t)*given * sizeof *into);
    for (int i = 0; i < *given; i++) {
        into[i].algorithm = 1 - i; /* implicit GEMM with precomputed indices, then without */
        into[i].ms = (float)(i + 1);
        into[i].determinism = 1;
    }
    return CUDNN_SUCCESS;
}

#define RANK_BY_SHAPE(name) \
    HT_EXPORT int name(void *handle, void *x, void *w, void *c, void *y, int wanted, int *given, struct performance *into) { \
        (void)handle, (void)x, (void)w, (void)c, (void)y; \
        HT_MODELLED(); \
        return rank(wanted, given, into); \
    }
#define RANK_BY_TRIAL(name) \
    HT_EXPORT int name(void *handle, void *x, void *xa, void *w, void *wa, void *c, void *y, void *ya, int wanted, \
                       int *given, struct performance *into, void *work, size_t bytes) { \
        (void)handle, (void)x, (void)w, (void)c, (void)y, (void)xa, (void)wa, (void)ya, (void)work, (void)bytes; \
        HT_MODELLED(); \
        return rank(wanted, given, into); \
    }
#define NO_WORKSPACE(name) \
    HT_EXPORT int name(void *handle, void *x, void *w, void *c, void *y, int algorithm, size_t *bytes) { \
        (void)handle, (void)x, (void)w, (void)c, (void)y, (void)algorithm; \
        HT_MODELLED(); \
        if (!bytes) \
            return CUDNN_BAD_PARAM; \
        *bytes = 0; \
        return CUDNN_SUCCESS; \
    }
#define MOST_ALGORITHMS(name, number) \
    HT_EXPORT int name(void *handle, int *count) { \
        (void)handle; \
        if (!count) \
            return CUDNN_BAD_PARAM; \
        *count = number; \
        return CUDNN_SUCCESS; \
    }
RANK_BY_SHAPE(cudnnGetConvolutionForwardAlgorithm_v7)
RANK_BY_SHAPE(cudnnGetConvolutionBackwardDataAlgorithm_v7)
RANK_BY_SHAPE(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
RANK_BY_TRIAL(cudnnFindConvolutionForwardAlgorithmEx)
RANK_BY_TRIAL(cudnnFindConvolutionBackwardDataAlgorithmEx)
RANK_BY_TRIAL(cudnnFindConvolutionBackwardFilterAlgorithmEx)
NO_WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize)
NO_WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize)
NO_WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize)
MOST_ALGORITHMS(cudnnGetConvolutionForwardAlgorithmMaxCount, 8)
MOST_ALGORITHMS(cudnnGetConvolutionBackwardDataAlgorithmMaxCount, 6)
MOST_ALGORITHMS(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, 7)

/* ---- what would run: only what it writes is told */

static int wrote(void *address) {
    if (address)
        ht_written((uint64_t)address, 0);
    return CUDNN_SUCCESS;
}

#define W(n) void *a##n
#define UNUSED6(a, b, c, d, e, f) (void)a, (void)b, (void)c, (void)d, (void)e, (void)f

HT_EXPORT int cudnnConvolutionForward(W(1), W(2), W(3), W(4), W(5), W(6), W(7), int algorithm, W(9), W(10), W(11), W(12), void *y) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a7, (void)algorithm, (void)a9, (void)a10, (void)a11, (void)a12;
    return wrote(y);
}
HT_EXPORT int cudnnConvolutionBackwardData(W(1), W(2), W(3), W(4), W(5), W(6), W(7), int algorithm, W(9), W(10), W(11), W(12), void *dx) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a7, (void)algorithm, (void)a9, (void)a10, (void)a11, (void)a12;
    return wrote(dx);
}
HT_EXPORT int cudnnConvolutionBackwardFilter(W(1), W(2), W(3), W(4), W(5), W(6), W(7), int algorithm, W(9), W(10), W(11), W(12), void *dw) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a7, (void)algorithm, (void)a9, (void)a10, (void)a11, (void)a12;
    return wrote(dw);
}
HT_EXPORT int cudnnConvolutionBackwardBias(W(1), W(2), W(3), W(4), W(5), W(6), void *db) {
    UNUSED6(a1, a2, a3, a4, a5, a6);
    return wrote(db);
}
HT_EXPORT int cudnnConvolutionBiasActivationForward(W(1), W(2), W(3), W(4), W(5), W(6), W(7), int algorithm, W(9), W(10), W(11),
                                                    W(12), W(13), W(14), W(15), W(16), W(17), void *y) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a7, (void)algorithm, UNUSED6(a9, a10, a11, a12, a13, a14), (void)a15, (void)a16, (void)a17;
    return wrote(y);
}
HT_EXPORT int cudnnBatchNormalizationForwardInference(W(1), int mode, W(3), W(4), W(5), W(6), W(7), void *y) {
    UNUSED6(a1, a3, a4, a5, a6, a7), (void)mode;
    return wrote(y);
}
HT_EXPORT int cudnnBatchNormalizationForwardTrainingEx(W(1), int mode, int ops, W(4), W(5), W(6), W(7), W(8), W(9), W(10), void *y,
                                                       W(12), W(13), W(14), double factor, void *mean, void *variance,
                                                       double epsilon, void *saved_mean, void *saved_variance) {
    UNUSED6(a1, a4, a5, a6, a7, a8), UNUSED6(a9, a10, a12, a13, a14, a1), (void)mode, (void)ops, (void)factor, (void)epsilon;
    return wrote(y) + wrote(mean) + wrote(variance) + wrote(saved_mean) + wrote(saved_variance);
}
/* Without the arguments behind the last output: they are floating-point, or only read. */
HT_EXPORT int cudnnBatchNormalizationBackwardEx(W(1), int mode, int ops, W(4), W(5), W(6), W(7), W(8), W(9), W(10), W(11), W(12), W(13),
                                                W(14), void *dz, W(16), void *dx, W(18), W(19), W(20), void *dscale, void *dbias) {
    UNUSED6(a1, a4, a5, a6, a7, a8), UNUSED6(a9, a10, a11, a12, a13, a14), UNUSED6(a16, a18, a19, a20, a1, a4), (void)mode, (void)ops;
    return wrote(dz) + wrote(dx) + wrote(dscale) + wrote(dbias);
}
HT_EXPORT int cudnnBatchNormalizationBackward(W(1), int mode, W(3), W(4), W(5), W(6), W(7), W(8), W(9), W(10), W(11), void *dx, W(13), W(14),
                                              void *dscale, void *dbias) {
    UNUSED6(a1, a3, a4, a5, a6, a7), UNUSED6(a8, a9, a10, a11, a13, a14), (void)mode;
    return wrote(dx) + wrote(dscale) + wrote(dbias);
}
HT_EXPORT int cudnnBatchNormalizationForwardTraining(W(1), int mode, W(3), W(4), W(5), W(6), W(7), void *y, W(9), W(10), W(11), double factor,
                                                     void *mean, void *variance, double epsilon, void *saved_mean, void *saved_variance) {
    UNUSED6(a1, a3, a4, a5, a6, a7), (void)a9, (void)a10, (void)a11, (void)mode, (void)factor, (void)epsilon;
    return wrote(y) + wrote(mean) + wrote(variance) + wrote(saved_mean) + wrote(saved_variance);
}
HT_EXPORT int cudnnRNNBackwardWeights_v8(W(1), W(2), int mode, W(4), W(5), W(6), W(7), W(8), W(9), W(10),
                                        size_t bytes, void *gradients) {
    UNUSED6(a1, a2, a4, a5, a6, a7), (void)a8, (void)a9, (void)a10, (void)mode;
    if (gradients)
        ht_written((uint64_t)gradients, bytes);
    return CUDNN_SUCCESS;
}
HT_EXPORT int cudnnRNNForward(W(1), W(2), int mode, W(4), W(5), W(6), W(7), void *y, W(9), W(10), void *hy, W(12), W(13), void *cy) {
    UNUSED6(a1, a2, a4, a5, a6, a7), (void)a9, (void)a10, (void)a12, (void)a13, (void)mode;
    return wrote(y) + wrote(hy) + wrote(cy);
}
HT_EXPORT int cudnnRNNBackwardData_v8(W(1), W(2), W(3), W(4), W(5), W(6), W(7), void *dx, W(9), W(10), W(11), void *dhx, W(13),
                                      W(14), W(15), void *dcx) {
    UNUSED6(a1, a2, a3, a4, a5, a6), UNUSED6(a7, a9, a10, a11, a13, a14), (void)a15;
    return wrote(dx) + wrote(dhx) + wrote(dcx);
}
HT_EXPORT int cudnnCTCLoss(W(1), W(2), W(3), W(4), W(5), W(6), void *costs, W(8), void *gradients) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a8;
    return wrote(costs) + wrote(gradients);
}
HT_EXPORT int cudnnCTCLoss_v8(W(1), int algorithm, W(3), W(4), W(5), W(6), W(7), W(8), void *costs, W(10), void *gradients) {
    UNUSED6(a1, a3, a4, a5, a6, a7), (void)a8, (void)a10, (void)algorithm;
    return wrote(costs) + wrote(gradients);
}
HT_EXPORT int cudnnPoolingForward(W(1), W(2), W(3), W(4), W(5), W(6), W(7), void *y) {
    UNUSED6(a1, a2, a3, a4, a5, a6), (void)a7;
    return wrote(y);
}
