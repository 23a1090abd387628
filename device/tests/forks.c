/* forks.c: children made while other threads are inside every part: each finds all locks free. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"

#define THREADS 4
#define FORKS 60
static const struct cu_alloc_prop on_first = {.type = 1, .handles = 1, .location = {1, 0}};
static int stop;

static void *work(void *none) {
    (void)none;
    OK(cudaSetDevice(0));
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        uint64_t at, part, handle;
        void *stream, *graph;
        int number = 7;
        OK(cudaMalloc(&at, 4096));
        OK(cudaMemcpy((void *)at, &number, sizeof number, 1));
        OK(cudaMallocAsync(&part, 3 * MIB, NULL));
        OK(cudaFreeAsync((void *)part, NULL));
        OK(cuMemAddressReserve(&part, 4 * MIB, 0, 0, 0));
        OK(cuMemCreate(&handle, 4 * MIB, &on_first, 0));
        OK(cuMemMap(part, 4 * MIB, 0, handle, 0));
        OK(cuMemUnmap(part, 4 * MIB));
        OK(cuMemRelease(handle));
        OK(cuMemAddressFree(part, 4 * MIB));
        OK(cudaStreamCreateWithFlags(&stream, 1));
        OK(cudaStreamBeginCapture(stream, 2));
        OK(cudaStreamEndCapture(stream, &graph));
        OK(cudaGraphDestroy(graph));
        OK(cudaStreamDestroy(stream));
        OK(cudaFree((void *)at));
        HT_COMMAND();
    }
    return NULL;
}

/* Everything that a child without a device may do takes some lock. */
static int in_child(uint64_t at) {
    struct ht_place place;
    int number = 9, found = 0;
    void *memory;
    alarm(30); /* instead of waiting for ever */
    memory = ht_new(100);
    ht_drop(memory, 100);
    if (!ht_place(at, &place) || place.size != 4096)
        return 3;
    ht_host_wrote(at, &number, sizeof number);
    if (!ht_kept(at, &found, sizeof found) || found != 9)
        return 4;
    HT_COMMAND();
    if (!ht_slot() || ht_slot()->pid != (uint32_t)getpid())
        return 5;
    if (cuMemUnmap(at, TWO_MIB) == CUDA_OK || cudaMalloc(&at, MIB) != CUDA_NOT_INITIALIZED)
        return 6;
    return ht_context(0) ? 7 : 0;
}

int main(void) {
    pthread_t threads[THREADS];
    uint64_t at;
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIGHTIDE_DEVICE_SPEC");
    OK(cudaMalloc(&at, 4096));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < FORKS; i++) {
        int status;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            _exit(in_child(at));
        CHECK(waitpid(pid, &status, 0) == pid && status == 0, "child %d: %x", i, (unsigned)status);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("forks: %d checks\n", checks);
    return 0;
}
