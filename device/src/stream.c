/* stream.c: streams, events and capture. Work takes no time, so all of it is done when it is given
 * (under HIGHTIDE_DEVICE_LAG=1 when the host waits for any of it: a GPU that is always behind).
 * What remains is state: which streams are being captured into which graph, when events were recorded.
 *
 *     begin ─▶ stream captures ──record event──▶ event carries the capture ──wait──▶ other stream captures too
 *                    │ end on the first stream
 *                    ▼
 *                  graph, with a node for each piece of work (graph.c)
 *
 * Times between events count events: they are the same in every run, and measure nothing of a GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define STREAM_MAGIC 0x7374726561686974ull
#define EVENT_MAGIC 0x6576656e74686974ull
enum { GLOBAL_MODE, THREAD_MODE, RELAXED_MODE };
enum { EVENT_NO_TIMING = 2 };

struct ht_capture { uint64_t id; void *graph, *origin; int status, mode; unsigned long writes; };
struct ht_stream {
    HT_HANDLE;
    int device, priority;
    unsigned flags;
    uint64_t id;
    struct ht_capture *capture;
    const void *last; /* the node that the next one follows */
    uint64_t dangling; /* changes with each piece of captured work; 0: another stream waited for all of it */
    struct ht_stream *next;
};
struct ht_event {
    HT_HANDLE;
    int device, recorded, lags;
    unsigned flags;
    uint64_t tick; /* how many timed events had been recorded by then */
    uint64_t order; /* where it lags: how many such events had been recorded by then, with it */
    uint64_t capture_id;
    struct ht_capture *capture; /* valid while its id is that of a running capture */
    struct ht_stream *stream;   /* that it was recorded in, likewise */
    uint64_t dangling;          /* of the stream at that moment */
};

pthread_mutex_t ht_streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ht_stream *streams;
static uint64_t ticks;
static uint64_t last_stream = 2, last_capture, last_work;
static int capturing_streams, global_captures;
static __thread int thread_mode = GLOBAL_MODE, thread_captures;

static int is_default(const void *stream) { return (uintptr_t)stream <= 2; }
static struct ht_stream *stream_of(void *stream) {
    return !is_default(stream) && ht_is(stream, STREAM_MAGIC) ? stream : NULL;
}
static int bad_stream(void *stream) { return !is_default(stream) && !ht_is(stream, STREAM_MAGIC); }

int ht_stream_new(void **out, unsigned flags, int priority) {
    struct ht_stream *stream = ht_new(sizeof *stream);
    if (!out || !stream)
        return out ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    int greatest = -5;
    stream->magic = STREAM_MAGIC;
    stream->device = ht_device_current();
    stream->priority = priority > 0 ? 0 : priority < greatest ? greatest : priority;
    stream->flags = flags;
    pthread_mutex_lock(&ht_streams_lock);
    stream->id = ++last_stream;
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&ht_streams_lock);
    *out = stream;
    return CUDA_OK;
}

