/* threads.c: many threads of one process in every part at once; what the thread sanitizer looks for. */
#include <pthread.h>
#include <string.h>

#include "cuda.h"

#define THREADS 8
#define ROUNDS 300
static const char spec[] = "count=2;name=NVIDIA Test;memory=17179869184;context=104857600;cc=9.0;sms=132";
static const struct cu_alloc_prop on_first = {.type = 1, .handles = 1, .location = {1, 0}};

static void memory(unsigned round) {
    uint64_t at, other, host;
    int numbers[16] = {1, 2, 3}, back[16];
    OK(cudaMalloc(&at, 1 + round * 4099));
    OK(cudaMalloc(&other, 5 * MIB));
    OK(cudaMemcpy((void *)at, numbers, 1, 1));
    OK(cudaMemcpy((void *)other, numbers, sizeof numbers, 1));
    OK(cudaMemcpy(back, (void *)other, sizeof back, 2)); /* 1 2 3, or forgotten by another thread's launch */
    OK(cudaHostAlloc(&host, 4096, 0));
    *(char *)host = 1;
    OK(cudaFreeHost((void *)host));
    /* Not on the stack: of a launcher's frame all is forgotten, and there lie addresses that are others' by now. */
    static __thread void *argument, *arguments[2];
    argument = (void *)other;
    arguments[0] = &argument;
    const struct cuda_dim3 one = {1, 1, 1};
    OK(cudaLaunchKernel((void *)1, one, one, arguments, 0, NULL));
    OK(cudaMemcpy(back, (void *)other, sizeof back, 2));
    if (back[2] != 0)
        CHECK(0, "forgotten");
    OK(cudaFree((void *)at));
    OK(cudaFree((void *)other));
}

static void segments(void) {
    uint64_t at, handle, part;
    const struct cuda_access access = {{1, 0}, 3};
    OK(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    OK(cuMemCreate(&handle, 4 * MIB, &on_first, 0));
    OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
    OK(cuMemSetAccess(at, 4 * MIB, &access, 1));
    OK(cuMemRelease(handle));
    OK(cuMemUnmap(at, 4 * MIB));
    OK(cuMemAddressFree(at, 64 * MIB));
    OK(cudaMallocAsync(&part, 3 * MIB, NULL));
    OK(cudaFreeAsync((void *)part, NULL));
}

static void capture(void) {
    void *s, *e, *graph, *exec;
    OK(cudaStreamCreateWithFlags(&s, 1));
    OK(cudaEventCreateWithFlags(&e, 2));
    OK(cudaStreamBeginCapture(s, 2));
    OK(cudaEventRecord(e, s));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaEventDestroy(e));
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamDestroy(s));
}

static void *work(void *number) {
    OK(cudaSetDevice((int)(intptr_t)number % 2));
    for (unsigned round = 0; round < ROUNDS; round++) {
        memory(round);
        segments();
        capture();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        OK(cudaSetDevice(i));
        OK(cudaDeviceSynchronize()); /* what pools still cache */
        CHECK(gpu_of(i)->used == 100 * MIB, "device %d: %llu are left", i, (unsigned long long)gpu_of(i)->used);
    }
    printf("threads: %d checks\n", checks);
    return 0;
}
