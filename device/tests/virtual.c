/* virtual.c: reserve, map and unmap; pools of cudaMallocAsync. */
#include <string.h>
#include <unistd.h>

#include "cuda.h"

static const char spec[] = "count=2;name=NVIDIA Test;memory=1073741824;context=0;cc=9.0;sms=132";
static const struct cu_alloc_prop on_first = {.type = 1, .handles = 1, .location = {1, 0}};

static uint64_t create(size_t bytes) {
    uint64_t handle;
    OK(cuMemCreate(&handle, bytes, &on_first, 0));
    return handle;
}

static void reservations(void) {
    uint64_t at, other;
    OK(cuMemAddressReserve(&at, 64 * GIB, 0, 0, 0));
    CHECK(gpu_of(0)->used == 0 && at % TWO_MIB == 0, "address space costs nothing, and may exceed the device");
    OK(cuMemAddressReserve(&other, 4 * MIB, 1 * GIB, 0, 0));
    CHECK(other % GIB == 0, "aligned as asked");
    FAILS(cuMemAddressReserve(&other, MIB, 0, 0, 0), CUDA_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&other, 4 * MIB, 3 * MIB, 0, 0), CUDA_INVALID_VALUE);
    FAILS(cuMemAddressFree(at, 32 * GIB), CUDA_INVALID_VALUE);
    FAILS(cuMemAddressFree(at + TWO_MIB, 64 * GIB), CUDA_INVALID_VALUE);
    OK(cuMemAddressFree(at, 64 * GIB));
    FAILS(cuMemAddressFree(at, 64 * GIB), CUDA_INVALID_VALUE);
    OK(cuMemAddressFree(other, 4 * MIB));
}

