/* launch.c: kernels: registered, asked about, launched; none runs. A launch tells the shadows what the
 * kernel was given, the stream's capture that there is a node, and the device table that there was one.
 */
#include <string.h>

#include "runtime.h"

/* ---- what compilers put into a program's start: handles that nobody looks into */

static void *fat_binary[1];
HT_EXPORT void **__cudaRegisterFatBinary(void *image) {
    ht_image_seen(image);
    return fat_binary;
}
HT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
HT_EXPORT void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
HT_EXPORT char __cudaInitModule(void **handle) { (void)handle; return 1; }
HT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *name) { (void)handle, (void)host, (void)name; }
HT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *name) { (void)handle, (void)host, (void)name; }
HT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name, int ext, size_t size) {
    (void)handle, (void)address, (void)name, (void)ext;
    if (host && !*host) /* a managed variable is memory that the host follows */
        *host = ht_new(size);
}

/* ---- the launch configuration that <<< >>> passes in two calls */

struct configuration { struct cuda_dim3 grid, block; size_t shared; void *stream; };
static __thread struct configuration stack[8];
static __thread unsigned depth;

HT_EXPORT unsigned __cudaPushCallConfiguration(struct cuda_dim3 grid, struct cuda_dim3 block, size_t shared, void *stream) {
    if (depth == sizeof stack / sizeof *stack)
        return 1;
    stack[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}
HT_EXPORT int __cudaPopCallConfiguration(struct cuda_dim3 *grid, struct cuda_dim3 *block, size_t *shared, void **stream) {
    if (!depth)
        return ht_fail(9 /* invalid configuration */);
    struct configuration top = stack[--depth];
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *stream = top.stream;
    return CUDA_OK;
}

/* ---- launches */

#define INVALID_CONFIGURATION 9

static int fits_block(unsigned x, unsigned y, unsigned z) { return x && y && z && (uint64_t)x * y * z <= 1024 && z <= 64; }

int ht_launch(const unsigned grid[3], const unsigned block[3], void **arguments, size_t shared, void *stream) {
    int error = ht_use(ht_device_current());
    if (error)
        return error;
    const struct ht_gpu *gpu = ht_device(ht_device_current());
    if (!grid[0] || !grid[1] || !grid[2] || !fits_block(block[0], block[1], block[2]) || shared > gpu->shared_optin)
        return INVALID_CONFIGURATION;
    ht_scan_arguments(arguments);
    ht_launched(ht_device_current());
    ht_stream_work(stream, 0);
    return CUDA_OK;
}

static int launch_dim3(struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    const unsigned g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
    return ht_fail(ht_launch(g, b, arguments, shared, stream));
}

HT_EXPORT int cudaLaunchKernel(const void *f, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    (void)f;
    return launch_dim3(grid, block, arguments, shared, stream);
}
HT_EXPORT int cudaLaunchKernel_ptsz(const void *f, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    (void)f;
    return launch_dim3(grid, block, arguments, shared, stream);
}
HT_EXPORT int __cudaLaunchKernel(void *kernel, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    (void)kernel;
    return launch_dim3(grid, block, arguments, shared, stream);
}
HT_EXPORT int __cudaLaunchKernel_ptsz(void *kernel, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    (void)kernel;
    return launch_dim3(grid, block, arguments, shared, stream);
}
HT_EXPORT int cudaLaunchCooperativeKernel(const void *f, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, size_t shared, void *stream) {
    (void)f;
    return launch_dim3(grid, block, arguments, shared, stream);
}
HT_EXPORT int cudaLaunchKernelExC(const struct cuda_launch_config *config, const void *f, void **arguments) {
    (void)f;
    return launch_dim3(config->grid, config->block, arguments, config->dynamic_shared, config->stream);
}

/* ---- kernels by handle: the address of the host's stub will do */

HT_EXPORT int __cudaGetKernel(void **kernel, const void *f) { *kernel = (void *)f; return CUDA_OK; }
HT_EXPORT int cudaGetKernel(void **kernel, const void *f) { *kernel = (void *)f; return CUDA_OK; }
HT_EXPORT int cudaGetFuncBySymbol(void **function, const void *f) { *function = (void *)f; return CUDA_OK; }
HT_EXPORT int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    (void)kernel, (void)attribute, (void)value, (void)device;
    return CUDA_OK;
}
HT_EXPORT int cudaFuncSetAttribute(const void *f, int attribute, int value) { (void)f, (void)attribute, (void)value; return CUDA_OK; }
HT_EXPORT int cudaFuncSetCacheConfig(const void *f, int config) { (void)f, (void)config; return CUDA_OK; }
HT_EXPORT int cudaFuncSetSharedMemConfig(const void *f, int config) { (void)f, (void)config; return CUDA_OK; }
HT_EXPORT int cudaFuncGetName(const char **name, const void *f) { (void)f; *name = "kernel"; return CUDA_OK; }

