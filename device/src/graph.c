/* graph.c: graphs as objects: nodes that are counted and can be listed, executables that can be
 * launched. A launch makes the host's calls in it, and forgets what is known at the addresses that nodes
 * added by hand were given. What captured work writes was forgotten when it was captured.
 */
#include <string.h>

#include "runtime.h"

#define GRAPH_MAGIC 0x6772617068686974ull
#define NODE_MAGIC 0x6e6f6465676e6974ull
#define EXEC_MAGIC 0x6578656367726974ull

struct node { HT_HANDLE; int type; ht_host_call call; void *data; struct node *next; struct graph *graph; };
struct graph { HT_HANDLE; struct node *first, *last; size_t count, inner; struct ht_written_list written; };
struct call { ht_host_call call; void *data; };
struct exec { HT_HANDLE; int device; unsigned long long flags; size_t nodes, calls; uint64_t bytes; struct call *list; struct ht_written_list written; };

/* Addresses that a graph's nodes were given. The newest of too many stay. */
static void note(struct ht_written_list *list, uint64_t address) {
    enum { MOST = 8192 };
    if (list->count == list->room && list->room < MOST) {
        size_t room = list->room ? 2 * list->room : 16;
        uint64_t *more = ht_new(room * sizeof *more);
        if (!more)
            return;
        if (list->count)
            memcpy(more, list->at, list->count * sizeof *more);
        ht_drop(list->at, list->room * sizeof *more);
        list->at = more;
        list->room = room;
    }
    list->at[list->count < list->room ? list->count++ : list->next++ % list->room] = address;
}

static struct graph *graph_of(void *graph) { return ht_is(graph, GRAPH_MAGIC) ? graph : NULL; }

void *ht_graph_new(void) {
    struct graph *graph = ht_new(sizeof *graph);
    if (graph)
        graph->magic = GRAPH_MAGIC;
    return graph;
}

void *ht_graph_add(void *handle, int type, ht_host_call call, void *data) {
    struct graph *graph = graph_of(handle);
    struct node *node = graph ? ht_new(sizeof *node) : NULL;
    if (!node)
        return NULL;
    *node = (struct node){.magic = NODE_MAGIC, .type = type, .call = call, .data = data, .graph = graph};
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->count++;
    return node;
}

/* ---- what a driver keeps of an executable: about as much for each node that runs something on the device, of child graphs
 * too. How much is the catalogue's figure (graph_node); it is given back with the executable. */
enum { KERNEL_NODE, COPY_NODE, SET_NODE };

static size_t kept_nodes(const struct graph *graph) {
    size_t n = graph->inner;
    for (const struct node *node = graph->first; node; node = node->next) {
        n += node->type >= KERNEL_NODE && node->type <= SET_NODE;
        for (void **body = node->type == HT_NODE_CONDITIONAL ? node->data : NULL; body && *body; body++)
            n += graph_of(*body) ? kept_nodes(*body) : 0;
    }
    return n;
}

void ht_graph_child(void *handle, void *child) {
    struct graph *graph = graph_of(handle), *part = graph_of(child);
    if (graph && part)
        graph->inner += kept_nodes(part);
}

int ht_graph_delete(void *handle) {
    struct graph *graph = graph_of(handle);
    if (!graph)
        return CUDA_INVALID_VALUE;
    for (struct node *node = graph->first, *next; node; node = next) {
        next = node->next;
        ht_drop(node, sizeof *node);
    }
    ht_drop(graph->written.at, graph->written.room * sizeof *graph->written.at);
    ht_drop(graph, sizeof *graph);
    return CUDA_OK;
}

int ht_graph_nodes(void *handle, void **nodes, size_t *n) {
    struct graph *graph = graph_of(handle);
    if (!graph || !n)
        return CUDA_INVALID_VALUE;
    size_t i = 0;
    if (nodes)
        for (struct node *node = graph->first; node && i < *n; node = node->next)
            nodes[i++] = node;
    size_t room = *n;
    *n = nodes ? i : graph->count;
    for (; nodes && i < room; i++)
        nodes[i] = NULL;
    return CUDA_OK;
}

