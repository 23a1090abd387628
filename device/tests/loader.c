/* loader.c: the loader is asked with none of our locks held. A thread in a library's constructor has the loader's lock and
 * calls us; who asked the loader under a lock of ours would wait for it, and it for us. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"

void **__cudaRegisterFatBinary(void *);

static void *(*constructor)(void *); /* what another thread does while it has the loader's lock; NULL: nothing */
static int asked;

/* Stands for waiting for the loader's lock until the thread that has it is done. */
static void wait_for_constructor(void) {
    void *(*body)(void *) = __atomic_exchange_n(&constructor, NULL, __ATOMIC_ACQ_REL);
    struct timespec end;
    pthread_t other;
    if (!body)
        return;
    asked++;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    CHECK(pthread_create(&other, NULL, body, NULL) == 0, "thread");
    CHECK(pthread_timedjoin_np(other, NULL, &end) == 0, "the loader is asked under a lock that a constructor may wait for");
}

/* What the library's dl_iterate_phdr is linked to here (-Wl,--wrap). */
typedef int see(struct dl_phdr_info *, size_t, void *);
int __real_dl_iterate_phdr(see *, void *);
int __wrap_dl_iterate_phdr(see *, void *);
int __wrap_dl_iterate_phdr(see *callback, void *data) {
    wait_for_constructor();
    return __real_dl_iterate_phdr(callback, data);
}

/* Found by dlsym, where a line of Python is looked for. */
__attribute__((visibility("default"))) char _PyRuntime[8];
__attribute__((visibility("default"))) const char *Py_GetVersion(void);
const char *Py_GetVersion(void) {
    wait_for_constructor();
    return "none";
}

static void *allocates(void *none) {
    uint64_t at;
    (void)none;
    cudaMalloc(&at, MIB);
    cudaMallocAsync(&at, MIB, NULL);
    return NULL;
}
static struct { uint32_t magic, version; const char *image; } wrapper = {0x466243b1, 1, "no image, but long enough to be looked at"};
static void *registers(void *none) {
    (void)none;
    __cudaRegisterFatBinary(&wrapper);
    return NULL;
}

static void first_call(void) {
    uint64_t at;
    constructor = allocates;
    OK(cudaMalloc(&at, MIB));
}
static void kernels(void) {
    OK(cudaSetDevice(0));
    constructor = registers;
    registers(NULL);
}
static void full_pool(void) {
    uint64_t at;
    OK(cudaSetDevice(0));
    constructor = allocates;
    FAILS(cudaMallocAsync(&at, 20 * GIB, NULL), CUDA_OUT_OF_MEMORY);
    CHECK(ht_slot()->ooms_count == 1 && gpu_of(0)->failed == 1, "one request did not fit: %llu", (unsigned long long)ht_slot()->ooms_count);
}
static void no_context(void) {
    (void)ht_slot();
    constructor = allocates;
    FAILS(cudaSetDevice(1), CUDA_OUT_OF_MEMORY);
}

static void in_child(const char *what, void (*body)(void)) {
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(asked == 1 ? 0 : 2);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %x%s", what, (unsigned)status, WEXITSTATUS(status) == 2 ? ", the loader was not asked" : "");
}

int main(void) {
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("HIGHTIDE_DEVICE_SPEC", "name=Test;memory=17179869184;context=104857600|name=Small;memory=1048576;context=104857600", 1);
    in_child("the first call", first_call);
    in_child("registering kernels", kernels);
    in_child("a pool that is full", full_pool);
    in_child("no room for a context", no_context);
    printf("loader: %d checks\n", checks);
    return 0;
}
