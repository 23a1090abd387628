/* cuda.h: what the C tests call, declared as CUDA declares it (tests/abi.py compares ours with the headers). */
#ifndef HT_TEST_CUDA_H
#define HT_TEST_CUDA_H
#include "../../common/check.h"
#include "../src/abi.h"
#include "../src/core.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TWO_MIB (2 * MIB)

int cudaSetDevice(int);
int cudaGetDevice(int *);
int cudaGetDeviceCount(int *);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaMemGetInfo(size_t *, size_t *);
int cudaMalloc(uint64_t *, size_t);
int cudaMallocPitch(uint64_t *, size_t *, size_t, size_t);
int cudaMallocManaged(uint64_t *, size_t, unsigned);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemset(uint64_t, int, size_t);
int cudaHostAlloc(uint64_t *, size_t, unsigned);
int cudaFreeHost(void *);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaPointerGetAttributes(struct cuda_pointer_attributes_13 *, const void *);
int cudaLaunchKernel(const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t, void *);

int cudaMallocAsync(uint64_t *, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaDeviceGetDefaultMemPool(void **, int);
int cudaMemPoolCreate(void **, const struct cuda_pool_props *);
int cudaMemPoolDestroy(void *);
int cudaMemPoolSetAttribute(void *, int, void *);
int cudaMemPoolGetAttribute(void *, int, void *);
int cudaMemPoolTrimTo(void *, size_t);
int cudaMallocFromPoolAsync(uint64_t *, size_t, void *, void *);

int cuMemGetAllocationGranularity(size_t *, const struct cu_alloc_prop *, int);
int cuMemAddressReserve(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
int cuMemAddressFree(uint64_t, size_t);
int cuMemCreate(uint64_t *, size_t, const struct cu_alloc_prop *, unsigned long long);
int cuMemRelease(uint64_t);
int cuMemMap(uint64_t, size_t, size_t, uint64_t, unsigned long long);
int cuMemUnmap(uint64_t, size_t);
int cuMemSetAccess(uint64_t, size_t, const struct cuda_access *, size_t);
int cuMemRetainAllocationHandle(uint64_t *, uint64_t);
int cuMemExportToShareableHandle(void *, uint64_t, int, unsigned long long);
int cuMemImportFromShareableHandle(uint64_t *, void *, int);
int cuMemGetAddressRange_v2(uint64_t *, size_t *, uint64_t);

int cudaStreamCreateWithFlags(void **, unsigned);
int cudaStreamDestroy(void *);
int cudaStreamSynchronize(void *);
int cudaStreamQuery(void *);
int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaStreamIsCapturing(void *, int *);
int cudaStreamGetCaptureInfo_v2(void *, int *, uint64_t *, void **, const void ***, size_t *);
int cudaThreadExchangeStreamCaptureMode(int *);
int cudaEventCreateWithFlags(void **, unsigned);
int cudaEventDestroy(void *);
int cudaEventRecord(void *, void *);
int cudaEventQuery(void *);
int cudaEventSynchronize(void *);
int cudaEventElapsedTime(float *, void *, void *);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaGraphGetNodes(void *, void **, size_t *);
int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, void *);
int cudaGraphDestroy(void *);
int cudaGraphExecDestroy(void *);

struct test_ipc { char bytes[64]; };
int cudaIpcGetMemHandle(struct test_ipc *, void *);
int cudaIpcOpenMemHandle(uint64_t *, struct test_ipc, unsigned);
int cudaIpcCloseMemHandle(void *);
int cudaDeviceCanAccessPeer(int *, int, int);
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaDeviceDisablePeerAccess(int);

/* The test's own look into the device table, as the engine has it: the current process's part and the device. */
const struct ht_gpu_header *ht_table(void);
static inline const struct ht_gpu *gpu_of(int index) { return (const struct ht_gpu *)(ht_table() + 1) + index; }
static inline uint64_t own(int index, enum ht_gpu_kind kind) { return ht_slot()->devices[index].used[kind]; }

#define OK(call) do { int got_ = (call); if (got_) CHECK(!got_, "%s: error %d", #call, got_); } while (0)
#define FAILS(call, code) do { int got_ = (call); CHECK(got_ == (code), "%s: error %d, not %d", #call, got_, code); } while (0)
#endif