int ht_graph_instantiate(void **out, void *handle, unsigned long long flags) {
    struct graph *graph = graph_of(handle);
    int device = ht_device_current();
    if (!graph || !out)
        return CUDA_INVALID_VALUE;
    uint64_t bytes = kept_nodes(graph) * ht_figure(device, "graph_node", 0);
    if (bytes && !ht_charge(device, HT_KIND_GRAPH, bytes))
        return CUDA_OUT_OF_MEMORY;
    struct exec *exec = ht_new(sizeof *exec);
    if (!exec) {
        ht_refund(device, HT_KIND_GRAPH, bytes);
        return CUDA_OUT_OF_MEMORY;
    }
    *exec = (struct exec){.magic = EXEC_MAGIC, .device = device, .flags = flags, .nodes = graph->count, .bytes = bytes};
    for (struct node *node = graph->first; node; node = node->next)
        exec->calls += node->call != NULL;
    exec->list = exec->calls ? ht_new(exec->calls * sizeof *exec->list) : NULL;
    size_t n = 0;
    for (struct node *node = exec->list ? graph->first : NULL; node; node = node->next)
        if (node->call)
            exec->list[n++] = (struct call){node->call, node->data};
    exec->calls = n;
    for (size_t i = 0; i < graph->written.count; i++)
        note(&exec->written, graph->written.at[i]);
    for (struct node *node = graph->first; node; node = node->next)
        for (void **body = node->type == HT_NODE_CONDITIONAL ? node->data : NULL; body && *body; body++)
            ht_graph_part(exec, *body);
    *out = exec;
    return CUDA_OK;
}

int ht_graph_can_run(const void *exec) { return ht_is(exec, EXEC_MAGIC); }

void ht_graph_run(const void *handle) {
    const struct exec *exec = handle;
    for (size_t i = 0; i < exec->written.count; i++)
        ht_written(exec->written.at[i], 0);
    for (size_t i = 0; i < exec->calls; i++)
        exec->list[i].call(exec->list[i].data);
}

int ht_graph_writes(void *handle, uint64_t address) {
    if (!ht_is(handle, GRAPH_MAGIC) && !ht_is(handle, EXEC_MAGIC))
        return CUDA_INVALID_VALUE;
    if (ht_on_device((const void *)(uintptr_t)address))
        note(ht_is(handle, GRAPH_MAGIC) ? &((struct graph *)handle)->written : &((struct exec *)handle)->written, address);
    return CUDA_OK;
}

int ht_graph_part(void *handle, void *child) {
    struct graph *part = graph_of(child);
    for (size_t i = 0; part && i < part->written.count; i++)
        ht_graph_writes(handle, part->written.at[i]);
    return part ? CUDA_OK : CUDA_INVALID_VALUE;
}

int ht_graph_node_type(const void *node, int *type) {
    if (!ht_is(node, NODE_MAGIC) || !type)
        return CUDA_INVALID_VALUE;
    *type = ((const struct node *)node)->type;
    return CUDA_OK;
}

int ht_graph_exec_flags(const void *exec, unsigned long long *flags) {
    if (!ht_is(exec, EXEC_MAGIC))
        return CUDA_INVALID_VALUE;
    *flags = ((const struct exec *)exec)->flags;
    return CUDA_OK;
}

void *ht_graph_clone(void *handle) {
    struct graph *graph = graph_of(handle);
    void *copy = graph ? ht_graph_new() : NULL;
    for (struct node *node = copy ? graph->first : NULL; node; node = node->next)
        ht_graph_add(copy, node->type, node->call, node->data);
    if (copy) {
        ((struct graph *)copy)->inner = graph->inner;
        ht_graph_part(copy, graph);
    }
    return copy;
}

/* Takes on the graph's parameters. As on hardware, a graph with other nodes is refused. */
int ht_graph_update(void *handle, void *from) {
    struct exec *exec = handle;
    struct graph *graph = graph_of(from);
    if (!ht_is(exec, EXEC_MAGIC) || !graph)
        return CUDA_INVALID_VALUE;
    if (exec->nodes != graph->count)
        return CUDA_GRAPH_UPDATE_FAILED;
    return ht_graph_part(exec, graph);
}

