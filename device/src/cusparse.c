/* cusparse.c: sparse matrices as descriptors; how much workspace routines want; upper bounds where a
 * size depends on the numbers.
 *
 * Sizes of buffers are models: what a sort, a product or a triangular solve keeps per row and nonzero.
 * The number of nonzeros of a product or a sum is known only after computing it. The most there can be is
 * answered, and counted in the device table by the routine's name. */
#include <string.h>

#include "core.h"

enum { OK = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 2, INVALID_VALUE = 3 };
#define MAGIC 0x65737261707375ull
struct object { /* a handle, a matrix, a vector, or what a routine remembers */
    HT_HANDLE;
    int64_t rows, cols, nnz, batches;
    void *values, *indices, *offsets, *stream;
    int type, mode;
};

static struct object *ours(const void *handle) { return ht_is(handle, MAGIC) ? (struct object *)(uintptr_t)handle : NULL; }
static int make(void **into, struct object as) {
    struct object *o = into ? ht_new(sizeof *o) : NULL;
    if (!o)
        return into ? ALLOC_FAILED : INVALID_VALUE;
    *o = as;
    o->magic = MAGIC;
    *into = o;
    return OK;
}
static int drop(const void *handle) {
    struct object *o = ours(handle);
    if (!o)
        return NOT_INITIALIZED;
    o->magic = 0;
    ht_drop(o, sizeof *o);
    return OK;
}

#define PLAIN(create, destroy) \
    HT_EXPORT int create(void **into) { return make(into, (struct object){.batches = 1}); } \
    HT_EXPORT int destroy(const void *handle) { return drop(handle); }
PLAIN(cusparseCreate, cusparseDestroy)
PLAIN(cusparseCreateMatDescr, cusparseDestroyMatDescr)
PLAIN(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info)
PLAIN(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info)
PLAIN(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr)
PLAIN(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr)
PLAIN(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr)
HT_EXPORT int cusparseDestroySpMat(const void *handle) { return drop(handle); }
HT_EXPORT int cusparseDestroyDnMat(const void *handle) { return drop(handle); }
HT_EXPORT int cusparseDestroyDnVec(const void *handle) { return drop(handle); }

HT_EXPORT int cusparseSetStream(void *handle, void *stream) {
    struct object *o = ours(handle);
    if (o)
        o->stream = stream;
    return o ? OK : NOT_INITIALIZED;
}
HT_EXPORT int cusparseGetStream(void *handle, void **stream) {
    struct object *o = ours(handle);
    if (!o || !stream)
        return NOT_INITIALIZED;
    *stream = o->stream;
    return OK;
}
HT_EXPORT int cusparseSetPointerMode(void *handle, int mode) {
    struct object *o = ours(handle);
    if (o)
        o->mode = mode;
    return o ? OK : NOT_INITIALIZED;
}
HT_EXPORT int cusparseGetPointerMode(void *handle, int *mode) {
    struct object *o = ours(handle);
    if (!o || !mode)
        return NOT_INITIALIZED;
    *mode = o->mode;
    return OK;
}
HT_EXPORT const char *cusparseGetErrorString(int status) {
    static const char *const texts[] = {"success", "library not initialized", "resource allocation failed",
        "an invalid value was used as an argument", "a feature absent from device architecture is required"};
    return status >= 0 && status < 5 ? texts[status] : "not answered by the imaginary GPU";
}
HT_EXPORT const char *cusparseGetErrorName(int status) {
    static const char *const texts[] = {"CUSPARSE_STATUS_SUCCESS", "CUSPARSE_STATUS_NOT_INITIALIZED", "CUSPARSE_STATUS_ALLOC_FAILED",
        "CUSPARSE_STATUS_INVALID_VALUE", "CUSPARSE_STATUS_ARCH_MISMATCH"};
    return status >= 0 && status < 5 ? texts[status] : "CUSPARSE_STATUS_NOT_SUPPORTED";
}

/* ---- matrices and vectors */

HT_EXPORT int cusparseCreateCoo(void **into, int64_t rows, int64_t cols, int64_t nnz, void *row, void *col, void *values,
                                int index_type, int base, int type) {
    (void)index_type, (void)base;
    return make(into, (struct object){.rows = rows, .cols = cols, .nnz = nnz, .batches = 1, .values = values, .indices = col, .offsets = row, .type = type});
}
#define COMPRESSED(name) \
    HT_EXPORT int name(void **into, int64_t rows, int64_t cols, int64_t nnz, void *offsets, void *indices, void *values, \
                       int offset_type, int index_type, int base, int type) { \
        (void)offset_type, (void)index_type, (void)base; \
        return make(into, (struct object){.rows = rows, .cols = cols, .nnz = nnz, .batches = 1, .values = values, .indices = indices, \
                                          .offsets = offsets, .type = type}); \
    }
