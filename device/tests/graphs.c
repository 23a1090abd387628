/* graphs.c: graphs built through the driver, node by node, as XLA builds its command buffers: what their nodes are given is
 * forgotten at each launch, and not before. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

static const char spec[] = "count=1;name=NVIDIA Test;memory=1073741824;cc=9.0;sms=132;graph_node=10240";

int cuGraphCreate(void **, unsigned);
int cuGraphDestroy(void *);
int cuGraphClone(void **, void *);
int cuGraphAddKernelNode_v2(void **, void *, void **, size_t, const struct cu_kernel_node *);
int cuGraphAddMemcpyNode(void **, void *, void **, size_t, const struct cu_copy_3d *, void *);
int cuGraphAddMemsetNode(void **, void *, void **, size_t, const struct cu_memset_node *, void *);
int cuGraphAddHostNode(void **, void *, void **, size_t, const void *);
int cuGraphAddEmptyNode(void **, void *);
int cuGraphAddChildGraphNode(void **, void *, void **, size_t, void *);
int cuGraphAddNode_v2(void **, void *, void **, const void *, size_t, struct cu_node *);
int cuGraphNodeGetType(void *, int *);
int cuGraphGetNodes(void *, void **, size_t *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphExecGetFlags(void *, unsigned long long *);
int cuGraphExecKernelNodeSetParams_v2(void *, void *, const struct cu_kernel_node *);
int cuGraphExecUpdate_v2(void *, void *, void *);
int cuGraphExecDestroy(void *);
int cuGraphLaunch(void *, void *);

static uint64_t block(void) {
    uint64_t at;
    OK(cudaMalloc(&at, 4096));
    return at;
}
static void writes(uint64_t at, int number) { OK(cudaMemcpy((void *)at, &number, sizeof number, 1)); }
static int reads(uint64_t at) {
    int number = -1;
    OK(cudaMemcpy(&number, (void *)at, sizeof number, 2));
    return number;
}

/* A kernel of three arguments whose array is on the heap; the last is what it writes. */
struct kernel { struct cu_kernel_node node; void **array; uint64_t *words; };
static struct kernel kernel(uint64_t a, uint64_t b, uint64_t out) {
    struct kernel made = {.node = {.function = (void *)1, .grid = {1, 1, 1}, .block = {1, 1, 1}}};
    made.array = malloc(3 * sizeof(void *));
    made.words = malloc(3 * sizeof(uint64_t));
    const uint64_t words[] = {a, b, out};
    memcpy(made.words, words, sizeof words);
    for (int i = 0; i < 3; i++)
        made.array[i] = &made.words[i];
    made.node.arguments = made.array;
    return made;
}
static void drop(struct kernel *made) { free(made->array), free(made->words); }

static void *instance(void *graph) {
    void *exec;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void launches(void) {
    uint64_t in = block(), out = block(), other = block(), aside = block();
    void *graph, *node, *exec;
    struct kernel first = kernel(in, in, out), second = kernel(in, in, other);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &first.node));
    exec = instance(graph);
    writes(out, 7), writes(other, 8), writes(aside, 9);
    CHECK(reads(out) == 7, "forgotten before it was launched: %d", reads(out));
    OK(cuGraphLaunch(exec, NULL));
    CHECK(reads(out) == 0 && reads(other) == 8 && reads(aside) == 9, "%d %d %d", reads(out), reads(other), reads(aside));
    writes(out, 10);
    OK(cuGraphLaunch(exec, NULL)); /* the same addresses again */
    CHECK(reads(out) == 0, "a stale number: %d", reads(out));
    OK(cuGraphExecKernelNodeSetParams_v2(exec, node, &second.node));
    OK(cuGraphLaunch(exec, NULL));
    CHECK(reads(other) == 0 && reads(aside) == 9, "%d %d", reads(other), reads(aside));
    OK(cuGraphExecDestroy(exec));
    FAILS(cuGraphLaunch(exec, NULL), CUDA_INVALID_VALUE);
    OK(cuGraphDestroy(graph));
    drop(&first), drop(&second);
}

static void calls(void *data) { ++*(int *)data; }