int ht_graph_exec_delete(void *handle) {
    struct exec *exec = handle;
    if (!ht_is(exec, EXEC_MAGIC))
        return CUDA_INVALID_VALUE;
    ht_refund(exec->device, HT_KIND_GRAPH, exec->bytes);
    ht_drop(exec->list, exec->calls * sizeof *exec->list);
    ht_drop(exec->written.at, exec->written.room * sizeof *exec->written.at);
    ht_drop(exec, sizeof *exec);
    return CUDA_OK;
}

/* ---- the runtime's entry points */

HT_EXPORT int cudaGraphCreate(void **graph, unsigned flags) {
    (void)flags;
    *graph = ht_graph_new();
    return *graph ? CUDA_OK : ht_fail(CUDA_OUT_OF_MEMORY);
}
HT_EXPORT int cudaGraphDestroy(void *graph) { return ht_fail(ht_graph_delete(graph)); }
HT_EXPORT int cudaGraphGetNodes(void *graph, void **nodes, size_t *n) { return ht_fail(ht_graph_nodes(graph, nodes, n)); }
HT_EXPORT int cudaGraphGetRootNodes(void *graph, void **nodes, size_t *n) {
    size_t one = 1;
    int error = ht_graph_nodes(graph, nodes, nodes ? n : &one);
    if (!nodes)
        *n = one ? 1 : 0;
    return ht_fail(error);
}
static int no_edges(size_t *n) {
    *n = 0;
    return CUDA_OK;
}
HT_EXPORT int cudaGraphGetEdges(void *graph, void **from, void **to, size_t *n12, size_t *n13) {
    (void)graph, (void)from, (void)to;
    return no_edges(ht_cuda_version() < 13000 ? n12 : n13);
}
HT_EXPORT int cudaGraphGetEdges_v2(void *graph, void **from, void **to, void *data, size_t *n) {
    (void)graph, (void)from, (void)to, (void)data;
    return no_edges(n);
}
HT_EXPORT int cudaGraphNodeGetDependencies(void *node, void **deps, size_t *n12, size_t *n13) {
    (void)node, (void)deps;
    return no_edges(ht_cuda_version() < 13000 ? n12 : n13);
}
HT_EXPORT int cudaGraphNodeGetDependencies_v2(void *node, void **deps, void *edges, size_t *n) {
    (void)node, (void)deps, (void)edges;
    return no_edges(n);
}
HT_EXPORT int cudaGraphNodeGetDependentNodes(void *node, void **deps, size_t *n12, size_t *n13) {
    return cudaGraphNodeGetDependencies(node, deps, n12, n13);
}
HT_EXPORT int cudaGraphNodeGetType(void *node, int *type) { return ht_fail(ht_graph_node_type(node, type)); }
static int add_node(void **node, void *graph, int type) {
    *node = ht_graph_add(graph, type, NULL, NULL);
    return *node ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}
HT_EXPORT int cudaGraphAddNode(void **node, void *graph) { return add_node(node, graph, 0); }
HT_EXPORT int cudaGraphAddNode_v2(void **node, void *graph) { return add_node(node, graph, 0); }
HT_EXPORT int cudaGraphAddKernelNode(void **node, void *graph) { return add_node(node, graph, 0); }
HT_EXPORT int cudaGraphAddMemcpyNode(void **node, void *graph) { return add_node(node, graph, 1); }
HT_EXPORT int cudaGraphAddMemcpyNode1D(void **node, void *graph) { return add_node(node, graph, 1); }
HT_EXPORT int cudaGraphAddMemsetNode(void **node, void *graph) { return add_node(node, graph, 2); }
HT_EXPORT int cudaGraphAddHostNode(void **node, void *graph, void **deps, size_t n, const struct call *what) {
    (void)deps, (void)n;
    *node = what ? ht_graph_add(graph, 3, what->call, what->data) : NULL;
    return *node ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}