/* A kernel of which nothing is known: no spills, few registers, compiled for what its library was
 * compiled for and the device can run. */
HT_EXPORT int cudaFuncGetAttributes(struct cuda_func_attributes *into, const void *f) {
    HT_NEED_CONTEXT();
    const struct ht_gpu *gpu = ht_device(ht_device_current());
    int version = ht_image_version(f, (int)gpu->cc_major, (int)gpu->cc_minor);
    memset(into, 0, offsetof(struct cuda_func_attributes, cluster_set));
    into->max_threads = 1024;
    into->registers = 32;
    into->ptx_version = into->binary_version = version;
    into->max_dynamic_shared = (int)gpu->shared_per_block;
    into->preferred_carveout = -1;
    return CUDA_OK;
}

/* With 32 registers a thread, what limits the blocks of a multiprocessor is threads and shared memory. */
int ht_occupancy(int threads, size_t shared) {
    const struct ht_gpu *gpu = ht_device(ht_device_current());
    if (!gpu || threads <= 0 || threads > 1024)
        return 0;
    uint32_t blocks = gpu->threads_per_sm / (uint32_t)threads;
    if (blocks > gpu->blocks_per_sm)
        blocks = gpu->blocks_per_sm;
    if (shared && gpu->shared_per_sm / shared < blocks)
        blocks = (uint32_t)(gpu->shared_per_sm / shared);
    return (int)blocks;
}
HT_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t shared) {
    HT_NEED_CONTEXT();
    (void)f;
    *blocks = ht_occupancy(threads, shared);
    return CUDA_OK;
}
HT_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int threads, size_t shared, unsigned flags) {
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
HT_EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads) {
    HT_NEED_CONTEXT();
    (void)f, (void)threads;
    const struct ht_gpu *gpu = ht_device(ht_device_current());
    size_t share = blocks > 0 ? gpu->shared_per_sm / (size_t)blocks : 0;
    *bytes = share < gpu->shared_optin ? share : gpu->shared_optin;
    return CUDA_OK;
}
HT_EXPORT int cudaOccupancyMaxActiveClusters(int *clusters, const void *f, const struct cuda_launch_config *config) {
    HT_NEED_CONTEXT();
    (void)f, (void)config;
    *clusters = (int)ht_device(ht_device_current())->sm_count / 8;
    return CUDA_OK;
}
HT_EXPORT int cudaOccupancyMaxPotentialClusterSize(int *size, const void *f, const struct cuda_launch_config *config) {
    HT_NEED_CONTEXT();
    (void)f, (void)config;
    *size = 8;
    return CUDA_OK;
}

/* A program's own variable on the device: an address of its own, of which nothing is known. */
HT_EXPORT int cudaGetSymbolAddress(void **address, const void *symbol) { *address = (void *)symbol; return CUDA_OK; }

/* ---- CUDA 12's and 13's libraries of kernels */
HT_EXPORT int cudaLibraryLoadData(void **library, const void *code) { *library = (void *)code; return CUDA_OK; }
HT_EXPORT int cudaLibraryUnload(void *library) { (void)library; return CUDA_OK; }
HT_EXPORT int cudaLibraryGetKernel(void **kernel, void *library, const char *name) { (void)library; *kernel = (void *)name; return CUDA_OK; }

/* ---- a graph is launched like a kernel: captured, it is a node of another graph */

int ht_graph_launch(void *exec, void *stream) {
    if (!ht_graph_can_run(exec))
        return CUDA_INVALID_VALUE;
    if (!ht_stream_work(stream, 4))
        ht_graph_run(exec);
    return CUDA_OK;
}
HT_EXPORT int cudaGraphLaunch(void *exec, void *stream) { HT_NEED_CONTEXT(); return ht_fail(ht_graph_launch(exec, stream)); }
