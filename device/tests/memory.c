/* memory.c: what device memory costs, where it lies, how it fails, and which bytes of it are known. */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cuda.h"

#define CONTEXT (300 * MIB)
#define TOTAL (24 * GIB)
static const char spec[] = "count=2;name=NVIDIA Test;memory=25769803776;context=314572800;cc=8.6;sms=72";

static uint64_t in_use(void) {
    size_t free_bytes, total;
    OK(cudaMemGetInfo(&free_bytes, &total));
    CHECK(total == TOTAL, "%zu", total);
    return total - free_bytes;
}
static uint64_t take(size_t bytes) {
    uint64_t at;
    OK(cudaMalloc(&at, bytes));
    return at;
}
static void give(uint64_t at) { OK(cudaFree((void *)at)); }

/* The context is charged at the first use of a device, and of that one alone. */
static void contexts(void) {
    int n;
    OK(cudaGetDeviceCount(&n));
    CHECK(n == 2, "%d", n);
    CHECK(gpu_of(0)->used == 0, "used before anything");
    CHECK(in_use() == CONTEXT && own(0, HT_KIND_CONTEXT) == CONTEXT, "the first device's context");
    CHECK(gpu_of(1)->used == 0, "the second device has none");
    OK(cudaSetDevice(1));
    CHECK(gpu_of(1)->used == CONTEXT, "choosing it makes its context");
    OK(cudaSetDevice(0));
    FAILS(cudaSetDevice(2), CUDA_INVALID_DEVICE);
    CHECK(cudaGetLastError() == CUDA_INVALID_DEVICE && cudaGetLastError() == 0, "an error is told once");
}

/* Above 1 MiB whole pages; smaller ones share pages in units of 512. */
static void granularity(void) {
    uint64_t before = in_use(), small[4];
    CHECK(take(0) == 0, "nothing costs nothing");
    for (int i = 0; i < 4; i++)
        small[i] = take(1 + (size_t)i * 512);
    CHECK(in_use() - before == TWO_MIB, "four small ones share a page");
    for (int i = 1; i < 4; i++)
        CHECK(small[i] % 512 == 0 && small[i] - small[i - 1] == 512ull * (unsigned)i, "units of 512");
    uint64_t half = take(MIB), large = take(MIB + 1), two = take(TWO_MIB);
    CHECK(large % TWO_MIB == 0 && two % TWO_MIB == 0, "pages are aligned");
    CHECK(two + TWO_MIB == large && large < small[0], "from the top down");
    CHECK(in_use() - before == 3 * TWO_MIB, "the half page fits behind the small ones: %llu", (unsigned long long)(in_use() - before));
    give(large), give(two), give(half);
    CHECK(in_use() - before == TWO_MIB, "pages go back, the shared one stays");
    for (int i = 0; i < 4; i++)
        give(small[i]);
    CHECK(in_use() == before, "all is back");
    large = take(3 * MIB);
    give(large);
    CHECK(take(3 * MIB) == large, "the same request gets the same address");
    give(large);
    FAILS(cudaFree((void *)(large + 512)), CUDA_INVALID_VALUE);
    FAILS(cudaFree((void *)large), CUDA_INVALID_VALUE);
    size_t pitch;
    OK(cudaMallocPitch(&large, &pitch, 1000, 3));
    CHECK(pitch == 1024, "%zu", pitch);
    give(large);
}

static void out_of_memory(void) {
    uint64_t room = TOTAL - in_use(), at = 1, most = take(room), failed = gpu_of(0)->failed;
    FAILS(cudaMalloc(&at, 1), CUDA_OUT_OF_MEMORY);
    CHECK(at == 0, "no address where there is no memory");
    CHECK(cudaPeekAtLastError() == CUDA_OUT_OF_MEMORY && cudaGetLastError() == CUDA_OUT_OF_MEMORY, "kept for who asks");
    CHECK(cudaGetLastError() == 0, "not sticky: the next allocation may fit");
    CHECK(gpu_of(0)->failed == failed + 1, "counted");
    const struct ht_gpu_oom *oom = &ht_slot()->ooms[ht_slot()->ooms_count - 1];
    CHECK(oom->asked == TWO_MIB && oom->free == 0 && oom->own == TOTAL, "what was asked, free, held");
    give(most);
    FAILS(cudaMalloc(&at, room + 1), CUDA_OUT_OF_MEMORY);
    FAILS(cudaMalloc(&at, SIZE_MAX), CUDA_OUT_OF_MEMORY);
    give(take(room));
    CHECK(gpu_of(0)->peak == TOTAL, "the peak stays");
}

/* 190 GiB would be as cheap as these. */
static void backed_by_nothing(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    uint64_t at = take(20 * GIB);
    OK(cudaMemset(at, 1, 20 * GIB));
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 << 10, "%ld KiB", after.ru_maxrss - before.ru_maxrss);
    give(at);
}

