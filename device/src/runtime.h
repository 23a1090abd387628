/* runtime.h: what the runtime's and the driver's entry points share: both are thin over these. All
 * give CUDA's error numbers, which are the same for both. */
#ifndef HT_RUNTIME_H
#define HT_RUNTIME_H
#include "abi.h"
#include "raw.h"

/* Remembers an error of the calling thread for cudaGetLastError; gives it back. */
int ht_fail(int error);
const char *ht_error_text(int error);

/* The current device's context, made at first use; each call that needs a device begins with it. */
#define HT_NEED_CONTEXT() \
    do { int error_ = ht_use(ht_device_current()); if (error_) return ht_fail(error_); } while (0)

/* ---- device.c */
int ht_attribute(int *value, int attribute, int ordinal);
int ht_uuid(int ordinal, unsigned char into[16]);
int ht_memory_info(int ordinal, uint64_t *free_bytes, uint64_t *total);
int ht_peer_set(int from, int to, int on); /* CUDA_OK, CUDA_PEER_ENABLED, CUDA_PEER_NOT_ENABLED */
int ht_peer_can(int *can, int from, int to);
int ht_peer_attribute(int *value, int attribute, int from, int to);
int ht_limit(size_t *value, int limit, const size_t *set);
/* The entry point of the driver by its name, versions included; NULL: no driver has it. */
void *ht_driver_symbol(const char *name);

/* ---- memory of the runtime */
int ht_malloc(uint64_t *address, uint64_t bytes);
int ht_copy_on(void *to, const void *from, size_t n, void *stream);
int ht_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, void *stream);
int ht_set_on(uint64_t to, const void *value, size_t width, size_t n, void *stream); /* n values of `width` bytes */
int ht_reaches(const struct ht_gpu *from, const struct ht_gpu *to); /* by address, over whichever link */
int ht_nvlink(const struct ht_gpu *gpu); /* by its name, or as the SPEC says: nvlink=0, 1 */
int ht_ipc_export(void *handle, uint64_t address);
int ht_ipc_import(uint64_t *address, const void *handle);
int ht_ipc_close(uint64_t address);
int ht_host_register(void *at, size_t bytes);
int ht_host_unregister(void *at);

/* ---- stream.c */
struct ht_stream;
struct ht_event;
struct instantiate_params;
struct update_result;
int ht_stream_new(void **stream, unsigned flags, int priority);
int ht_stream_delete(void *stream);
int ht_stream_flags(void *stream, unsigned *flags);
int ht_stream_priority(void *stream, int *priority);
uint64_t ht_stream_id(void *stream);
int ht_stream_sync(void *stream);
int ht_stream_query(void *stream);
int ht_stream_wait(void *stream, void *event);
int ht_event_new(void **event, unsigned flags);
int ht_event_delete(void *event);
int ht_event_record(void *event, void *stream);
int ht_event_query(void *event);
int ht_event_sync(void *event);
int ht_event_elapsed(float *ms, void *from, void *to);
int ht_device_sync(void);
enum { HT_CAPTURE_NONE, HT_CAPTURE_ACTIVE, HT_CAPTURE_INVALID };
int ht_capture_allows(void); /* whether a call that a capture forbids may be made now; if not, the capture is spoilt */
int ht_capture_begin(void *stream, void *graph, int mode);
int ht_capture_end(void *stream, void **graph);
int ht_capture_info(void *stream, int *status, uint64_t *id, void **graph, const void ***deps, size_t *n);
void ht_stream_at_sync(void (*call)(int ordinal)); /* what a synchronisation of a device calls */
typedef void (*ht_host_call)(void *);
int ht_stream_call(void *stream, ht_host_call call, void *data);

/* ---- image.c */
void ht_image_seen(const void *wrapper); /* a library registers its kernels */
/* The version (86 for 8.6) that a kernel of the library that holds `f` would run as on a device. */
int ht_image_version(const void *f, int major, int minor);

/* ---- graph.c */
void *ht_graph_new(void);
int ht_graph_delete(void *graph);
int ht_graph_nodes(void *graph, void **nodes, size_t *n);
int ht_graph_instantiate(void **exec, void *graph, unsigned long long flags);
int ht_graph_can_run(const void *exec); /* whether it is one */
void ht_graph_run(const void *exec);    /* the host's calls in it; there is nothing else to do */
int ht_graph_launch(void *exec, void *stream); /* launch.c */
int ht_graph_exec_delete(void *exec);
/* The runtime's forms, which the driver's are over. */
int cudaGraphConditionalHandleCreate(unsigned long long *handle);
int cudaGraphGetRootNodes(void *graph, void **nodes, size_t *n);
int cudaGraphInstantiateWithParams(void **exec, void *graph, struct instantiate_params *params);
int cudaGraphExecUpdate(void *exec, void *graph, struct update_result *result);
int cudaThreadExchangeStreamCaptureMode(int *mode);
void *ht_graph_clone(void *graph);
int ht_graph_update(void *exec, void *from);
int ht_graph_node_type(const void *node, int *type);
int ht_graph_exec_flags(const void *exec, unsigned long long *flags);
enum { HT_NODE_CONDITIONAL = 13 }; /* a node's type; its data are its bodies, which NULL ends */
struct ht_written_list { uint64_t *at; size_t count, room, next; };
int ht_graph_writes(void *graph_or_exec, uint64_t address); /* a launch writes there */
int ht_graph_part(void *graph_or_exec, void *child);        /* a launch writes where the child does */
void ht_graph_child(void *graph, void *child);              /* a node of it is the child's nodes */
void *ht_graph_add(void *graph, int node_type, ht_host_call call, void *data); /* call NULL: nothing for the host */
#endif
