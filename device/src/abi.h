/* abi.h: CUDA's structures and numbers as far as they are used here, declared anew so that building
 * needs nothing of CUDA's. tests/abi.c compares them with the headers of the environments. What
 * differs between CUDA 12 and 13 is two structures; which one, the entry point's name says. CUDA 11 has the beginning of
 * 12's under 13's name.
 */
#ifndef HT_ABI_H
#define HT_ABI_H
#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2, CUDA_NOT_INITIALIZED = 3, CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101, CUDA_INVALID_CONTEXT = 201, CUDA_FILE_NOT_FOUND = 301, CUDA_INVALID_HANDLE = 400, CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600, CUDA_PEER_ENABLED = 704, CUDA_PEER_NOT_ENABLED = 705, CUDA_HOST_REGISTERED = 712,
    CUDA_HOST_NOT_REGISTERED = 713, CUDA_PEER_UNSUPPORTED = 217, CUDA_NOT_SUPPORTED = 801, CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901, CUDA_CAPTURE_UNMATCHED = 903, CUDA_CAPTURE_UNJOINED = 904, CUDA_CAPTURE_IMPLICIT = 906,
    CUDA_CAPTURED_EVENT = 907, CUDA_GRAPH_UPDATE_FAILED = 910, CUDA_ILLEGAL_STATE = 401
};

/* The fields of cudaDeviceProp, in order. B both, O 12 only, N 13 only. */
#define CUDA_DEVICE_PROP(B, O, N) \
    B(char, name, [256]) B(char, uuid, [16]) B(char, luid, [8]) B(unsigned, luidDeviceNodeMask, ) \
    B(size_t, totalGlobalMem, ) B(size_t, sharedMemPerBlock, ) B(int, regsPerBlock, ) B(int, warpSize, ) \
    B(size_t, memPitch, ) B(int, maxThreadsPerBlock, ) B(int, maxThreadsDim, [3]) B(int, maxGridSize, [3]) \
    O(int, clockRate, ) B(size_t, totalConstMem, ) B(int, major, ) B(int, minor, ) B(size_t, textureAlignment, ) \
    B(size_t, texturePitchAlignment, ) O(int, deviceOverlap, ) B(int, multiProcessorCount, ) \
    O(int, kernelExecTimeoutEnabled, ) B(int, integrated, ) B(int, canMapHostMemory, ) O(int, computeMode, ) \
    B(int, maxTexture1D, ) B(int, maxTexture1DMipmap, ) O(int, maxTexture1DLinear, ) B(int, maxTexture2D, [2]) \
    B(int, maxTexture2DMipmap, [2]) B(int, maxTexture2DLinear, [3]) B(int, maxTexture2DGather, [2]) \
    B(int, maxTexture3D, [3]) B(int, maxTexture3DAlt, [3]) B(int, maxTextureCubemap, ) B(int, maxTexture1DLayered, [2]) \
    B(int, maxTexture2DLayered, [3]) B(int, maxTextureCubemapLayered, [2]) B(int, maxSurface1D, ) B(int, maxSurface2D, [2]) \
    B(int, maxSurface3D, [3]) B(int, maxSurface1DLayered, [2]) B(int, maxSurface2DLayered, [3]) B(int, maxSurfaceCubemap, ) \
    B(int, maxSurfaceCubemapLayered, [2]) B(size_t, surfaceAlignment, ) B(int, concurrentKernels, ) B(int, ECCEnabled, ) \
    B(int, pciBusID, ) B(int, pciDeviceID, ) B(int, pciDomainID, ) B(int, tccDriver, ) B(int, asyncEngineCount, ) \
    B(int, unifiedAddressing, ) O(int, memoryClockRate, ) B(int, memoryBusWidth, ) B(int, l2CacheSize, ) \
    B(int, persistingL2CacheMaxSize, ) B(int, maxThreadsPerMultiProcessor, ) B(int, streamPrioritiesSupported, ) \
    B(int, globalL1CacheSupported, ) B(int, localL1CacheSupported, ) B(size_t, sharedMemPerMultiprocessor, ) \
    B(int, regsPerMultiprocessor, ) B(int, managedMemory, ) B(int, isMultiGpuBoard, ) B(int, multiGpuBoardGroupID, ) \
    B(int, hostNativeAtomicSupported, ) O(int, singleToDoublePrecisionPerfRatio, ) B(int, pageableMemoryAccess, ) \
    B(int, concurrentManagedAccess, ) B(int, computePreemptionSupported, ) B(int, canUseHostPointerForRegisteredMem, ) \
    B(int, cooperativeLaunch, ) O(int, cooperativeMultiDeviceLaunch, ) B(size_t, sharedMemPerBlockOptin, ) \
    B(int, pageableMemoryAccessUsesHostPageTables, ) B(int, directManagedMemAccessFromHost, ) \
    B(int, maxBlocksPerMultiProcessor, ) B(int, accessPolicyMaxWindowSize, ) B(size_t, reservedSharedMemPerBlock, ) \
    B(int, hostRegisterSupported, ) B(int, sparseCudaArraySupported, ) B(int, hostRegisterReadOnlySupported, ) \
    B(int, timelineSemaphoreInteropSupported, ) B(int, memoryPoolsSupported, ) B(int, gpuDirectRDMASupported, ) \
    B(unsigned, gpuDirectRDMAFlushWritesOptions, ) B(int, gpuDirectRDMAWritesOrdering, ) \
    B(unsigned, memoryPoolSupportedHandleTypes, ) B(int, deferredMappingCudaArraySupported, ) B(int, ipcEventSupported, ) \
    B(int, clusterLaunch, ) B(int, unifiedFunctionPointers, ) \
    N(int, deviceNumaConfig, ) N(int, deviceNumaId, ) N(int, mpsEnabled, ) N(int, hostNumaId, ) \
    N(unsigned, gpuPciDeviceID, ) N(unsigned, gpuPciSubsystemID, ) N(int, hostNumaMultinodeIpcSupported, )