static void host_memory(void) {
    uint64_t device = in_use(), at;
    struct cuda_pointer_attributes_13 what;
    static char mine[8192];
    OK(cudaHostAlloc(&at, 10 * MIB, 0));
    CHECK(own(0, HT_KIND_PINNED) == 10 * MIB && in_use() == device, "pinned memory is not device memory");
    memset((void *)at, 7, 4096);
    OK(cudaPointerGetAttributes(&what, (char *)at + 4096));
    CHECK(what.type == CUDA_MEMORY_HOST && what.host_pointer == (char *)at + 4096, "type %d", what.type);
    OK(cudaFreeHost((void *)at));
    FAILS(cudaFreeHost((void *)at), CUDA_INVALID_VALUE);
    OK(cudaHostRegister(mine, sizeof mine, 0));
    FAILS(cudaHostRegister(mine, sizeof mine, 0), CUDA_HOST_REGISTERED);
    CHECK(own(0, HT_KIND_PINNED) == sizeof mine, "registered memory counts as pinned");
    OK(cudaHostUnregister(mine));
    FAILS(cudaHostUnregister(mine), CUDA_HOST_NOT_REGISTERED);
    CHECK(own(0, HT_KIND_PINNED) == 0, "all is back");
    OK(cudaPointerGetAttributes(&what, mine));
    CHECK(what.type == CUDA_MEMORY_UNREGISTERED && !what.device_pointer, "nobody's");
    OK(cudaMallocManaged(&at, MIB, 1));
    CHECK(in_use() == device + TWO_MIB, "managed memory is on the device");
    *(char *)at = 1;
    OK(cudaPointerGetAttributes(&what, (void *)at));
    CHECK(what.type == CUDA_MEMORY_MANAGED && what.device_pointer == what.host_pointer, "both can follow it");
    give(at);
}

/* ---- bytes */

/* Arguments that are not on the stack: of a launcher's frame all is taken for arguments (DESIGN.md). */
static void launch(void *given) {
    static void *argument, *arguments[2] = {&argument};
    argument = given;
    const struct cuda_dim3 one = {1, 1, 1};
    OK(cudaLaunchKernel((void *)1, one, one, arguments, 0, NULL));
}
static uint64_t unknown(void) { return ht_slot()->reads_count; }

static void known_bytes(void) {
    uint64_t a = take(4 * MIB), b = take(4 * MIB);
    int numbers[64], back[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = i;
    uint64_t reads = unknown();
    OK(cudaMemcpy((void *)a, numbers, sizeof numbers, 1));
    OK(cudaMemcpy((void *)b, (void *)a, sizeof numbers, 3));
    OK(cudaMemcpy(back, (void *)b, sizeof back, 2));
    CHECK(memcmp(back, numbers, sizeof back) == 0 && unknown() == reads, "they follow copies");
    OK(cudaMemset(a + 16, 0xff, 8));
    OK(cudaMemcpy(back, (void *)a, sizeof back, 2));
    CHECK(back[3] == 3 && back[4] == -1 && back[5] == -1 && back[6] == 6 && unknown() == reads, "a memset in the middle");
    launch((void *)(b + 8));
    OK(cudaMemcpy(back, (void *)b, sizeof back, 2));
    CHECK(back[5] == 0 && unknown() == reads + 1, "a kernel may have written there: zeros, and counted");
    OK(cudaMemcpy(back, (void *)a, sizeof back, 2));
    CHECK(back[63] == 63 && unknown() == reads + 1, "of other blocks nothing is forgotten");
    give(a);
    CHECK(take(4 * MIB) == a, "the same address again");
    OK(cudaMemcpy(back, (void *)a, sizeof back, 2));
    CHECK(back[63] == 0 && unknown() == reads + 2, "freed memory is forgotten");
    CHECK(ht_slot()->reads_bytes >= 2 * sizeof back, "bytes are counted");
    give(a), give(b);
}

int cudaGraphKernelNodeGetAttribute(void *, int, void *);
int cudaProfilerStart(void);
static void counted_by_name(void) {
    int value[16];
    CHECK(cudaGraphKernelNodeGetAttribute(NULL, 0, value) == CUDA_NOT_SUPPORTED, "an output that is not modelled fails");
    CHECK(cudaProfilerStart() == 0, "a pure command succeeds");
    int refused = 0;
    for (int i = 0; i < HT_GPU_CALLS; i++)
        if (strcmp(ht_slot()->calls[i].name, "cudaGraphKernelNodeGetAttribute") == 0)
            refused = ht_slot()->calls[i].kind == HT_CALL_REFUSED && ht_slot()->calls[i].count == 1;
    CHECK(refused, "and is counted by name");
}

/* Processor time of a reset that gives back so many small blocks, in ns. */
static int64_t reset_of(int blocks) {
    for (int i = 0; i < blocks; i++)
        take(512);
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    OK(cudaDeviceReset());
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
}

static void reset_is_linear(void) {
    reset_of(8000); /* its pages are there from now on */
    int64_t some = reset_of(8000), more = reset_of(64000);
    CHECK(more < 24 * some, "eight times the blocks take some eight times as long, and not 64 times");
    CHECK(gpu_of(0)->used == 0, "all are given back");
}

int main(void) {
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    contexts();
    granularity();
    out_of_memory();
    backed_by_nothing();
    host_memory();
    known_bytes();
    counted_by_name();
    reset_is_linear();
    uint64_t left = take(5 * MIB);
    OK(cudaDeviceReset());
    CHECK(gpu_of(0)->used == 0, "a reset gives back everything");
    FAILS(cudaFree((void *)left), CUDA_INVALID_VALUE);
    printf("memory: %d checks\n", checks);
    return 0;
}