HT_EXPORT int cudaGraphAddChildGraphNode(void **node, void *graph) { return add_node(node, graph, 4); }
HT_EXPORT int cudaGraphAddEmptyNode(void **node, void *graph) { return add_node(node, graph, 5); }
HT_EXPORT int cudaGraphAddEventWaitNode(void **node, void *graph) { return add_node(node, graph, 6); }
HT_EXPORT int cudaGraphAddEventRecordNode(void **node, void *graph) { return add_node(node, graph, 7); }
HT_EXPORT int cudaGraphClone(void **out, void *graph) {
    *out = ht_graph_clone(graph);
    return *out ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE);
}
HT_EXPORT int cudaGraphConditionalHandleCreate(unsigned long long *handle) {
    static unsigned long long last;
    *handle = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return CUDA_OK;
}

/* Three forms: CUDA 11's with an error node and a text, 12's and 13's with flags. */
HT_EXPORT int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags) {
    return ht_fail(ht_graph_instantiate(exec, graph, flags));
}
HT_EXPORT int cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
    return ht_fail(ht_graph_instantiate(exec, graph, flags));
}
struct instantiate_params { unsigned long long flags; void *upload, *error_node; int result; };
HT_EXPORT int cudaGraphInstantiateWithParams(void **exec, void *graph, struct instantiate_params *params) {
    params->error_node = NULL;
    params->result = 0;
    return ht_fail(ht_graph_instantiate(exec, graph, params->flags));
}
HT_EXPORT int cudaGraphExecDestroy(void *exec) { return ht_fail(ht_graph_exec_delete(exec)); }
HT_EXPORT int cudaGraphExecGetFlags(void *exec, unsigned long long *flags) { return ht_fail(ht_graph_exec_flags(exec, flags)); }
HT_EXPORT int cudaGraphUpload(void *exec, void *stream) { (void)stream; return ht_is(exec, EXEC_MAGIC) ? CUDA_OK : ht_fail(CUDA_INVALID_VALUE); }
struct update_result { int result; void *error_node, *error_from; };
HT_EXPORT int cudaGraphExecUpdate(void *exec, void *graph, struct update_result *result) {
    int error = ht_graph_update(exec, graph);
    *result = (struct update_result){error == CUDA_GRAPH_UPDATE_FAILED ? 2 /* the topology changed */ : 0, NULL, NULL};
    return ht_fail(error);
}

/* ---- objects whose end is told to their owner */
struct user_object { HT_HANDLE; void (*destroy)(void *); void *data; long references; };
#define USER_MAGIC 0x757365726f626a74ull
HT_EXPORT int cudaUserObjectCreate(void **out, void *data, void (*destroy)(void *), unsigned references, unsigned flags) {
    struct user_object *object = ht_new(sizeof *object);
    (void)flags;
    if (!object)
        return ht_fail(CUDA_OUT_OF_MEMORY);
    *object = (struct user_object){USER_MAGIC, destroy, data, references};
    *out = object;
    return CUDA_OK;
}
HT_EXPORT int cudaUserObjectRetain(struct user_object *object, unsigned n) {
    if (!ht_is(object, USER_MAGIC))
        return ht_fail(CUDA_INVALID_VALUE);
    __atomic_fetch_add(&object->references, (long)n, __ATOMIC_RELAXED);
    return CUDA_OK;
}
HT_EXPORT int cudaUserObjectRelease(struct user_object *object, unsigned n) {
    if (!ht_is(object, USER_MAGIC))
        return ht_fail(CUDA_INVALID_VALUE);
    if (__atomic_sub_fetch(&object->references, (long)n, __ATOMIC_ACQ_REL) > 0)
        return CUDA_OK;
    object->destroy(object->data);
    ht_drop(object, sizeof *object);
    return CUDA_OK;
}
/* A graph lives until it is destroyed, and its objects until the process ends: none is called too early. */
HT_EXPORT int cudaGraphRetainUserObject(void *graph, struct user_object *object, unsigned n, unsigned flags) {
    const unsigned moves = 1;
    if (!graph_of(graph))
        return ht_fail(CUDA_INVALID_VALUE);
    return flags & moves ? CUDA_OK : cudaUserObjectRetain(object, n);
}
HT_EXPORT int cudaGraphReleaseUserObject(void *graph, struct user_object *object, unsigned n) {
    (void)graph;
    return cudaUserObjectRelease(object, n);
}