int ht_stream_delete(void *handle) {
    struct ht_stream *stream = stream_of(handle);
    if (!stream)
        return CUDA_INVALID_HANDLE;
    pthread_mutex_lock(&ht_streams_lock);
    for (struct ht_stream **link = &streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    if (stream->capture)
        __atomic_fetch_sub(&capturing_streams, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ht_streams_lock);
    ht_drop(stream, sizeof *stream);
    return CUDA_OK;
}

int ht_stream_flags(void *stream, unsigned *flags) {
    *flags = stream_of(stream) ? stream_of(stream)->flags : 0;
    return bad_stream(stream) ? CUDA_INVALID_HANDLE : CUDA_OK;
}
int ht_stream_priority(void *stream, int *priority) {
    *priority = stream_of(stream) ? stream_of(stream)->priority : 0;
    return bad_stream(stream) ? CUDA_INVALID_HANDLE : CUDA_OK;
}
uint64_t ht_stream_id(void *stream) { return stream_of(stream) ? stream_of(stream)->id : (uintptr_t)stream; }
int ht_stream_device(void *stream) { return stream_of(stream) ? stream_of(stream)->device : ht_device_current(); }

static struct ht_capture *capture_of(void *handle) {
    if (!__atomic_load_n(&capturing_streams, __ATOMIC_ACQUIRE))
        return NULL;
    struct ht_stream *stream = stream_of(handle);
    return stream ? stream->capture : NULL;
}

static int invalidate(struct ht_capture *capture) {
    capture->status = HT_CAPTURE_INVALID;
    return CUDA_CAPTURE_UNSUPPORTED;
}

static uint64_t recorded, waited; /* events so far, and of those the ones before the host's last wait */

/* Whether events made now are not done before the host waits. */
static int lags(void) {
    const char *text = getenv("HIGHTIDE_DEVICE_LAG");
    return text && *text && *text != '0';
}

/* The host waits: all that was given before is done. A wait for one stream may find others further behind, which is not
 * told apart. */
static void host_waits(void) {
    if (__atomic_load_n(&recorded, __ATOMIC_RELAXED))
        __atomic_store_n(&waited, __atomic_load_n(&recorded, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

static void (*at_sync)(int ordinal);
void ht_stream_at_sync(void (*call)(int ordinal)) { __atomic_store_n(&at_sync, call, __ATOMIC_RELEASE); }

static void synchronised(int ordinal) {
    void (*call)(int) = __atomic_load_n(&at_sync, __ATOMIC_ACQUIRE);
    if (call)
        call(ordinal);
}

/* Waiting for a stream that is being captured is an error, and ends the capture's usefulness. */
int ht_stream_sync(void *stream) {
    if (bad_stream(stream))
        return CUDA_INVALID_HANDLE;
    struct ht_capture *capture = capture_of(stream);
    if (capture)
        return invalidate(capture);
    host_waits();
    synchronised(ht_stream_device(stream));
    return CUDA_OK;
}
int ht_stream_query(void *stream) {
    if (bad_stream(stream))
        return CUDA_INVALID_HANDLE;
    struct ht_capture *capture = capture_of(stream);
    return capture ? invalidate(capture) : CUDA_OK;
}

/* Calls that could make a capture depend on other work: not while one runs, by the thread's mode. */
int ht_capture_allows(void) {
    if (!__atomic_load_n(&capturing_streams, __ATOMIC_ACQUIRE) || thread_mode == RELAXED_MODE)
        return 1;
    if (!(thread_mode == GLOBAL_MODE && __atomic_load_n(&global_captures, __ATOMIC_RELAXED)) && !thread_captures)
        return 1;
    pthread_mutex_lock(&ht_streams_lock);
    for (struct ht_stream *stream = streams; stream; stream = stream->next)
        if (stream->capture && stream->capture->mode != RELAXED_MODE)
            invalidate(stream->capture);
    pthread_mutex_unlock(&ht_streams_lock);
    return 0;
}

int ht_device_sync(void) {
    if (!ht_capture_allows())
        return CUDA_CAPTURE_UNSUPPORTED;
    host_waits();
    synchronised(ht_device_current());
    return CUDA_OK;
}

static int work(void *handle, int node_type, ht_host_call call, void *data) {
    struct ht_capture *capture = capture_of(handle);
    if (!capture)
        return 0;
    pthread_mutex_lock(&ht_streams_lock);
    if (capture->status == HT_CAPTURE_ACTIVE) {
        stream_of(handle)->last = ht_graph_add(capture->graph, node_type, call, data);
        stream_of(handle)->dangling = ++last_work;
    }
    pthread_mutex_unlock(&ht_streams_lock);
    return 1;
}
int ht_stream_work(void *stream, int node_type) { return work(stream, node_type, NULL, NULL); }

/* Work is done when it is given, so a host function runs at once; captured, with each launch of the graph. */
int ht_stream_call(void *stream, ht_host_call call, void *data) {
    const int host_node = 3;
    if (bad_stream(stream) || !call)
        return call ? CUDA_INVALID_HANDLE : CUDA_INVALID_VALUE;
    if (!work(stream, host_node, call, data))
        call(data);
    return CUDA_OK;
}

int ht_capturing(void *stream, uint64_t *id) {
    struct ht_capture *capture = capture_of(stream);
    if (id)
        *id = capture ? capture->id : 0;
    return capture != NULL;
}

/* ---- capture */

static void join(struct ht_stream *stream, struct ht_capture *capture) {
    stream->capture = capture;
    __atomic_fetch_add(&capturing_streams, 1, __ATOMIC_RELEASE);
}

int ht_capture_begin(void *handle, void *graph, int mode) {
    struct ht_stream *stream = stream_of(handle);
    if (!stream)
        return is_default(handle) ? CUDA_CAPTURE_UNSUPPORTED : CUDA_INVALID_HANDLE;
    struct ht_capture *capture = stream->capture ? NULL : ht_new(sizeof *capture);
    if (!capture)
        return CUDA_ILLEGAL_STATE;
    pthread_mutex_lock(&ht_streams_lock);
    *capture = (struct ht_capture){++last_capture, graph ? graph : ht_graph_new(), stream, HT_CAPTURE_ACTIVE, mode, ht_writes()};
    join(stream, capture);
    __atomic_fetch_add(&global_captures, mode == GLOBAL_MODE, __ATOMIC_RELAXED);
    thread_captures += mode != RELAXED_MODE;
    pthread_mutex_unlock(&ht_streams_lock);
    return CUDA_OK;
}

int ht_capture_end(void *handle, void **graph) {
    struct ht_stream *stream = stream_of(handle);
    struct ht_capture *capture = stream ? stream->capture : NULL;
    *graph = NULL;
    if (!capture || capture->origin != stream)
        return stream ? (capture ? CUDA_CAPTURE_UNMATCHED : CUDA_ILLEGAL_STATE) : CUDA_INVALID_HANDLE;
    pthread_mutex_lock(&ht_streams_lock);
    int joined = 1;
    for (struct ht_stream *other = streams; other; other = other->next)
        if (other->capture == capture) {
            joined &= other == stream || !other->dangling;
            other->capture = NULL;
            other->last = NULL;
            other->dangling = 0;
            __atomic_fetch_sub(&capturing_streams, 1, __ATOMIC_RELEASE);
        }
    __atomic_fetch_sub(&global_captures, capture->mode == GLOBAL_MODE, __ATOMIC_RELAXED);
    if (thread_captures > 0 && capture->mode != RELAXED_MODE)
        thread_captures--;
    int valid = capture->status == HT_CAPTURE_ACTIVE;
    size_t nodes = 0;
    /* What most libraries did is no node of ours. Whoever finds none at all takes the work for lost, as XLA does. */
    if (ht_writes() != capture->writes && ht_graph_nodes(capture->graph, NULL, &nodes) == CUDA_OK && !nodes)
        ht_graph_add(capture->graph, 0, NULL, NULL);
    if (valid && joined)
        *graph = capture->graph;
    else
        ht_graph_delete(capture->graph);
    ht_drop(capture, sizeof *capture);
    pthread_mutex_unlock(&ht_streams_lock);
    return !valid ? CUDA_CAPTURE_INVALIDATED : joined ? CUDA_OK : CUDA_CAPTURE_UNJOINED;
}

int ht_capture_info(void *handle, int *status, uint64_t *id, void **graph, const void ***deps, size_t *n) {
    if (bad_stream(handle))
        return CUDA_INVALID_HANDLE;
    struct ht_stream *stream = stream_of(handle);
    struct ht_capture *capture = capture_of(handle);
    if (status)
        *status = capture ? capture->status : HT_CAPTURE_NONE;
    if (id)
        *id = capture ? capture->id : 0;
    if (graph)
        *graph = capture ? capture->graph : NULL;
    if (deps)
        *deps = capture && stream->last ? &stream->last : NULL;
    if (n)
        *n = capture && stream->last ? 1 : 0;
    return CUDA_OK;
}

/* ---- events */

static struct ht_event *event_of(void *event) { return ht_is(event, EVENT_MAGIC) ? event : NULL; }

int ht_event_new(void **out, unsigned flags) {
    struct ht_event *event = ht_new(sizeof *event);
    if (!out || !event)
        return out ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    *event = (struct ht_event){.magic = EVENT_MAGIC, .device = ht_device_current(), .flags = flags, .lags = lags()};
    *out = event;
    return CUDA_OK;
}
int ht_event_delete(void *event) {
    if (!event_of(event))
        return CUDA_INVALID_HANDLE;
    ht_drop(event, sizeof(struct ht_event));
    return CUDA_OK;
}

int ht_event_record(void *handle, void *stream) {
    struct ht_event *event = event_of(handle);
    if (!event || bad_stream(stream))
        return CUDA_INVALID_HANDLE;
    struct ht_capture *capture = capture_of(stream);
    event->capture = capture;
    event->capture_id = capture ? capture->id : 0;
    event->stream = capture ? stream : NULL;
    event->dangling = capture ? event->stream->dangling : 0;
    event->tick = event->flags & EVENT_NO_TIMING ? 0 : __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
    event->order = event->lags ? __atomic_add_fetch(&recorded, 1, __ATOMIC_ACQ_REL) : 0;
    event->recorded = 1;
    return CUDA_OK;
}

/* The capture that the event was recorded in, if it still runs. */
static struct ht_capture *running(const struct ht_event *event) {
    if (!event->capture_id)
        return NULL;
    for (struct ht_stream *stream = streams; stream; stream = stream->next)
        if (stream->capture == event->capture && stream->capture->id == event->capture_id)
            return event->capture;
    return NULL;
}

int ht_event_query(void *event) {
    if (!event_of(event))
        return CUDA_INVALID_HANDLE;
    if (event_of(event)->capture_id)
        return CUDA_CAPTURED_EVENT;
    return event_of(event)->order > __atomic_load_n(&waited, __ATOMIC_ACQUIRE) ? CUDA_NOT_READY : CUDA_OK;
}
int ht_event_sync(void *event) {
    uint64_t order = event_of(event) ? event_of(event)->order : 0, before = __atomic_load_n(&waited, __ATOMIC_ACQUIRE);
    while (order > before && !__atomic_compare_exchange_n(&waited, &before, order, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return ht_event_query(event);
}

/* Time is not imagined, and the host's would choose: autotuners that time kernels would run them ever another number of
 * times and take another one each run. So each timed event is a millisecond after the one recorded before it. */
int ht_event_elapsed(float *ms, void *from, void *to) {
    struct ht_event *a = event_of(from), *b = event_of(to);
    if (!ms)
        return CUDA_INVALID_VALUE;
    if (!a || !b || !a->recorded || !b->recorded || (a->flags | b->flags) & EVENT_NO_TIMING)
        return CUDA_INVALID_HANDLE;
    *ms = (float)((double)b->tick - (double)a->tick);
    return CUDA_OK;
}

/* The stream goes on after all that another one did until the event. If that is all of it, its work no longer
 * hangs in the air, but the waiting stream's does. */
static void joined_by(struct ht_stream *stream, const struct ht_event *event) {
    struct ht_stream *other = streams;
    while (other && other != event->stream)
        other = other->next;
    if (!other || !other->dangling || other->capture != stream->capture)
        return;
    if (other->dangling == event->dangling)
        other->dangling = 0;
    if (other != stream->capture->origin)
        stream->dangling = ++last_work;
}

int ht_stream_wait(void *handle, void *event) {
    struct ht_stream *stream = stream_of(handle);
    if (bad_stream(handle) || !event_of(event))
        return CUDA_INVALID_HANDLE;
    if (!event_of(event)->capture_id)
        return CUDA_OK;
    pthread_mutex_lock(&ht_streams_lock);
    struct ht_capture *capture = running(event_of(event));
    int joins = capture && stream && !stream->capture;
    if (joins)
        join(stream, capture);
    if (capture && stream && stream->capture == capture && stream != event_of(event)->stream)
        joined_by(stream, event_of(event));
    pthread_mutex_unlock(&ht_streams_lock);
    return capture && !stream ? CUDA_CAPTURE_IMPLICIT : CUDA_OK;
}

/* ---- the runtime's entry points; every stream call makes the context */

HT_EXPORT int cudaStreamCreate(void **s) { HT_NEED_CONTEXT(); return ht_fail(ht_stream_new(s, 0, 0)); }
HT_EXPORT int cudaStreamCreateWithFlags(void **s, unsigned flags) { HT_NEED_CONTEXT(); return ht_fail(ht_stream_new(s, flags, 0)); }
HT_EXPORT int cudaStreamCreateWithPriority(void **s, unsigned flags, int priority) {
    HT_NEED_CONTEXT();
    return ht_fail(ht_stream_new(s, flags, priority));
}
HT_EXPORT int cudaStreamDestroy(void *s) { return ht_fail(ht_stream_delete(s)); }
HT_EXPORT int cudaStreamGetFlags(void *s, unsigned *flags) { return ht_fail(ht_stream_flags(s, flags)); }
HT_EXPORT int cudaStreamGetPriority(void *s, int *priority) { return ht_fail(ht_stream_priority(s, priority)); }
HT_EXPORT int cudaStreamGetId(void *s, unsigned long long *id) { *id = ht_stream_id(s); return CUDA_OK; }
HT_EXPORT int cudaStreamGetDevice(void *s, int *device) { *device = ht_stream_device(s); return CUDA_OK; }
HT_EXPORT int cudaStreamSynchronize(void *s) { HT_NEED_CONTEXT(); return ht_fail(ht_stream_sync(s)); }
HT_EXPORT int cudaStreamQuery(void *s) { HT_NEED_CONTEXT(); return ht_fail(ht_stream_query(s)); }
HT_EXPORT int cudaStreamWaitEvent(void *s, void *event, unsigned flags) { (void)flags; return ht_fail(ht_stream_wait(s, event)); }
HT_EXPORT int cudaStreamCopyAttributes(void *to, void *from) { (void)to, (void)from; return CUDA_OK; }
HT_EXPORT int cudaStreamSetAttribute(void *s, int attribute, const void *value) { (void)s, (void)attribute, (void)value; return CUDA_OK; }
HT_EXPORT int cudaStreamAttachMemAsync(void *s, void *at, size_t n, unsigned flags) { (void)s, (void)at, (void)n, (void)flags; return CUDA_OK; }

HT_EXPORT int cudaStreamIsCapturing(void *s, int *status) { return ht_fail(ht_capture_info(s, status, NULL, NULL, NULL, NULL)); }
HT_EXPORT int cudaStreamGetCaptureInfo_v2(void *s, int *status, uint64_t *id, void **graph, const void ***deps, size_t *n) {
    return ht_fail(ht_capture_info(s, status, id, graph, deps, n));
}
HT_EXPORT int cudaStreamGetCaptureInfo_v3(void *s, int *status, uint64_t *id, void **graph, const void ***deps, const void **edges, size_t *n) {
    if (edges)
        *edges = NULL;
    return ht_fail(ht_capture_info(s, status, id, graph, deps, n));
}
/* Three arguments until CUDA 12, all of _v3's since 13. */
HT_EXPORT int cudaStreamGetCaptureInfo(void *s, int *status, uint64_t *id, void **graph, const void ***deps, const void **edges, size_t *n) {
    if (ht_cuda_version() < 13000)
        return ht_fail(ht_capture_info(s, status, id, NULL, NULL, NULL));
    return cudaStreamGetCaptureInfo_v3(s, status, id, graph, deps, edges, n);
}
HT_EXPORT int cudaStreamBeginCapture(void *s, int mode) { HT_NEED_CONTEXT(); return ht_fail(ht_capture_begin(s, NULL, mode)); }
HT_EXPORT int cudaStreamBeginCaptureToGraph(void *s, void *graph, const void *deps, const void *edges, size_t n, int mode) {
    (void)deps, (void)edges, (void)n;
    return ht_fail(ht_capture_begin(s, graph, mode));
}
HT_EXPORT int cudaStreamEndCapture(void *s, void **graph) { return ht_fail(ht_capture_end(s, graph)); }
HT_EXPORT int cudaStreamUpdateCaptureDependencies(void *s) { return bad_stream(s) ? ht_fail(CUDA_INVALID_HANDLE) : CUDA_OK; }
HT_EXPORT int cudaStreamUpdateCaptureDependencies_v2(void *s) { return cudaStreamUpdateCaptureDependencies(s); }
HT_EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode) {
    int before = thread_mode;
    if (*mode < GLOBAL_MODE || *mode > RELAXED_MODE)
        return ht_fail(CUDA_INVALID_VALUE);
    thread_mode = *mode;
    *mode = before;
    return CUDA_OK;
}

HT_EXPORT int cudaEventCreate(void **event) { HT_NEED_CONTEXT(); return ht_fail(ht_event_new(event, 0)); }
HT_EXPORT int cudaEventCreateWithFlags(void **event, unsigned flags) { HT_NEED_CONTEXT(); return ht_fail(ht_event_new(event, flags)); }
HT_EXPORT int cudaEventDestroy(void *event) { return ht_fail(ht_event_delete(event)); }
HT_EXPORT int cudaEventRecord(void *event, void *s) { return ht_fail(ht_event_record(event, s)); }
HT_EXPORT int cudaEventRecordWithFlags(void *event, void *s, unsigned flags) { (void)flags; return ht_fail(ht_event_record(event, s)); }
HT_EXPORT int cudaEventQuery(void *event) { return ht_fail(ht_event_query(event)); }
HT_EXPORT int cudaEventSynchronize(void *event) { return ht_fail(ht_event_sync(event)); }
HT_EXPORT int cudaEventElapsedTime(float *ms, void *from, void *to) { return ht_fail(ht_event_elapsed(ms, from, to)); }
HT_EXPORT int cudaEventElapsedTime_v2(float *ms, void *from, void *to) { return ht_fail(ht_event_elapsed(ms, from, to)); }

HT_EXPORT int cudaLaunchHostFunc(void *s, ht_host_call call, void *data) { return ht_fail(ht_stream_call(s, call, data)); }
HT_EXPORT int cudaStreamAddCallback(void *s, void (*function)(void *, int, void *), void *data, unsigned flags) {
    if (capture_of(s)) /* of a form that graphs do not take */
        return ht_fail(invalidate(capture_of(s)));
    function(s, CUDA_OK, data);
    return flags ? ht_fail(CUDA_INVALID_VALUE) : CUDA_OK;
}
