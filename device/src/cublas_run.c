/* cublas_run.c: cuBLAS's routines: nothing runs; what would be written is told.
 *
 * All arguments are integers and addresses, so each family is its names and the places of its outputs
 * among the arguments. A result that the host asked for in its own memory is zero. */
#include <string.h>

#include "core.h"

void ht_cublas_ran(void *handle); /* cublas.c */

#define WORDS void *w0, void *w1, void *w2, void *w3, void *w4, void *w5, void *w6, void *w7, void *w8, void *w9, void *w10, \
              void *w11, void *w12, void *w13, void *w14, void *w15, void *w16
#define UNUSED (void)w0, (void)w1, (void)w2, (void)w3, (void)w4, (void)w5, (void)w6, (void)w7, (void)w8, (void)w9, (void)w10, \
               (void)w11, (void)w12, (void)w13, (void)w14, (void)w15, (void)w16

static int wrote(void *address) {
    if (address)
        ht_written((uint64_t)address, 0);
    return 0;
}

static int result(void *address, size_t bytes) {
    if (!address || ht_on_device(address))
        return wrote(address);
    memset(address, 0, bytes);
    return 0;
}

#define WRITES(name, word) HT_EXPORT int name(WORDS) { UNUSED; ht_cublas_ran(w0); return wrote(word); }
#define WRITES2(name, word, other) HT_EXPORT int name(WORDS) { UNUSED; ht_cublas_ran(w0); return wrote(word) + wrote(other); }
#define GIVES(name, word, bytes) HT_EXPORT int name(WORDS) { UNUSED; HT_MODELLED(); ht_cublas_ran(w0); return result(word, bytes); }
/* Every routine has a twin that takes 64-bit sizes. */
#define SDCZ(middle, word) \
    WRITES(cublasS##middle, word) WRITES(cublasD##middle, word) WRITES(cublasC##middle, word) WRITES(cublasZ##middle, word) \
    WRITES(cublasS##middle##_64, word) WRITES(cublasD##middle##_64, word) WRITES(cublasC##middle##_64, word) WRITES(cublasZ##middle##_64, word)
#define CZ(middle, word) \
    WRITES(cublasC##middle, word) WRITES(cublasZ##middle, word) WRITES(cublasC##middle##_64, word) WRITES(cublasZ##middle##_64, word)
#define SD(middle, word) \
    WRITES(cublasS##middle, word) WRITES(cublasD##middle, word) WRITES(cublasS##middle##_64, word) WRITES(cublasD##middle##_64, word)

SDCZ(gemm_v2, w12)
SDCZ(gemmStridedBatched, w14)
WRITES(cublasHgemm, w12)
WRITES(cublasHgemmStridedBatched, w14)
WRITES(cublasSgemmEx, w14)
WRITES(cublasGemmEx, w14)
WRITES(cublasGemmEx_64, w14)
WRITES(cublasGemmStridedBatchedEx, w16)
WRITES(cublasGemmStridedBatchedEx_64, w16)
SDCZ(gemv_v2, w10)
CZ(hemv_v2, w9)
SDCZ(symv_v2, w9)
SD(ger_v2, w8)
CZ(gerc_v2, w8)
CZ(geru_v2, w8)
SDCZ(syr_v2, w6)
CZ(her_v2, w6)
SDCZ(syr2_v2, w8)
CZ(her2_v2, w8)
SDCZ(symm_v2, w11)
CZ(hemm_v2, w11)
SDCZ(syrk_v2, w9)
CZ(herk_v2, w9)
SDCZ(syr2k_v2, w11)
CZ(her2k_v2, w11)
SDCZ(trmm_v2, w12)
SDCZ(trsm_v2, w10)
SDCZ(trmv_v2, w7)
SDCZ(trsv_v2, w7)
SDCZ(axpy_v2, w5)
SDCZ(copy_v2, w4)
SDCZ(scal_v2, w3)
WRITES(cublasCsscal_v2, w3)
WRITES(cublasZdscal_v2, w3)
WRITES(cublasAxpyEx, w7)
WRITES(cublasScalEx, w4)
#define BOTH(name) WRITES2(name, w2, w4)
BOTH(cublasSswap_v2) BOTH(cublasDswap_v2) BOTH(cublasCswap_v2) BOTH(cublasZswap_v2)
BOTH(cublasSrot_v2) BOTH(cublasDrot_v2) BOTH(cublasCrot_v2) BOTH(cublasZrot_v2) BOTH(cublasCsrot_v2) BOTH(cublasZdrot_v2)
BOTH(cublasSrotm_v2) BOTH(cublasDrotm_v2)

GIVES(cublasSdot_v2, w6, 4) GIVES(cublasDdot_v2, w6, 8)
GIVES(cublasCdotc_v2, w6, 8) GIVES(cublasCdotu_v2, w6, 8) GIVES(cublasZdotc_v2, w6, 16) GIVES(cublasZdotu_v2, w6, 16)
GIVES(cublasDotEx, w8, 2) GIVES(cublasDotcEx, w8, 2)
#define NORMS(middle) \
    GIVES(cublasS##middle, w4, 4) GIVES(cublasD##middle, w4, 8) GIVES(cublasSc##middle, w4, 4) GIVES(cublasDz##middle, w4, 8)
NORMS(nrm2_v2)
NORMS(asum_v2)
#define PLACES(middle) \
    GIVES(cublasIs##middle, w4, 4) GIVES(cublasId##middle, w4, 4) GIVES(cublasIc##middle, w4, 4) GIVES(cublasIz##middle, w4, 4)
PLACES(amax_v2)
PLACES(amin_v2)

/* Batches: the outputs' addresses are on the device, not known; how it went is told to the host. */
#define WENT(name, word) HT_EXPORT int name(WORDS) { UNUSED; ht_cublas_ran(w0); return result(word, sizeof(int)); }
#define SDCZ_WENT(middle, word) WENT(cublasS##middle, word) WENT(cublasD##middle, word) WENT(cublasC##middle, word) WENT(cublasZ##middle, word)
SDCZ_WENT(geqrfBatched, w6)
SDCZ_WENT(getrsBatched, w9)
SDCZ_WENT(gelsBatched, w9)
#define PIVOTS(name) WRITES2(name, w4, w5)
PIVOTS(cublasSgetrfBatched) PIVOTS(cublasDgetrfBatched) PIVOTS(cublasCgetrfBatched) PIVOTS(cublasZgetrfBatched)
WRITES(cublasSgetriBatched, w7) WRITES(cublasDgetriBatched, w7) WRITES(cublasCgetriBatched, w7) WRITES(cublasZgetriBatched, w7)
WRITES(cublasSmatinvBatched, w6) WRITES(cublasDmatinvBatched, w6) WRITES(cublasCmatinvBatched, w6) WRITES(cublasZmatinvBatched, w6)

/* ---- copies between host and device: rows x cols of elements */

static int copy(uint64_t rows, uint64_t cols, uint64_t element, const char *from, uint64_t from_row, char *to, uint64_t to_row) {
    for (uint64_t i = 0; i < cols; i++)
        ht_copy(to + i * to_row * element, from + i * from_row * element, rows * element);
    return 0;
}
#define MATRIX(name) \
    HT_EXPORT int name(int rows, int cols, int element, const void *a, int lda, void *b, int ldb, void *stream) { \
        (void)stream; \
        return rows < 0 || cols < 0 ? 7 : copy((uint64_t)rows, (uint64_t)cols, (uint64_t)element, a, (uint64_t)lda, b, (uint64_t)ldb); \
    }
#define VECTOR(name) \
    HT_EXPORT int name(int n, int element, const void *x, int incx, void *y, int incy, void *stream) { \
        (void)stream; \
        return n < 0 ? 7 : copy(1, (uint64_t)n, (uint64_t)element, x, (uint64_t)incx, y, (uint64_t)incy); \
    }
MATRIX(cublasSetMatrix)
MATRIX(cublasGetMatrix)
MATRIX(cublasSetMatrixAsync)
MATRIX(cublasGetMatrixAsync)
VECTOR(cublasSetVector)
VECTOR(cublasGetVector)
VECTOR(cublasSetVectorAsync)
VECTOR(cublasGetVectorAsync)
