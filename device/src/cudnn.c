/* cudnn.c: handles, and the graph API forwarded to the real cuDNN.
 *
 *     engine, heuristics, plan ── + the imaginary GPU's properties ──▶ real library: true ranking,
 *                                                                        true workspaces
 *     anything that names a handle                                  ──▶ kept here (9.8 and newer),
 *                                                                        or the handle's disguise
 *     execute                                                       ──▶ nothing runs
 *
 * The real library calls itself through the same names. Such a call finds `inside` set and goes straight
 * on. cuDNN compiles some kernels while it finalizes a plan (attention): our driver takes them in. */
#include <string.h>

#include "cudnn.h"

#define MAGIC 0x6e6e64756373ull
struct cudnn_handle {
    char disguise[HT_CUDNN_HANDLE_BYTES - 64]; /* begins as a handle of the real library */
    HT_HANDLE;
    int device, disguised;
    void *stream;
};
_Static_assert(sizeof(struct cudnn_handle) <= HT_CUDNN_HANDLE_BYTES, "handle");

static __thread int inside;

static struct cudnn_handle *ours(void *handle) {
    struct cudnn_handle *h = handle;
    return h && (uintptr_t)h % 8 == 0 && h->magic == MAGIC ? h : NULL;
}

int ht_cudnn_usable(void *handle) {
    struct cudnn_handle *h = ours(handle);
    return h && h->disguised;
}

HT_EXPORT int cudnnCreate(void **handle) {
    if (!handle)
        return CUDNN_BAD_PARAM;
    int device = ht_device_current();
    if (!ht_context(device) || !ht_charge(device, HT_KIND_CUDNN, ht_figure(device, "cudnn_bytes", 0)))
        return CUDNN_DEVICE_ALLOCATION_FAILED;
    struct cudnn_handle *h = ht_new(HT_CUDNN_HANDLE_BYTES);
    if (!h)
        return CUDNN_NOT_INITIALIZED;
    h->disguised = ht_cudnn_disguise(device, h);
    h->device = device;
    h->magic = MAGIC;
    *handle = h;
    return CUDNN_SUCCESS;
}

HT_EXPORT int cudnnDestroy(void *handle) {
    struct cudnn_handle *h = ours(handle);
    if (!h)
        return CUDNN_BAD_PARAM;
    ht_refund(h->device, HT_KIND_CUDNN, ht_figure(h->device, "cudnn_bytes", 0));
    h->magic = 0;
    ht_drop(h, HT_CUDNN_HANDLE_BYTES);
    return CUDNN_SUCCESS;
}

HT_EXPORT int cudnnSetStream(void *handle, void *stream) {
    struct cudnn_handle *h = ours(handle);
    if (!h)
        return CUDNN_BAD_PARAM;
    h->stream = stream;
    return CUDNN_SUCCESS;
}

HT_EXPORT int cudnnGetStream(void *handle, void **stream) {
    struct cudnn_handle *h = ours(handle);
    if (!h || !stream)
        return CUDNN_BAD_PARAM;
    *stream = h->stream;
    return CUDNN_SUCCESS;
}

/* ---- the graph API */

static void enter(void) {
    if (!inside++)
        ht_forward_enter();
}
static void leave(void) {
    if (!--inside)
        ht_forward_leave();
}

static int takes_properties(int type) {
    return type == CUDNN_ENGINE         ? CUDNN_ENGINE_DEVICEPROP
           : type == CUDNN_ENGINEHEUR   ? CUDNN_ENGINEHEUR_DEVICEPROP
           : type == CUDNN_EXECUTION_PLAN ? CUDNN_EXECUTION_PLAN_DEVICEPROP
                                          : 0;
}

HT_EXPORT int cudnnBackendCreateDescriptor(int type, void **descriptor) {
    __typeof__(&cudnnBackendCreateDescriptor) real = HT_REAL(cudnnBackendCreateDescriptor);
    if (!real)
        return CUDNN_NOT_INITIALIZED;
    int name = inside ? 0 : takes_properties(type);
    void *properties = name ? ht_cudnn_properties(ht_device_current()) : NULL;
    enter();
    int status = real(type, descriptor);
    if (!status && properties)
        status = HT_REAL(cudnnBackendSetAttribute)(*descriptor, name, CUDNN_TYPE_DESCRIPTOR, 1, &properties);
    leave();
    return status;
}

/* What a plan will write is among these addresses; which of them are only read, the pack does not say. */
static void may_be_written(int64_t count, const void *values) {
    for (int64_t i = 0; i < count; i++) {
        struct ht_place place;
        uint64_t address = ((const uint64_t *)values)[i];
        if (ht_place(address, &place) && place.device >= 0)
            ht_written(address, 1);
    }
}

HT_EXPORT int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count, const void *values) {
    __typeof__(&cudnnBackendSetAttribute) real = HT_REAL(cudnnBackendSetAttribute);
    if (!real)
        return CUDNN_NOT_INITIALIZED;
    if (!inside && type == CUDNN_TYPE_HANDLE && count == 1 && values) {
        void *handle = *(void *const *)values;
        if (ours(handle) && (ht_cudnn_properties(ht_device_current()) || !ht_cudnn_usable(handle)))
            return CUDNN_SUCCESS;
    }
    if (!inside && name == CUDNN_VARIANT_PACK_DATA_POINTERS && type == CUDNN_TYPE_VOID_PTR && values)
        may_be_written(count, values);
    enter();
    int status = real(descriptor, name, type, count, values);
    leave();
    return status;
}

HT_EXPORT int cudnnBackendFinalize(void *descriptor) {
    __typeof__(&cudnnBackendFinalize) real = HT_REAL(cudnnBackendFinalize);
    if (!real)
        return CUDNN_NOT_INITIALIZED;
    enter();
    int status = real(descriptor);
    leave();
    return status;
}

HT_EXPORT int cudnnBackendExecute(void *handle, void *plan, void *pack) {
    (void)plan, (void)pack;
    return ours(handle) ? CUDNN_SUCCESS : CUDNN_BAD_PARAM;
}

HT_EXPORT int cudnnBackendPopulateCudaGraph(void *handle, void *plan, void *pack, void *graph) {
    (void)graph;
    HT_COMMAND();
    return cudnnBackendExecute(handle, plan, pack);
}

HT_EXPORT int cudnnBackendUpdateCudaGraph(void *handle, void *plan, void *pack, void *graph) {
    (void)graph;
    HT_COMMAND();
    return cudnnBackendExecute(handle, plan, pack);
}

/* Whether kernels of this cuDNN ran into trouble: none ran. */
HT_EXPORT int cudnnQueryRuntimeError(void *handle, int *status, int mode, void *tag) {
    (void)mode, (void)tag;
    if (!ours(handle) || !status)
        return CUDNN_BAD_PARAM;
    *status = CUDNN_SUCCESS;
    return CUDNN_SUCCESS;
}
