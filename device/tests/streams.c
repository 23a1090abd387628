/* streams.c: streams, events, capture into graphs and their launch. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

static const char spec[] = "count=1;name=NVIDIA Test;memory=1073741824;cc=9.0;sms=132";
enum { GLOBAL_MODE, THREAD_MODE, RELAXED_MODE };
enum { NONE, ACTIVE, INVALID };

static void *stream(void) {
    void *s;
    OK(cudaStreamCreateWithFlags(&s, 1));
    return s;
}
static void *event(unsigned flags) {
    void *e;
    OK(cudaEventCreateWithFlags(&e, flags));
    return e;
}
static int launch(void *s) {
    const struct cuda_dim3 one = {1, 1, 1};
    void *argument = NULL, *arguments[] = {&argument};
    return cudaLaunchKernel((void *)1, one, one, arguments, 0, s);
}
static int status(void *s) {
    int found;
    OK(cudaStreamIsCapturing(s, &found));
    return found;
}

static void events(void) {
    void *s = stream(), *a = event(0), *b = event(0), *untimed = event(2);
    float ms = -1;
    FAILS(cudaEventElapsedTime(&ms, a, b), CUDA_INVALID_HANDLE); /* not recorded */
    OK(cudaEventRecord(a, s));
    OK(cudaEventRecord(b, s));
    OK(cudaEventRecord(untimed, NULL));
    OK(cudaEventElapsedTime(&ms, a, b));
    CHECK(ms == 1, "%f", (double)ms); /* the same in every run: who measures kernels chooses by it */
    OK(cudaEventElapsedTime(&ms, b, a));
    CHECK(ms == -1, "%f", (double)ms);
    OK(cudaEventElapsedTime(&ms, a, a));
    CHECK(ms == 0, "%f", (double)ms);
    OK(cudaEventRecord(b, s));
    OK(cudaEventElapsedTime(&ms, a, b));
    CHECK(ms > 1, "%f", (double)ms); /* whoever waits for time to pass is not kept forever */
    FAILS(cudaEventElapsedTime(&ms, a, untimed), CUDA_INVALID_HANDLE);
    OK(cudaStreamWaitEvent(s, a, 0));
    OK(cudaEventQuery(a));
    OK(cudaStreamQuery(s));
    OK(cudaStreamSynchronize(s));
    OK(cudaEventDestroy(a));
    FAILS(cudaEventDestroy(a), CUDA_INVALID_HANDLE);
    OK(cudaStreamDestroy(s));
    FAILS(cudaStreamSynchronize(s), CUDA_INVALID_HANDLE);
    OK(cudaEventDestroy(b));
    OK(cudaEventDestroy(untimed));
}

/* A GPU that is behind the host is done with what the host waits for. */
static void behind(void) {
    setenv("HIGHTIDE_DEVICE_LAG", "1", 1);
    void *s = stream(), *a = event(0), *b = event(2);
    OK(cudaEventQuery(a)); /* not recorded */
    OK(cudaEventRecord(a, s));
    OK(cudaEventRecord(b, s));
    FAILS(cudaEventQuery(a), CUDA_NOT_READY);
    OK(cudaEventSynchronize(a));
    OK(cudaEventQuery(a));
    FAILS(cudaEventQuery(b), CUDA_NOT_READY);
    OK(cudaStreamSynchronize(s));
    OK(cudaEventQuery(b));
    OK(cudaEventRecord(a, s));
    FAILS(cudaEventQuery(a), CUDA_NOT_READY);
    OK(cudaDeviceSynchronize());
    OK(cudaEventQuery(a));
    unsetenv("HIGHTIDE_DEVICE_LAG");
    OK(cudaEventDestroy(a));
    OK(cudaEventDestroy(b));
    OK(cudaStreamDestroy(s));
}

static int called;
static void call(void *data) { called += *(int *)data; }

static void capture_and_replay(void) {
    void *s = stream(), *graph, *exec, *nodes[8];
    uint64_t id = 0, memory;
    size_t n = 8;
    int found, three = 3;
    OK(cudaMalloc(&memory, MIB));
    OK(cudaStreamBeginCapture(s, THREAD_MODE));
    FAILS(cudaStreamBeginCapture(s, THREAD_MODE), CUDA_ILLEGAL_STATE);
    OK(cudaStreamGetCaptureInfo_v2(s, &found, &id, NULL, NULL, NULL));
    CHECK(found == ACTIVE && id, "captures");
    OK(launch(s));
    OK(cudaMemcpyAsync((void *)memory, &three, sizeof three, 1, s));
    OK(cudaLaunchHostFunc(s, call, &three));
    CHECK(called == 0, "a captured call is not made");
    OK(cudaStreamEndCapture(s, &graph));
    CHECK(status(s) == NONE, "over");
    OK(cudaGraphGetNodes(graph, nodes, &n));
    CHECK(n == 3, "%zu nodes", n);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(exec, s)); /* an executable outlives its graph */
    OK(cudaGraphLaunch(exec, s));
    CHECK(called == 6, "each launch makes the captured calls: %d", called);
    OK(cudaGraphExecDestroy(exec));
    FAILS(cudaGraphLaunch(exec, s), CUDA_INVALID_VALUE);
    OK(cudaLaunchHostFunc(s, call, &three));
    CHECK(called == 9, "outside a capture it is made at once");
    OK(cudaStreamDestroy(s));
    OK(cudaFree((void *)memory));
}