COMPRESSED(cusparseCreateCsr)
COMPRESSED(cusparseCreateCsc)
COMPRESSED(cusparseCreateConstCsr)
COMPRESSED(cusparseCreateConstCsc)
HT_EXPORT int cusparseCreateDnMat(void **into, int64_t rows, int64_t cols, int64_t ld, void *values, int type, int order) {
    (void)ld, (void)order;
    return make(into, (struct object){.rows = rows, .cols = cols, .batches = 1, .values = values, .type = type});
}
HT_EXPORT int cusparseCreateConstDnMat(void **into, int64_t rows, int64_t cols, int64_t ld, void *values, int type, int order) {
    return cusparseCreateDnMat(into, rows, cols, ld, values, type, order);
}
HT_EXPORT int cusparseCreateDnVec(void **into, int64_t size, void *values, int type) {
    return make(into, (struct object){.rows = size, .cols = 1, .batches = 1, .values = values, .type = type});
}
HT_EXPORT int cusparseCreateConstDnVec(void **into, int64_t size, void *values, int type) { return cusparseCreateDnVec(into, size, values, type); }

HT_EXPORT int cusparseCsrSetPointers(void *matrix, void *offsets, void *indices, void *values) {
    struct object *o = ours(matrix);
    if (!o)
        return INVALID_VALUE;
    o->offsets = offsets;
    o->indices = indices;
    o->values = values;
    return OK;
}
HT_EXPORT int cusparseCsrSetStridedBatch(void *matrix, int batches, int64_t offsets, int64_t values) {
    struct object *o = ours(matrix);
    (void)offsets, (void)values;
    if (o)
        o->batches = batches;
    return o ? OK : INVALID_VALUE;
}
HT_EXPORT int cusparseDnMatSetStridedBatch(void *matrix, int batches, int64_t stride) {
    struct object *o = ours(matrix);
    (void)stride;
    if (o)
        o->batches = batches;
    return o ? OK : INVALID_VALUE;
}
HT_EXPORT int cusparseSpMatGetSize(const void *matrix, int64_t *rows, int64_t *cols, int64_t *nnz) {
    struct object *o = ours(matrix);
    if (!o || !rows || !cols || !nnz)
        return INVALID_VALUE;
    *rows = o->rows;
    *cols = o->cols;
    *nnz = o->nnz;
    return OK;
}

/* ---- workspace */

static size_t type_bytes(int type) { /* cudaDataType */
    static const uint8_t sizes[] = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2, 4, 8};
    return type >= 0 && type < 12 ? sizes[type] : 4;
}

/* Products with a dense side keep a partial sum per row of what is sparse. */
static int product_area(const void *sparse, size_t *bytes) {
    struct object *o = ours(sparse);
    if (!o || !bytes)
        return INVALID_VALUE;
    HT_MODELLED();
    *bytes = (size_t)o->rows * 8;
    return OK;
}
static int wrote(const void *dense) {
    struct object *o = ours(dense);
    if (o)
        ht_written((uint64_t)o->values, 0);
    return o ? OK : INVALID_VALUE;
}

