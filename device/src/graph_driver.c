/* graph_driver.c: the driver's entry points for graphs. XLA builds its command buffers with them, node by node, and gives
 * the nodes new parameters before a launch; what the nodes are given is what a launch forgets (graph.c).
 */
#include <string.h>

#include "runtime.h"

static int added(void **node, void *graph, int type, ht_host_call call, void *data) {
    *node = ht_graph_add(graph, type, call, data);
    return *node ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- where nodes write */

static int kernel_writes(void *graph, const struct cu_kernel_node *kernel) {
    uint64_t words[HT_MOST_ARGUMENTS];
    size_t n = ht_arguments(kernel->arguments, words, HT_MOST_ARGUMENTS);
    for (size_t i = 0; i < n; i++)
        ht_graph_writes(graph, words[i]);
    if (kernel->extra && kernel->extra[0] == (void *)1 && kernel->extra[2] == (void *)2) /* the arguments as one buffer */
        for (size_t i = 0; i + 8 <= *(size_t *)kernel->extra[3]; i += 8) {
            memcpy(words, (const char *)kernel->extra[1] + i, 8);
            ht_graph_writes(graph, words[0]);
        }
    return CUDA_OK;
}

static int node_writes(void *graph, const struct cu_node *node) {
    switch (node->type) {
    case 0: return kernel_writes(graph, &node->kernel);
    case 1: return ht_graph_writes(graph, node->copy.copy.dst_device);
    case 2: return ht_graph_writes(graph, node->set.to);
    case 4: return ht_graph_part(graph, node->child.graph);
    default: return CUDA_OK;
    }
}

/* ---- nodes */

HT_EXPORT int cuGraphCreate(void **graph, unsigned flags) {
    (void)flags;
    *graph = ht_graph_new();
    return *graph ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
HT_EXPORT int cuGraphDestroy(void *graph) { return ht_graph_delete(graph); }
HT_EXPORT int cuGraphClone(void **out, void *graph) {
    *out = ht_graph_clone(graph);
    return *out ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuGraphAddKernelNode_v2(void **node, void *graph, void **deps, size_t n, const struct cu_kernel_node *kernel) {
    (void)deps, (void)n;
    int error = added(node, graph, 0, NULL, NULL);
    return error ? error : kernel_writes(graph, kernel);
}
HT_EXPORT int cuGraphAddKernelNode(void **node, void *graph, void **deps, size_t n, const struct cu_kernel_node *kernel) {
    return cuGraphAddKernelNode_v2(node, graph, deps, n, kernel);
}
HT_EXPORT int cuGraphAddMemcpyNode(void **node, void *graph, void **deps, size_t n, const struct cu_copy_3d *copy) {
    (void)deps, (void)n;
    int error = added(node, graph, 1, NULL, NULL);
    return error ? error : ht_graph_writes(graph, copy->dst_device);
}
HT_EXPORT int cuGraphAddMemsetNode(void **node, void *graph, void **deps, size_t n, const struct cu_memset_node *set) {
    (void)deps, (void)n;
    int error = added(node, graph, 2, NULL, NULL);
    return error ? error : ht_graph_writes(graph, set->to);
}
struct host_node { ht_host_call call; void *data; };
HT_EXPORT int cuGraphAddHostNode(void **node, void *graph, void **deps, size_t n, const struct host_node *host) {
    (void)deps, (void)n;
    return host ? added(node, graph, 3, host->call, host->data) : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuGraphAddChildGraphNode(void **node, void *graph, void **deps, size_t n, void *child) {
    (void)deps, (void)n;
    int error = added(node, graph, 4, NULL, NULL);
    ht_graph_child(graph, child);
    return error ? error : ht_graph_part(graph, child);
}
HT_EXPORT int cuGraphAddEmptyNode(void **node, void *graph) { return added(node, graph, 5, NULL, NULL); }
HT_EXPORT int cuGraphAddEventWaitNode(void **node, void *graph) { return added(node, graph, 6, NULL, NULL); }
HT_EXPORT int cuGraphAddEventRecordNode(void **node, void *graph) { return added(node, graph, 7, NULL, NULL); }

/* The bodies of a node that decides on the device belong to it for as long as the process lives; NULL ends them. */
static void **new_bodies(struct cu_conditional_node *node) {
    void **bodies = ht_new((node->size + 1) * sizeof *bodies);
    for (unsigned i = 0; bodies && i < node->size; i++)
        bodies[i] = ht_graph_new();
    node->graphs = bodies;
    return bodies;
}
HT_EXPORT int cuGraphAddNode_v2(void **node, void *graph, void **deps, const void *edges, size_t n, struct cu_node *what) {
    (void)deps, (void)edges, (void)n;
    if (what->type == HT_NODE_CONDITIONAL)
        return added(node, graph, what->type, NULL, new_bodies(&what->conditional));
    if (what->type == 4)
        ht_graph_child(graph, what->child.graph);
    int host = what->type == 3, error = added(node, graph, what->type, host ? what->host.call : NULL, host ? what->host.data : NULL);
    return error ? error : node_writes(graph, what);
}
HT_EXPORT int cuGraphAddNode(void **node, void *graph, void **deps, size_t n, struct cu_node *what) {
    return cuGraphAddNode_v2(node, graph, deps, NULL, n, what);
}
HT_EXPORT int cuGraphConditionalHandleCreate(unsigned long long *handle) { return cudaGraphConditionalHandleCreate(handle); }
HT_EXPORT int cuGraphNodeGetType(void *node, int *type) { return ht_graph_node_type(node, type); }
HT_EXPORT int cuGraphGetNodes(void *graph, void **nodes, size_t *n) { return ht_graph_nodes(graph, nodes, n); }
HT_EXPORT int cuGraphGetRootNodes(void *graph, void **nodes, size_t *n) { return cudaGraphGetRootNodes(graph, nodes, n); }
HT_EXPORT int cuGraphNodeGetDependencies(void *node, void **deps, size_t *n) { (void)node, (void)deps; *n = 0; return CUDA_OK; }
HT_EXPORT int cuGraphNodeGetDependencies_v2(void *node, void **deps, void *edges, size_t *n) { (void)edges; return cuGraphNodeGetDependencies(node, deps, n); }

/* ---- executables */

HT_EXPORT int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) { return ht_graph_instantiate(exec, graph, flags); }
HT_EXPORT int cuGraphInstantiate(void **exec, void *graph) { return ht_graph_instantiate(exec, graph, 0); }
HT_EXPORT int cuGraphInstantiate_v2(void **exec, void *graph) { return ht_graph_instantiate(exec, graph, 0); }
HT_EXPORT int cuGraphInstantiateWithParams(void **exec, void *graph, void *params) { return cudaGraphInstantiateWithParams(exec, graph, params); }
HT_EXPORT int cuGraphExecDestroy(void *exec) { return ht_graph_exec_delete(exec); }
HT_EXPORT int cuGraphExecGetFlags(void *exec, unsigned long long *flags) { return ht_graph_exec_flags(exec, flags); }
HT_EXPORT int cuGraphUpload(void *exec, void *stream) { (void)stream; return ht_graph_can_run(exec) ? CUDA_OK : CUDA_INVALID_VALUE; }
HT_EXPORT int cuGraphLaunch(void *exec, void *stream) {
    int error = ht_use(ht_device_current());
    return error ? error : ht_graph_launch(exec, stream);
}
HT_EXPORT int cuGraphExecUpdate_v2(void *exec, void *graph, void *result) { return cudaGraphExecUpdate(exec, graph, result); }
HT_EXPORT int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const struct cu_kernel_node *kernel) {
    (void)node;
    return ht_graph_can_run(exec) ? kernel_writes(exec, kernel) : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuGraphExecKernelNodeSetParams(void *exec, void *node, const struct cu_kernel_node *kernel) {
    return cuGraphExecKernelNodeSetParams_v2(exec, node, kernel);
}
HT_EXPORT int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const struct cu_copy_3d *copy) { (void)node; return ht_graph_writes(exec, copy->dst_device); }
HT_EXPORT int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const struct cu_memset_node *set) { (void)node; return ht_graph_writes(exec, set->to); }
HT_EXPORT int cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *child) { (void)node; return ht_graph_part(exec, child); }
HT_EXPORT int cuGraphExecNodeSetParams(void *exec, void *node, const struct cu_node *what) {
    (void)node;
    return ht_graph_can_run(exec) ? node_writes(exec, what) : CUDA_INVALID_VALUE;
}

/* ---- capture */

HT_EXPORT int cuStreamBeginCapture_v2(void *s, int mode) {
    int error = ht_use(ht_device_current());
    return error ? error : ht_capture_begin(s, NULL, mode);
}
HT_EXPORT int cuStreamBeginCapture(void *s) { return cuStreamBeginCapture_v2(s, 0); }
HT_EXPORT int cuStreamBeginCaptureToGraph(void *s, void *graph, const void *deps, const void *edges, size_t n, int mode) {
    (void)deps, (void)edges, (void)n;
    return ht_capture_begin(s, graph, mode);
}
HT_EXPORT int cuStreamEndCapture(void *s, void **graph) { return ht_capture_end(s, graph); }
HT_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) { return cudaThreadExchangeStreamCaptureMode(mode); }
