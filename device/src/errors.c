/* errors.c: the last error of each thread, and CUDA's names and words for errors: frameworks print them. */
#include "runtime.h"

static __thread int last;

/* Names in the runtime and in the driver, which lacks some, and the text. */
static const struct { int code; const char *runtime, *driver, *text; } errors[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {9, "cudaErrorInvalidConfiguration", NULL, "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", NULL, "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", NULL, "invalid device symbol"},
    {35, "cudaErrorInsufficientDriver", NULL, "CUDA driver version is insufficient for CUDA runtime version"},
    {98, "cudaErrorInvalidDeviceFunction", NULL, "invalid device function"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {217, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {301, "cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
    {904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static unsigned index_of(int code) {
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return i;
    return sizeof errors / sizeof *errors;
}
static int known(unsigned i) { return i < sizeof errors / sizeof *errors; }

int ht_fail(int error) {
    if (error)
        last = error;
    return error;
}
const char *ht_error_text(int error) {
    unsigned i = index_of(error);
    return known(i) ? errors[i].text : "unrecognized error code";
}

HT_EXPORT int cudaGetLastError(void) {
    int error = last;
    last = 0;
    return error;
}
HT_EXPORT int cudaPeekAtLastError(void) { return last; }
HT_EXPORT const char *cudaGetErrorString(int error) { return ht_error_text(error); }
HT_EXPORT const char *cudaGetErrorName(int error) {
    unsigned i = index_of(error);
    return known(i) ? errors[i].runtime : "unrecognized error code";
}

HT_EXPORT int cuGetErrorString(int error, const char **text) {
    unsigned i = index_of(error);
    *text = known(i) ? errors[i].text : NULL;
    return known(i) ? CUDA_OK : CUDA_INVALID_VALUE;
}
HT_EXPORT int cuGetErrorName(int error, const char **name) {
    unsigned i = index_of(error);
    *name = known(i) ? errors[i].driver : NULL;
    return *name ? CUDA_OK : CUDA_INVALID_VALUE;
}