static void mappings(void) {
    const struct cuda_access both = {{1, 0}, 3}, nobody = {{1, 7}, 3};
    uint64_t at, base, again;
    size_t size;
    OK(cuMemGetAllocationGranularity(&size, &on_first, 0));
    CHECK(size == TWO_MIB, "%zu", size);
    OK(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    uint64_t first = create(20 * MIB), second = create(4 * MIB);
    CHECK(own(0, HT_KIND_MAPPED) == 24 * MIB, "memory is charged when it is made");
    FAILS(cuMemCreate(&again, 3 * MIB, &on_first, 0), CUDA_INVALID_VALUE);
    FAILS(cuMemCreate(&again, 2 * GIB, &on_first, 0), CUDA_OUT_OF_MEMORY);
    FAILS(cuMemMap(at - 64 * GIB, 20 * MIB, 0, first, 0), CUDA_INVALID_VALUE); /* not reserved */
    FAILS(cuMemMap(at + 62 * MIB, 4 * MIB, 0, second, 0), CUDA_INVALID_VALUE); /* sticks out */
    FAILS(cuMemMap(at, 22 * MIB, 0, first, 0), CUDA_INVALID_VALUE);            /* more than there is */
    FAILS(cuMemMap(at, 2 * MIB, 2 * MIB, first, 0), CUDA_INVALID_VALUE);       /* an offset */
    OK(cuMemMap(at, 20 * MIB, 0, first, 0));
    FAILS(cuMemMap(at + 18 * MIB, 4 * MIB, 0, second, 0), CUDA_INVALID_VALUE); /* taken */
    OK(cuMemMap(at + 20 * MIB, 4 * MIB, 0, second, 0));
    OK(cuMemSetAccess(at, 24 * MIB, &both, 1));
    FAILS(cuMemSetAccess(at, 26 * MIB, &both, 1), CUDA_INVALID_VALUE);
    FAILS(cuMemSetAccess(at, 24 * MIB, &nobody, 1), CUDA_INVALID_DEVICE);
    OK(cuMemGetAddressRange_v2(&base, &size, at + 5 * MIB));
    CHECK(base == at && size == 20 * MIB, "a mapping is an allocation");
    OK(cuMemRelease(first));
    FAILS(cuMemRelease(first), CUDA_INVALID_VALUE); /* no handle is left, though it lives */
    CHECK(own(0, HT_KIND_MAPPED) == 24 * MIB, "mapped memory stays");
    OK(cuMemRetainAllocationHandle(&again, at + 8 * MIB));
    CHECK(again == first, "and its handle can be had again");
    OK(cuMemRelease(again));
    FAILS(cuMemAddressFree(at, 64 * MIB), CUDA_INVALID_VALUE); /* mapped */
    FAILS(cuMemUnmap(at, 10 * MIB), CUDA_INVALID_VALUE);       /* part of a mapping */
    FAILS(cuMemUnmap(at, 26 * MIB), CUDA_INVALID_VALUE);       /* and nothing behind */
    CHECK(own(0, HT_KIND_MAPPED) == 24 * MIB, "what was refused changed nothing");
    OK(cuMemUnmap(at, 24 * MIB));
    CHECK(own(0, HT_KIND_MAPPED) == 4 * MIB, "released and unmapped: gone; the other has its handle");
    OK(cuMemMap(at + 32 * MIB, 4 * MIB, 0, second, 0)); /* the same memory elsewhere */
    OK(cuMemUnmap(at + 32 * MIB, 4 * MIB));
    OK(cuMemRelease(second));
    OK(cuMemAddressFree(at, 64 * MIB));
    CHECK(gpu_of(0)->used == 0 && gpu_of(0)->peak == 24 * MIB, "all is back");
}

static void shared(void) {
    uint64_t memory = create(8 * MIB), theirs;
    int file = -1;
    OK(cuMemExportToShareableHandle(&file, memory, 1, 0));
    OK(cuMemImportFromShareableHandle(&theirs, (void *)(intptr_t)file, 1));
    close(file);
    CHECK(own(0, HT_KIND_MAPPED) == 8 * MIB, "imported memory is its owner's");
    FAILS(cuMemExportToShareableHandle(&file, memory, 8, 0), CUDA_NOT_SUPPORTED);
    OK(cuMemRelease(theirs));
    OK(cuMemRelease(memory));
    CHECK(gpu_of(0)->used == 0, "all is back");
}

static uint64_t asked(void *pool, int what) {
    uint64_t value;
    OK(cudaMemPoolGetAttribute(pool, what, &value));
    return value;
}

static void pools(void) {
    void *pool;
    uint64_t a, b, c, keep = 0;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&a, MIB, NULL));
    OK(cudaMallocAsync(&b, 10 * MIB, NULL));
    CHECK(asked(pool, POOL_RESERVED) == 32 * MIB && asked(pool, POOL_USED) == 11 * MIB, "both lie in one chunk");
    CHECK(own(0, HT_KIND_POOL) == 32 * MIB, "the device pays for chunks");
    OK(cudaFreeAsync((void *)a, NULL));
    OK(cudaMallocAsync(&c, MIB / 2, NULL));
    CHECK(c == a, "freed parts are used again");
    OK(cudaFreeAsync((void *)c, NULL));
    FAILS(cudaFreeAsync((void *)c, NULL), CUDA_INVALID_VALUE);
    OK(cudaFree((void *)b)); /* cudaFree takes them too */
    CHECK(own(0, HT_KIND_POOL) == 32 * MIB, "a pool keeps until a synchronisation");
    OK(cudaDeviceSynchronize());
    CHECK(own(0, HT_KIND_POOL) == 0, "its threshold is 0: all goes");
    keep = UINT64_MAX;
    OK(cudaMemPoolSetAttribute(pool, POOL_THRESHOLD, &keep));
    OK(cudaMallocAsync(&a, 40 * MIB, NULL));
    OK(cudaFreeAsync((void *)a, NULL));
    OK(cudaDeviceSynchronize());
    CHECK(own(0, HT_KIND_POOL) == 64 * MIB, "with a threshold it stays");
    OK(cudaMallocAsync(&a, 990 * MIB, NULL)); /* fits only once the cached chunk went back */
    OK(cudaFreeAsync((void *)a, NULL));
    FAILS(cudaMallocAsync(&a, 1025 * MIB, NULL), CUDA_OUT_OF_MEMORY);
    uint64_t parts[8]; /* of one chunk, every second one freed: 384 MiB in four pieces */
    OK(cudaMallocAsync(&a, 768 * MIB, NULL));
    OK(cudaFreeAsync((void *)a, NULL));
    for (int i = 0; i < 8; i++)
        OK(cudaMallocAsync(&parts[i], 96 * MIB, NULL));
    for (int i = 0; i < 8; i += 2)
        OK(cudaFreeAsync((void *)parts[i], NULL));
    FAILS(cudaMallocAsync(&a, 700 * MIB, NULL), CUDA_OUT_OF_MEMORY);
    OK(cudaMallocAsync(&a, 380 * MIB, NULL)); /* what is free is mapped in a row */
    CHECK(asked(pool, POOL_USED) == 764 * MIB && own(0, HT_KIND_POOL) == 768 * MIB, "and its bytes are counted once");
    OK(cudaMallocAsync(&b, 96 * MIB, NULL)); /* what has lost its memory serves nobody */
    CHECK(own(0, HT_KIND_POOL) == 864 * MIB, "it takes memory of its own");
    for (int i = 1; i < 8; i += 2)
        OK(cudaFreeAsync((void *)parts[i], NULL));
    OK(cudaFreeAsync((void *)a, NULL));
    OK(cudaFreeAsync((void *)b, NULL));
    OK(cudaMemPoolTrimTo(pool, 0));
    CHECK(own(0, HT_KIND_POOL) == 0 && asked(pool, POOL_USED_HIGH) == 990 * MIB, "its high-water mark remains");
    keep = 0;
    OK(cudaMemPoolSetAttribute(pool, POOL_USED_HIGH, &keep));
    OK(cudaMemPoolSetAttribute(pool, POOL_THRESHOLD, &keep));
    FAILS(cudaMemPoolSetAttribute(pool, POOL_USED, &keep), CUDA_INVALID_VALUE);
    CHECK(asked(pool, POOL_USED_HIGH) == 0, "until it is set back");

    const struct cuda_pool_props on_second = {.type = 1, .location = {1, 1}};
    OK(cudaMemPoolCreate(&pool, &on_second));
    OK(cudaMallocFromPoolAsync(&a, MIB, pool, NULL));
    CHECK(own(1, HT_KIND_POOL) == 32 * MIB && own(0, HT_KIND_POOL) == 0, "on the device it was made for");
    OK(cudaFreeAsync((void *)a, NULL));
    OK(cudaMemPoolDestroy(pool));
    CHECK(own(1, HT_KIND_POOL) == 0, "all is back");
    FAILS(cudaMallocFromPoolAsync(&a, MIB, pool, NULL), CUDA_INVALID_VALUE);
}

int main(void) {
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    reservations();
    mappings();
    shared();
    pools();
    printf("virtual: %d checks\n", checks);
    return 0;
}