HT_EXPORT int cusparseSpMM_bufferSize(void *h, int a, int b, const void *alpha, const void *A, const void *B, const void *beta, void *C, int type, int algorithm, size_t *bytes) {
    (void)h, (void)a, (void)b, (void)alpha, (void)B, (void)beta, (void)C, (void)type, (void)algorithm;
    return product_area(A, bytes);
}
HT_EXPORT int cusparseSpMM(void *h, int a, int b, const void *alpha, const void *A, const void *B, const void *beta, void *C, int type, int algorithm, void *area) {
    (void)h, (void)a, (void)b, (void)alpha, (void)A, (void)B, (void)beta, (void)type, (void)algorithm, (void)area;
    return wrote(C);
}
HT_EXPORT int cusparseSpMV_bufferSize(void *h, int a, const void *alpha, const void *A, const void *x, const void *beta, void *y, int type, int algorithm, size_t *bytes) {
    (void)h, (void)a, (void)alpha, (void)x, (void)beta, (void)y, (void)type, (void)algorithm;
    return product_area(A, bytes);
}
HT_EXPORT int cusparseSpMV(void *h, int a, const void *alpha, const void *A, const void *x, const void *beta, void *y, int type, int algorithm, void *area) {
    (void)h, (void)a, (void)alpha, (void)A, (void)x, (void)beta, (void)type, (void)algorithm, (void)area;
    return wrote(y);
}
HT_EXPORT int cusparseSDDMM_bufferSize(void *h, int a, int b, const void *alpha, const void *A, const void *B, const void *beta, void *C, int type, int algorithm, size_t *bytes) {
    (void)h, (void)a, (void)b, (void)alpha, (void)A, (void)B, (void)beta, (void)type, (void)algorithm;
    return product_area(C, bytes);
}
HT_EXPORT int cusparseSDDMM(void *h, int a, int b, const void *alpha, const void *A, const void *B, const void *beta, void *C, int type, int algorithm, void *area) {
    (void)h, (void)a, (void)b, (void)alpha, (void)A, (void)B, (void)beta, (void)type, (void)algorithm, (void)area;
    return wrote(C);
}
/* A triangular solve keeps the order of its rows. */
static int solve_area(const void *sparse, size_t *bytes) {
    struct object *o = ours(sparse);
    if (!o || !bytes)
        return INVALID_VALUE;
    HT_MODELLED();
    *bytes = (size_t)o->rows * 16 + (size_t)o->nnz * 4;
    return OK;
}
HT_EXPORT int cusparseSpSM_bufferSize(void *h, int a, int b, const void *alpha, const void *A, const void *B, void *C, int type, int algorithm, void *d, size_t *bytes) {
    (void)h, (void)a, (void)b, (void)alpha, (void)B, (void)C, (void)type, (void)algorithm, (void)d;
    return solve_area(A, bytes);
}
HT_EXPORT int cusparseSpSV_bufferSize(void *h, int a, const void *alpha, const void *A, const void *x, void *y, int type, int algorithm, void *d, size_t *bytes) {
    (void)h, (void)a, (void)alpha, (void)x, (void)y, (void)type, (void)algorithm, (void)d;
    return solve_area(A, bytes);
}
HT_EXPORT int cusparseSpSM_solve(void *h, int a, int b, const void *alpha, const void *A, const void *B, void *C, int type, int algorithm, void *d) {
    (void)h, (void)a, (void)b, (void)alpha, (void)A, (void)B, (void)type, (void)algorithm, (void)d;
    return wrote(C);
}
HT_EXPORT int cusparseSpSV_solve(void *h, int a, const void *alpha, const void *A, const void *x, void *y, int type, int algorithm, void *d) {
    (void)h, (void)a, (void)alpha, (void)A, (void)x, (void)type, (void)algorithm, (void)d;
    return wrote(y);
}

/* ---- sparse products: at most every element, at most every pair that can meet */

static int64_t most(int64_t rows, int64_t cols, int64_t first, int64_t second) {
    __int128 full = (__int128)rows * cols, pairs = (__int128)first * (second < cols ? second : cols);
    return (int64_t)(pairs < full ? pairs : full);
}

#define PRODUCT_ARGUMENTS void *h, int a, int b, const void *alpha, const void *A, const void *B, const void *beta, void *C, int type, int algorithm, void *d
#define PRODUCT_UNUSED (void)h, (void)a, (void)b, (void)alpha, (void)beta, (void)type, (void)algorithm, (void)d
HT_EXPORT int cusparseSpGEMM_workEstimation(PRODUCT_ARGUMENTS, size_t *bytes, void *area) {
    struct object *first = ours(A), *second = ours(B);
    PRODUCT_UNUSED, (void)C, (void)area;
    if (!first || !second || !bytes)
        return INVALID_VALUE;
    HT_MODELLED();
    *bytes = (size_t)(first->rows + 1) * 8 + (size_t)first->nnz * 8;
    return OK;
}
HT_EXPORT int cusparseSpGEMM_compute(PRODUCT_ARGUMENTS, size_t *bytes, void *area) {
    struct object *first = ours(A), *second = ours(B), *product = ours(C);
    PRODUCT_UNUSED, (void)area;
    if (!first || !second || !product || !bytes)
        return INVALID_VALUE;
    HT_MODELLED();
    product->nnz = most(product->rows, product->cols, first->nnz, second->nnz);
    *bytes = (size_t)product->nnz * (4 + type_bytes(product->type));
    return OK;
}
HT_EXPORT int cusparseSpGEMM_copy(PRODUCT_ARGUMENTS) {
    struct object *product = ours(C);
    PRODUCT_UNUSED, (void)A, (void)B;
    if (!product)
        return INVALID_VALUE;
    ht_written((uint64_t)product->offsets, 0);
    ht_written((uint64_t)product->indices, 0);
    ht_written((uint64_t)product->values, 0);
    return OK;
}