#define CUDA_FIELD(type, name, array) type name array;
#define CUDA_NO_FIELD(type, name, array)
struct cuda_prop_12 { CUDA_DEVICE_PROP(CUDA_FIELD, CUDA_FIELD, CUDA_NO_FIELD) int reserved[63]; };
enum { CUDA_11_PROP = offsetof(struct cuda_prop_12, hostRegisterSupported) }; /* bytes */
struct cuda_prop_13 { CUDA_DEVICE_PROP(CUDA_FIELD, CUDA_NO_FIELD, CUDA_FIELD) int reserved[56]; };

struct cuda_pointer_attributes_12 { int type, device; void *device_pointer, *host_pointer; };
struct cuda_pointer_attributes_13 { int type, device; void *device_pointer, *host_pointer; long reserved[8]; };
enum { CUDA_MEMORY_UNREGISTERED = 0, CUDA_MEMORY_HOST = 1, CUDA_MEMORY_DEVICE = 2, CUDA_MEMORY_MANAGED = 3 };

struct cuda_func_attributes { /* both; what follows in newer ones stays as the caller had it: none is read */
    size_t shared_bytes, const_bytes, local_bytes;
    int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared, preferred_carveout;
    int cluster_set, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
    int reserved[16];
};

struct cuda_dim3 { unsigned x, y, z; };
struct cuda_launch_config { /* cudaLaunchConfig_t */
    struct cuda_dim3 grid, block;
    size_t dynamic_shared;
    void *stream, *attributes;
    unsigned attribute_count;
};
struct cu_launch_config { /* CUlaunchConfig */
    unsigned grid[3], block[3], dynamic_shared;
    void *stream, *attributes;
    unsigned attribute_count;
};

struct cu_kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2; the first version ends with extra */
    void *function;
    unsigned grid[3], block[3], dynamic_shared;
    void **arguments, **extra, *kernel, *context;
};
struct cu_memset_node { uint64_t to; size_t pitch; unsigned value, element_bytes; size_t width, height; }; /* CUDA_MEMSET_NODE_PARAMS */
struct cu_copy_3d { /* CUDA_MEMCPY3D */
    size_t src_at[4];
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array, *reserved0;
    size_t src_pitch, src_height, dst_at[4];
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array, *reserved1;
    size_t dst_pitch, dst_height, width, height, depth;
};
struct cu_conditional_node { unsigned long long handle; int type; unsigned size; void **graphs, *context; }; /* CUDA_CONDITIONAL_NODE_PARAMS */
struct cu_node { /* CUgraphNodeParams: its first field says which of the others it is */
    int type, reserved0[3];
    union {
        long long room[29];
        struct cu_kernel_node kernel;
        struct { int flags, reserved; void *context; struct cu_copy_3d copy; } copy;
        struct cu_memset_node set;
        struct { void (*call)(void *); void *data; } host;
        struct { void *graph; } child;
        struct cu_conditional_node conditional;
    };
    long long reserved1;
};

struct cuda_location { int type, id; }; /* type 1: device */
struct cuda_access { struct cuda_location location; int flags; };
struct cuda_pool_props { /* cudaMemPoolProps and CUmemPoolProps */
    int type, handles;
    struct cuda_location location;
    void *security;
    size_t max_bytes;
    unsigned short usage;
    unsigned char reserved[54];
};
enum cuda_pool_attribute {
    POOL_FOLLOW = 1, POOL_OPPORTUNISTIC = 2, POOL_INTERNAL = 3, POOL_THRESHOLD = 4, POOL_RESERVED = 5,
    POOL_RESERVED_HIGH = 6, POOL_USED = 7, POOL_USED_HIGH = 8
};

struct cu_alloc_prop { /* CUmemAllocationProp */
    int type, handles;
    struct cuda_location location;
    void *security;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

struct cuda_memcpy_2d { /* CUDA_MEMCPY2D */
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

struct cuda_pitched { void *at; size_t pitch, width, height; }; /* cudaPitchedPtr */
struct cuda_extent { size_t width, height, depth; };

struct cufile_descr { int type; union { int fd; void *handle; }; const void *operations; }; /* CUfileDescr_t */
#endif