static void kinds(void) {
    uint64_t set = block(), copied = block(), deep = block();
    void *graph, *child, *clone, *node, *nodes[8];
    int called = 0, type;
    size_t n = 8;
    struct { void (*call)(void *); void *data; } host = {calls, &called};
    struct cu_memset_node fill = {.to = set, .element_bytes = 4, .width = 1, .height = 1};
    struct cu_copy_3d copy = {.dst_device = copied};
    struct kernel inner = kernel(set, set, deep);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode_v2(&node, child, NULL, 0, &inner.node));
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
    OK(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    OK(cuGraphNodeGetType(node, &type));
    CHECK(type == 3, "a node of kind %d", type);
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphGetNodes(clone, nodes, &n));
    CHECK(n == 4, "%zu nodes", n);
    void *exec = instance(clone);
    writes(set, 1), writes(copied, 2), writes(deep, 3);
    OK(cuGraphLaunch(exec, NULL));
    CHECK(called == 1 && !reads(set) && !reads(copied) && !reads(deep), "%d: %d %d %d", called, reads(set), reads(copied), reads(deep));
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(clone));
    FAILS(cuGraphDestroy(clone), CUDA_INVALID_VALUE);
    OK(cuGraphExecDestroy(exec));
    drop(&inner);
}

static void described(void) {
    uint64_t out = block(), within = block();
    void *graph, *node;
    struct kernel made = kernel(out, out, out), inner = kernel(out, out, within);
    struct cu_node kernel_node = {.type = 0, .kernel = made.node}, loop = {.type = 13, .conditional = {.type = 1, .size = 2}};
    struct { int result; void *node, *from; } result;
    OK(cuGraphCreate(&graph, 0));
    void *empty = instance(graph);
    OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &kernel_node));
    OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &loop));
    CHECK(loop.conditional.graphs && loop.conditional.graphs[0] && loop.conditional.graphs[1], "no bodies");
    OK(cuGraphAddKernelNode_v2(&node, loop.conditional.graphs[1], NULL, 0, &inner.node));
    void *exec = instance(graph);
    writes(out, 5), writes(within, 6);
    OK(cuGraphLaunch(exec, NULL));
    CHECK(reads(out) == 0 && reads(within) == 0, "stale: %d %d", reads(out), reads(within));
    OK(cuGraphExecUpdate_v2(exec, graph, &result));
    CHECK(result.result == 0, "%d", result.result);
    FAILS(cuGraphExecUpdate_v2(empty, graph, &result), CUDA_GRAPH_UPDATE_FAILED);
    CHECK(result.result == 2, "%d", result.result);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphExecDestroy(empty));
    drop(&made), drop(&inner);
}

/* What a driver keeps: for each kernel, copy and memset of an executable, those of its children too, until that is destroyed. */
static void kept(void) {
    void *graph, *child, *node, *exec, *copy;
    uint64_t at = block();
    struct kernel work = kernel(at, at, at);
    struct cu_memset_node set = {.to = at, .value = 1, .element_bytes = 4, .width = 1, .height = 1};
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode_v2(&node, child, NULL, 0, &work.node));
    OK(cuGraphAddKernelNode_v2(&node, child, NULL, 0, &work.node));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &work.node));
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, NULL));
    OK(cuGraphAddEmptyNode(&node, graph));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    CHECK(own(0, HT_KIND_GRAPH) == 0, "a graph that is no executable takes nothing");
    exec = instance(graph);
    CHECK(own(0, HT_KIND_GRAPH) == 4 * 10240, "a kernel, a memset and a child's two kernels; an empty node takes nothing");
    OK(cuGraphClone(&copy, graph));
    void *second = instance(copy);
    CHECK(own(0, HT_KIND_GRAPH) == 8 * 10240, "each executable of its own");
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(copy));
    OK(cuGraphDestroy(child));
    CHECK(own(0, HT_KIND_GRAPH) == 8 * 10240, "graphs are gone, executables stay");
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphExecDestroy(second));
    CHECK(own(0, HT_KIND_GRAPH) == 0, "all is back");
    drop(&work);
}

int main(void) {
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    launches();
    kinds();
    described();
    kept();
    printf("graphs: %d checks\n", checks);
    return 0;
}