HT_EXPORT int cusparseXcsrgeam2Nnz(void *h, int m, int n, const void *da, int first, const int *ra, const int *ca, const void *db, int second,
                                   const int *rb, const int *cb, const void *dc, int *offsets, int *total, void *area) {
    (void)h, (void)da, (void)ra, (void)ca, (void)db, (void)rb, (void)cb, (void)dc, (void)area;
    if (!total)
        return INVALID_VALUE;
    HT_MODELLED();
    int64_t full = (int64_t)m * n, sum = (int64_t)first + second;
    int value = (int)(sum < full ? sum : full);
    if (ht_on_device(total))
        ht_host_wrote((uint64_t)total, &value, sizeof value);
    else
        *total = value;
    ht_written((uint64_t)offsets, 0);
    return OK;
}
#define SUM_AREA(letter) \
    HT_EXPORT int cusparse##letter##csrgeam2_bufferSizeExt(void *h, int m, int n, const void *alpha, const void *da, int first, const void *va, \
        const int *ra, const int *ca, const void *beta, const void *db, int second, const void *vb, const int *rb, const int *cb, \
        const void *dc, const void *vc, const int *rc, const int *cc, size_t *bytes) { \
        (void)h, (void)n, (void)alpha, (void)da, (void)first, (void)va, (void)ra, (void)ca, (void)beta, (void)db, (void)second, (void)vb; \
        (void)rb, (void)cb, (void)dc, (void)vc, (void)rc, (void)cc; \
        if (!bytes) \
            return INVALID_VALUE; \
        HT_MODELLED(); \
        *bytes = (size_t)m * 4 + 4; \
        return OK; \
    }
SUM_AREA(S) SUM_AREA(D) SUM_AREA(C) SUM_AREA(Z)

/* ---- sorting: keys and positions once more */
HT_EXPORT int cusparseXcoosort_bufferSizeExt(void *h, int m, int n, int nnz, const int *rows, const int *cols, size_t *bytes) {
    (void)h, (void)m, (void)n, (void)rows, (void)cols;
    if (!bytes)
        return INVALID_VALUE;
    HT_MODELLED();
    *bytes = (size_t)nnz * 16;
    return OK;
}
HT_EXPORT int cusparseXcsrsort_bufferSizeExt(void *h, int m, int n, int nnz, const int *rows, const int *cols, size_t *bytes) {
    return cusparseXcoosort_bufferSizeExt(h, m, n, nnz, rows, cols, bytes);
}
HT_EXPORT int cusparseXcoo2csr(void *h, const int *rows, int nnz, int m, int *offsets, int base) {
    (void)h, (void)rows, (void)nnz, (void)base;
    ht_written((uint64_t)offsets, ((size_t)m + 1) * sizeof(int));
    return OK;
}

/* ---- blocked triangular solves */
#define BLOCKED(letter) \
    HT_EXPORT int cusparse##letter##bsrsm2_bufferSize(void *h, int d, int ta, int tx, int mb, int n, int nnzb, const void *da, void *v, \
        const int *r, const int *c, int block, void *info, int *bytes) { \
        (void)h, (void)d, (void)ta, (void)tx, (void)n, (void)da, (void)v, (void)r, (void)c, (void)block, (void)info; \
        if (!bytes) \
            return INVALID_VALUE; \
        HT_MODELLED(); \
        *bytes = mb * 16 + nnzb * 4; \
        return OK; \
    } \
    HT_EXPORT int cusparse##letter##bsrsv2_bufferSize(void *h, int d, int ta, int mb, int nnzb, const void *da, void *v, const int *r, \
        const int *c, int block, void *info, int *bytes) { \
        (void)h, (void)d, (void)ta, (void)da, (void)v, (void)r, (void)c, (void)block, (void)info; \
        if (!bytes) \
            return INVALID_VALUE; \
        HT_MODELLED(); \
        *bytes = mb * 16 + nnzb * 4; \
        return OK; \
    }
BLOCKED(S) BLOCKED(D) BLOCKED(C) BLOCKED(Z)
#define NO_PIVOT(name) \
    HT_EXPORT int name(void *h, void *info, int *position) { \
        (void)h, (void)info; \
        if (position) \
            *position = -1; \
        return OK; \
    }
NO_PIVOT(cusparseXbsrsm2_zeroPivot)
NO_PIVOT(cusparseXbsrsv2_zeroPivot)
