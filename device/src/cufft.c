/* cufft.c: plans, and the work area each wants.
 *
 * The real library cannot be asked without a GPU. The area is modelled as one complex copy of the data,
 * batch x n0 x n1 x ..., as cuFFT's documentation gives for lengths whose prime factors are 2, 3, 5 and 7
 * (a 1024 x 8192 double-precision transform from complex was seen to take 129 MiB, the model says 128).
 * A length with a larger prime is computed by Bluestein's algorithm on the next power of two beyond twice
 * that length. What runs, runs nothing: outputs are told. */
#include "core.h"

enum { OK = 0, INVALID_PLAN = 1, ALLOC_FAILED = 2, INVALID_VALUE = 4, INVALID_SIZE = 8 };
#define PLANS 65536
struct plan { int used, device, keep_area, made; uint64_t area, charged; void *stream; };
static struct plan *plans[PLANS / 1024];

static struct plan *plan_of(int number) {
    if (number < 1 || number >= PLANS || !plans[number / 1024])
        return NULL;
    struct plan *plan = &plans[number / 1024][number % 1024];
    return plan->used ? plan : NULL;
}

HT_EXPORT int cufftCreate(int *number) {
    if (!number)
        return INVALID_VALUE;
    for (int i = 1; i < PLANS; i++) {
        struct plan **page = &plans[i / 1024];
        if (!__atomic_load_n(page, __ATOMIC_ACQUIRE)) {
            struct plan *fresh = ht_new(1024 * sizeof *fresh), *none = NULL;
            if (!fresh)
                return ALLOC_FAILED;
            if (!__atomic_compare_exchange_n(page, &none, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                ht_drop(fresh, 1024 * sizeof *fresh);
        }
        struct plan *plan = &(*page)[i % 1024];
        if (__atomic_exchange_n(&plan->used, 1, __ATOMIC_ACQ_REL))
            continue;
        *plan = (struct plan){.used = 1, .device = ht_device_current(), .keep_area = 1};
        *number = i;
        return OK;
    }
    return ALLOC_FAILED;
}

HT_EXPORT int cufftDestroy(int number) {
    struct plan *plan = plan_of(number);
    if (!plan)
        return INVALID_PLAN;
    ht_refund(plan->device, HT_KIND_OTHER, plan->charged);
    __atomic_store_n(&plan->used, 0, __ATOMIC_RELEASE);
    return OK;
}

HT_EXPORT int cufftSetAutoAllocation(int number, int automatic) {
    struct plan *plan = plan_of(number);
    if (plan)
        plan->keep_area = automatic;
    return plan ? OK : INVALID_PLAN;
}
HT_EXPORT int cufftSetStream(int number, void *stream) {
    struct plan *plan = plan_of(number);
    if (plan)
        plan->stream = stream;
    return plan ? OK : INVALID_PLAN;
}
HT_EXPORT int cufftSetWorkArea(int number, void *area) {
    struct plan *plan = plan_of(number);
    if (plan && area) {
        ht_refund(plan->device, HT_KIND_OTHER, plan->charged);
        plan->charged = 0;
    }
    return plan ? OK : INVALID_PLAN;
}

/* The length that is really transformed. */
static uint64_t padded(uint64_t n) {
    static const int primes[] = {2, 3, 5, 7, 11, 13};
    uint64_t rest = n, power = 1;
    for (int i = 0; i < 6; i++)
        while (rest && rest % (uint64_t)primes[i] == 0)
            rest /= (uint64_t)primes[i];
    if (rest <= 1)
        return n;
    while (power < 2 * n - 1)
        power *= 2;
    return power;
}

static uint64_t area(int rank, const long long *n, uint64_t batch, uint64_t complex_bytes) {
    uint64_t elements = batch ? batch : 1;
    for (int i = 0; i < rank; i++)
        elements *= padded((uint64_t)n[i]);
    return elements * complex_bytes;
}

static int finish(int number, uint64_t bytes, size_t *size) {
    struct plan *plan = plan_of(number);
    if (!plan)
        return INVALID_PLAN;
    HT_MODELLED();
    if (plan->keep_area && bytes) {
        if (!ht_charge(plan->device, HT_KIND_OTHER, bytes))
            return ALLOC_FAILED;
        plan->charged += bytes;
    }
    plan->area = bytes;
    plan->made = 1;
    if (size)
        *size = bytes;
    return OK;
}

/* cudaDataType of one complex element, or of the real side: 2 half, 0 float, 1 double, 4, 5 and 6 complex. */
static uint64_t complex_bytes(int type) {
    switch (type) {
    case 2: case 6: return 4;
    case 1: case 5: return 16;
    default: return 8;
    }
}

HT_EXPORT int cufftXtMakePlanMany(int number, int rank, long long *n, long long *inembed, long long istride, long long idist, int input,
                                  long long *onembed, long long ostride, long long odist, int output, long long batch, size_t *size, int type) {
    (void)inembed, (void)istride, (void)idist, (void)input, (void)onembed, (void)ostride, (void)odist, (void)output;
    if (rank < 1 || rank > 3 || !n)
        return INVALID_VALUE;
    return finish(number, area(rank, n, (uint64_t)batch, complex_bytes(type)), size);
}

/* The older types: 0x2? single, 0x6? double. */
static uint64_t old_bytes(int type) { return type >= 0x60 ? 16 : 8; }

HT_EXPORT int cufftMakePlanMany(int number, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                                int odist, int type, int batch, size_t *size) {
    long long lengths[3] = {1, 1, 1};
    (void)inembed, (void)istride, (void)idist, (void)onembed, (void)ostride, (void)odist;
    if (rank < 1 || rank > 3 || !n)
        return INVALID_VALUE;
    for (int i = 0; i < rank; i++)
        lengths[i] = n[i];
    return finish(number, area(rank, lengths, (uint64_t)batch, old_bytes(type)), size);
}
HT_EXPORT int cufftMakePlanMany64(int number, int rank, long long *n, long long *inembed, long long istride, long long idist,
                                  long long *onembed, long long ostride, long long odist, int type, long long batch, size_t *size) {
    (void)inembed, (void)istride, (void)idist, (void)onembed, (void)ostride, (void)odist;
    if (rank < 1 || rank > 3 || !n)
        return INVALID_VALUE;
    return finish(number, area(rank, n, (uint64_t)batch, old_bytes(type)), size);
}
HT_EXPORT int cufftMakePlan1d(int number, int n, int type, int batch, size_t *size) {
    long long lengths[1] = {n};
    return finish(number, area(1, lengths, (uint64_t)batch, old_bytes(type)), size);
}
HT_EXPORT int cufftMakePlan2d(int number, int n, int m, int type, size_t *size) {
    long long lengths[2] = {n, m};
    return finish(number, area(2, lengths, 1, old_bytes(type)), size);
}
HT_EXPORT int cufftMakePlan3d(int number, int n, int m, int k, int type, size_t *size) {
    long long lengths[3] = {n, m, k};
    return finish(number, area(3, lengths, 1, old_bytes(type)), size);
}
#define PLAN(name, parameters, make) \
    HT_EXPORT int name parameters { \
        int status = cufftCreate(number); \
        return status ? status : make; \
    }
PLAN(cufftPlan1d, (int *number, int n, int type, int batch), cufftMakePlan1d(*number, n, type, batch, NULL))
PLAN(cufftPlan2d, (int *number, int n, int m, int type), cufftMakePlan2d(*number, n, m, type, NULL))
PLAN(cufftPlan3d, (int *number, int n, int m, int k, int type), cufftMakePlan3d(*number, n, m, k, type, NULL))
PLAN(cufftPlanMany, (int *number, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride, int odist, int type, int batch),
     cufftMakePlanMany(*number, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, NULL))

HT_EXPORT int cufftGetSize(int number, size_t *size) {
    struct plan *plan = plan_of(number);
    if (!plan || !plan->made || !size)
        return INVALID_PLAN;
    *size = plan->area;
    return OK;
}

static int run(int number, void *output) {
    struct plan *plan = plan_of(number);
    if (!plan || !plan->made)
        return INVALID_PLAN;
    ht_written((uint64_t)output, 0);
    return OK;
}
#define EXEC(name) \
    HT_EXPORT int name(int number, void *input, void *output, int direction) { \
        (void)input, (void)direction; \
        return run(number, output); \
    }
EXEC(cufftXtExec)
EXEC(cufftExecC2C)
EXEC(cufftExecZ2Z)
#define EXEC_REAL(name) \
    HT_EXPORT int name(int number, void *input, void *output) { \
        (void)input; \
        return run(number, output); \
    }
EXEC_REAL(cufftExecR2C)
EXEC_REAL(cufftExecC2R)
EXEC_REAL(cufftExecD2Z)
EXEC_REAL(cufftExecZ2D)
