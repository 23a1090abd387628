/* cudnn.h: what the files that answer for cuDNN share. Status values and attribute names are those of
 * cudnn_graph.h, which tests/abi compares. */
#ifndef HT_CUDNN_H
#define HT_CUDNN_H
#include "forward.h"

#define HT_FORWARD_LIBRARY "libcudnn.so.9"
#define HT_FORWARD_ABSENT ht_cudnn_absent

enum {
    CUDNN_SUCCESS = 0,
    CUDNN_NOT_INITIALIZED = 1001,
    CUDNN_BAD_PARAM = 2000,
    CUDNN_NOT_SUPPORTED = 3000,
    CUDNN_DEVICE_ALLOCATION_FAILED = 4004,
    CUDNN_EXECUTION_FAILED = 5000, /* .. 5999: all that need a device and find none */
};
enum { /* cudnnBackendDescriptorType_t, cudnnBackendAttributeType_t, cudnnBackendAttributeName_t */
    CUDNN_ENGINE = 2, CUDNN_ENGINEHEUR = 4, CUDNN_EXECUTION_PLAN = 5, CUDNN_DEVICEPROP = 38,
    CUDNN_TYPE_HANDLE = 0, CUDNN_TYPE_VOID_PTR = 6, CUDNN_TYPE_DESCRIPTOR = 15, CUDNN_TYPE_CHAR = 24,
    CUDNN_ENGINEHEUR_DEVICEPROP = 204, CUDNN_EXECUTION_PLAN_DEVICEPROP = 407, CUDNN_ENGINE_DEVICEPROP = 1307,
    CUDNN_VARIANT_PACK_DATA_POINTERS = 1001, CUDNN_VARIANT_PACK_WORKSPACE = 1003, CUDNN_DEVICEPROP_JSON = 2702,
};

int ht_cudnn_absent(void);

/* Of the visible device `ordinal`, made once: the real library's descriptor of its properties (cuDNN
 * 9.8 and newer; NULL before), and memory that begins as a handle of the real library does. */
void *ht_cudnn_properties(int ordinal);
#define HT_CUDNN_HANDLE_BYTES 8192
int ht_cudnn_disguise(int ordinal, void *handle);
int ht_cudnn_usable(void *handle); /* ours, and the real library can read it */

int cudnnBackendCreateDescriptor(int type, void **descriptor);
int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count, const void *values);
int cudnnBackendFinalize(void *descriptor);
int cudnnDropoutGetStatesSize(void *handle, size_t *bytes);
#endif