/* An event takes a capture to another stream; both are one graph. */
static void forked_capture(void) {
    void *s = stream(), *other = stream(), *e = event(2), *graph;
    size_t n = 0;
    OK(cudaStreamBeginCapture(s, RELAXED_MODE));
    OK(cudaEventRecord(e, s));
    OK(cudaStreamWaitEvent(other, e, 0));
    CHECK(status(other) == ACTIVE, "joined");
    FAILS(cudaEventQuery(e), CUDA_CAPTURED_EVENT);
    OK(launch(other));
    FAILS(cudaStreamEndCapture(other, &graph), CUDA_CAPTURE_UNMATCHED);
    OK(cudaEventRecord(e, other));
    OK(cudaStreamWaitEvent(s, e, 0));
    OK(launch(s));
    OK(cudaStreamEndCapture(s, &graph));
    CHECK(status(other) == NONE, "both end");
    OK(cudaGraphGetNodes(graph, NULL, &n));
    CHECK(n == 2, "%zu", n);
    OK(cudaGraphDestroy(graph));

    OK(cudaStreamBeginCapture(s, RELAXED_MODE));
    OK(cudaEventRecord(e, s));
    OK(cudaStreamWaitEvent(other, e, 0));
    OK(launch(other));
    FAILS(cudaStreamEndCapture(s, &graph), CUDA_CAPTURE_UNJOINED); /* the other never came back */
    CHECK(!graph && status(s) == NONE && status(other) == NONE, "no graph of it");
    OK(cudaStreamDestroy(other));
    OK(cudaStreamDestroy(s));
    OK(cudaEventDestroy(e));
}

static void what_a_capture_forbids(void) {
    void *s = stream(), *graph = s;
    uint64_t at = 0, memory;
    OK(cudaStreamBeginCapture(s, GLOBAL_MODE));
    FAILS(cudaMalloc(&at, MIB), CUDA_CAPTURE_UNSUPPORTED);
    CHECK(status(s) == INVALID, "and spoils it");
    FAILS(cudaStreamEndCapture(s, &graph), CUDA_CAPTURE_INVALIDATED);
    CHECK(!graph, "no graph of it");
    OK(cudaStreamBeginCapture(s, GLOBAL_MODE));
    int mode = RELAXED_MODE;
    OK(cudaThreadExchangeStreamCaptureMode(&mode)); /* as PyTorch's allocator does */
    OK(cudaMalloc(&memory, MIB));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == RELAXED_MODE, "given back what was set");
    FAILS(cudaStreamSynchronize(s), CUDA_CAPTURE_UNSUPPORTED);
    FAILS(cudaStreamEndCapture(s, &graph), CUDA_CAPTURE_INVALIDATED);
    FAILS(cudaStreamBeginCapture(NULL, RELAXED_MODE), CUDA_CAPTURE_UNSUPPORTED);
    OK(cudaFree((void *)memory));
    OK(cudaStreamDestroy(s));
}

/* What a library did in a capture is one node, so that nobody takes it for lost; of nothing there is none. */
int cublasSgemm_v2(void *handle, int, int, int, int, int, const float *, uint64_t, int, uint64_t, int, const float *, uint64_t, int);
static void captured_work_of_libraries(void) {
    void *s = stream(), *graph;
    uint64_t memory;
    size_t n = 8;
    const float one = 1;
    OK(cudaMalloc(&memory, MIB));
    OK(cudaStreamBeginCapture(s, RELAXED_MODE));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &n));
    CHECK(n == 0, "%zu nodes of nothing", n);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamBeginCapture(s, RELAXED_MODE));
    OK(cublasSgemm_v2(NULL, 0, 0, 8, 8, 8, &one, memory, 8, memory, 8, &one, memory, 8));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &n));
    CHECK(n == 1, "%zu nodes of a product", n);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(s));
    OK(cudaFree((void *)memory));
}

int main(void) {
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    events();
    behind();
    capture_and_replay();
    forked_capture();
    captured_work_of_libraries();
    what_a_capture_forbids();
    while (cudaGetLastError())
        ;
    printf("streams: %d checks\n", checks);
    return 0;
}
