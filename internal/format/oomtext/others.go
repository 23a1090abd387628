package oomtext

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// others are what libraries, kernels, schedulers and runtimes print, the more particular first.
var others = slices.Concat(onDevices, onHosts)

// onDevices are those of devices, and of what serves models on them. Their sentences
// have the message's figures in braces ({asked}, {limit}, …). Of alternatives, parted by " | ", the first is said whose
// figures the message states, and none if there is none. Add yours here, and a line in TestKindsOfMessages.
var onDevices = []wording{
	// Frameworks and libraries on a GPU.
	{name: "cublas", framework: "cublas", match: words.Lazy(`CUBLAS_STATUS_ALLOC_FAILED`), says: []string{
		"cuBLAS could not allocate on the GPU; the message does not say how much it asked for.",
		"Its workspace lies outside the framework's allocator, which may hold nearly all of the device: hold less, or cap " +
			"the allocator (torch.cuda.set_per_process_memory_fraction)."}},
	{name: "cublas-unclear", framework: "cublas", match: words.Lazy(`CUBLAS_STATUS_NOT_INITIALIZED`), says: []string{
		"cuBLAS could not start. A full GPU is a common cause, and not the only one: the message does not tell.",
		"Try it with a small batch. If it works then, memory was the cause; if not, an error of an earlier kernel is " +
			"another (CUDA_LAUNCH_BLOCKING=1 shows where)."}},
	{name: "cuda-library", framework: "cuda",
		match: words.Lazy(`CUFFT_ALLOC_FAILED|(?:CUSOLVER|CUSPARSE|HIPBLAS|HIPSPARSE|ROCSOLVER)_STATUS_ALLOC_FAILED|rocblas_status_memory_error|CURAND_STATUS_ALLOCATION_FAILED|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES`), parts: []part{findText(`(CUFFT|CUSOLVER|CUSPARSE|CURAND|HIPBLAS|HIPSPARSE|ROCSOLVER|rocblas)_`, name)}, says: []string{
			"A library of the GPU's maker ({name}) could not allocate what it needs to work; the message does not say how " +
				"much, nor whether on the GPU or on the host.",
			"What such libraries take lies outside the framework's allocator: hold less, or leave them room."}},
	{name: "cudnn", framework: "cudnn",
		match: words.Lazy(`CUDNN_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED`), says: []string{
			"cuDNN could not allocate on the GPU; the message does not say how much it asked for.",
			"Its handles and workspaces need room beside the tensors: hold less at once."}},
	{name: "cudnn-unclear", framework: "cudnn",
		match: words.Lazy(`(?:Unable to find a valid cuDNN algorithm|unable to find an engine to execute this computation|cuDNN failed to initialize|CUDNN_STATUS_NOT_INITIALIZED)`), says: []string{
			"cuDNN could not start or found no algorithm. A full GPU is a common cause, and not the only one: the message " +
				"does not tell.",
			"Try it with a small batch. If it works then, memory was the cause; if not, look at the versions of cuDNN and the " +
				"driver."}},
	{name: "nccl", framework: "nccl", match: words.Lazy(`Cuda failure (?:\d+ )?'out of memory'`), says: []string{
		"NCCL could not allocate its buffers on the GPU; the message does not say how much it asked for.",
		"NCCL's buffers lie outside the framework's allocator: some hundred MiB for each communicator. Leave it room, or " +
			"create fewer process groups."}},
	{name: "nccl-alloc", framework: "nccl", match: words.Lazy(`Failed to CUDA (?:host )?(?:calloc|malloc|alloc)`),
		parts: []part{find(`alloc(?: async)? SIZE`, requested)}, says: []string{
			"NCCL could not allocate {asked}. | NCCL could not allocate.",
			"The line does not say why: a full GPU is the usual cause (for a host allocation, pinned host memory), an earlier " +
				"error of CUDA another. The lines of NCCL_DEBUG=WARN above it tell.",
			"NCCL's buffers lie outside the framework's allocator."}},
	{name: "nccl-shm", framework: "nccl", backend: "shm",
		match: words.Lazy(`[Ee]rror while creating shared memory segment /dev/shm/nccl`),
		parts: []part{findNumber(`nccl\S* \(size (\d+)\)`, requested)}, says: []string{
			"NCCL could not create a segment of {asked} in /dev/shm. | NCCL could not create a segment in /dev/shm.", shmAdvice}},
	{name: "cupy", framework: "cupy",
		match: words.Lazy(`cupy\S*OutOfMemoryError|Out of memory allocating [\d,]+ bytes \(allocated so far`), parts: []part{
			find(`allocating SIZE`, requested), find(`allocated so far: SIZE`, allocated), find(`limit set to: SIZE`, allowed)},
		says: []string{
			"CuPy asked for {asked} on the GPU and could not get it. | CuPy could not allocate on the GPU.",
			"Its pool had taken {held} so far.",
			"A limit of {limit} is set for the pool.",
			"What a pool holds and no array uses goes back with cupy.get_default_memory_pool().free_all_blocks(); the message " +
				"does not say how much that is."}},
	{name: "rmm", framework: "rmm", match: words.Lazy(`(?:std::bad_alloc: )?out_of_memory: (?:CUDA error|RMM failure)|[Mm]aximum pool size exceeded`), parts: []part{
		find(`failed to allocate SIZE`, requested)}, says: []string{
		"RMM (RAPIDS) asked for {asked} on the GPU and could not get it. | RMM (RAPIDS) could not allocate on the GPU; " +
			"the message does not say how much it asked for.",
		"Where a pool was made with a maximum size, that is the limit; else it is the device."}},
	{name: "xgboost", framework: "xgboost", match: words.Lazy(`Memory allocation error on worker`), parts: []part{
		find(`Requested memory: SIZE`, requested), find(`Free memory: SIZE`, free),
		findNumber(`Requested memory: (\d+)(?: -|\n|$)`, requested), findNumber(`Free memory: (\d+)(?: -|\n|$)`, free)}, says: []string{
		"XGBoost asked for {asked} on the GPU and could not get it. | XGBoost could not allocate on the GPU.",
		"{free} were free.", "QuantileDMatrix, fewer bins (max_bin) and external memory need less."}},
	{name: "tensorrt-tactic", framework: "tensorrt",
		match: words.Lazy(`[Mm]emory is insufficient to use tactic|insufficient memory on requested size`), parts: []part{
			find(`request: SIZE`, requested), find(`requested size of (\d+)`, requested), find(`Available: SIZE`, free)}, says: []string{
			"TensorRT passed over a tactic that needs {asked}, where {free} were free: a warning, no failure. | TensorRT " +
				"passed over a tactic for lack of memory: a warning, no failure.",
			"The engine is built with other tactics, which may be slower."}},
	{name: "tensorrt-llm", framework: "tensorrt-llm", match: words.Lazy(`\[TensorRT-LLM\]\[ERROR\][^\n]*out of memory`),
		says: []string{
			"TensorRT-LLM could not allocate on the GPU; the message does not say how much it asked for.",
			"The engine's batch and lengths (max_batch_size, max_num_tokens) and the share for the KV cache " +
				"(free_gpu_memory_fraction) decide what it takes."}},
	{name: "triton-server", framework: "triton-server",
		match: words.Lazy(`CNMEM_STATUS_OUT_OF_MEMORY|failed to allocate CUDA memory with byte size`), parts: []part{
			findNumber(`byte size (\d+)`, requested), findNumber(`on GPU (\d+)`, device)}, says: []string{
			"Triton Inference Server had no room for {asked} in its pool of CUDA memory. | Triton Inference Server had no " +
				"room in its pool of CUDA memory.",
			"That is the pool's size (--cuda-memory-pool-byte-size), not the device's: what models hold lies elsewhere."}},
	{name: "bitsandbytes", framework: "bitsandbytes",
		match: words.Lazy(`(?i)error:? (?:CUDA )?out of memory at line \d+ in file \S*(?:pythonInterface|ops)\.`),
		says: []string{
			"bitsandbytes asked the CUDA driver for memory and could not get it; the message does not say how much.",
			"Nor does it say of which kind: workspaces lie on the GPU, states of paged optimizers in managed memory, which " +
				"the host must have too."}},
	{name: "tensorrt", framework: "tensorrt",
		match: words.Lazy(`Requested amount of GPU memory \(\d+ bytes\) could not be allocated|\[TRT\][^\n]*(?:OutOfMemory|\(out of memory\))`), parts: []part{
			find(`Requested amount of GPU memory \(SIZE\)`, requested), find(`Requested size was SIZE`, requested)}, says: []string{
			"TensorRT asked for {asked} on the GPU and could not get it. | TensorRT could not allocate on the GPU.",
			"While it builds an engine it tries tactics, and a tactic without room is passed over: this is not a failure if " +
				"the build goes on."}},
	{name: "tensorrt-workspace", framework: "tensorrt", match: words.Lazy(`due to insufficient workspace`), says: []string{
		"TensorRT found no implementation of a layer within the workspace that it may use: that is a setting of the " +
			"builder, not what the GPU has.",
		"Raise the limit of the workspace (set_memory_pool_limit, trtexec --memPoolSize=workspace:…)."}},
	{name: "faiss", framework: "faiss", match: words.Lazy(`StandardGpuResources: alloc fail`), parts: []part{
		find(`\bsize (\d+ bytes)`, requested), findNumber(`\bdev (\d+)`, device)}, says: []string{
		"Faiss asked for {asked} on the GPU and could not get it. | Faiss could not allocate on the GPU.",
		"It keeps a stack of scratch memory for itself (setTempMemory); its index and a framework's cache lie beside it."}},
	{name: "flashinfer", framework: "flashinfer",
		match: words.Lazy(`Failed to allocate memory for \w+ with size \d+ and alignment \d+ in AlignedAllocator`),
		parts: []part{findNumber(`with size (\d+) and`, requested)}, says: []string{
			"FlashInfer needs {asked} more in the workspace that its caller made: this is that buffer's size, not the " +
				"device's memory.",
			"Make the workspace larger, or plan fewer and shorter requests at once."}},
	{name: "mindspore", framework: "mindspore", match: words.Lazy(`memory isn't enough and alloc failed`), parts: []part{
		find(`alloc size: SIZE`, requested), findNumber(`Device\(id:(\d+)\)`, device)}, says: []string{
		"MindSpore asked for {asked} on the device and could not get it. | MindSpore could not allocate on the device.",
		"max_device_memory bounds what it may take; the message does not say how much it holds."}},
	{name: "ascend", framework: "ascend", backend: "npu", match: words.Lazy(`\bEL0004\b|halMemAlloc failed`),
		parts: []part{findNumber(`halMemAlloc failed:size=(\d+)`, requested)}, says: []string{
			"Ascend's driver could not allocate {asked} on the NPU. | Ascend's driver could not allocate on the NPU; the " +
				"message does not say how much it asked for.",
			"Other processes on the NPU count too (`npu-smi info` names them)."}},
	{name: "deepspeed-flush", framework: "deepspeed",
		match: words.Lazy(`pytorch allocator cache flushes since last step`), says: []string{
			"This is a warning, no failure: PyTorch's allocator had no room and gave its cache back to serve a request, which " +
				"costs time.",
			"The next larger request may fail: hold a little less, or call get_accelerator().empty_cache() on all ranks at " +
				"one place."}},
	{name: "onnxruntime", framework: "onnxruntime",
		match: words.Lazy(`BFCArena::AllocateRawInternal|Available memory of \d+ is smaller than requested bytes of \d+|Failed to allocate memory for requested buffer of size`), parts: []part{
			findNumber(`requested bytes of (\d+)`, requested), findNumber(`requested buffer of size (\d+)`, requested),
			findNumber(`Available memory of (\d+)`, free)}, says: []string{
			"ONNX Runtime's arena asked for {asked} and could not get it. | ONNX Runtime's arena could not grow.",
			"{free} were left to it.",
			"The arena grows by powers of two unless arena_extend_strategy is kSameAsRequested; gpu_mem_limit caps it."}},
	{name: "paddle", framework: "paddle", match: words.Lazy(`Out of memory error on GPU \d+\. Cannot allocate`),
		parts: []part{
			find(`Cannot allocate SIZE`, requested), findNumber(`error on GPU (\d+)`, device),
			find(`SIZE memory has been allocated`, allocated), find(`available memory is only SIZE`, free)}, says: []string{
			"Paddle asked for {asked} on the GPU and could not get it.", "{held} were allocated and {free} free."}},
	{name: "julia", framework: "julia", match: words.Lazy(`Out of GPU memory trying to allocate`), parts: []part{
		find(`trying to allocate SIZE`, requested), find(`GPU memory usage: [\d.]+% \(SIZE/`, inUse),
		find(`GPU memory usage: [\d.]+% \([^/]*/SIZE\)`, total)}, says: []string{
		"CUDA.jl asked for {asked} on the GPU and could not get it.",
		"{used} of the device's {total} were in use, by all processes."}},
	{name: "mlx", framework: "mlx", backend: "metal", match: words.Lazy(`\[metal::malloc\] Attempting to allocate`),
		parts: []part{
			find(`Attempting to allocate SIZE`, requested), find(`maximum allowed buffer size of SIZE`, allowed)}, says: []string{
			"MLX asked for one buffer of {asked}; Metal allows buffers of at most {limit} each. | MLX asked for {asked} of " +
				"unified memory and could not get it.",
			"This is a limit of one buffer, not of all memory: split the array. | Hold less at once."}},
	{name: "mlx-count", framework: "mlx", backend: "metal", match: words.Lazy(`\[metal::malloc\] Resource limit`),
		says: []string{
			"MLX holds as many buffers as Metal allows: this is their number, not their bytes.",
			"A graph that is never evaluated, or many small arrays that are kept, does this: call mx.eval more often, or drop " +
				"them."}},
	{name: "mps-buffer", framework: "pytorch", backend: "mps",
		match: words.Lazy(`Invalid buffer size: \d|total bytes of NDArray > 2\*\*32`),
		parts: []part{find(`buffer size: SIZE`, requested)}, says: []string{
			"One tensor of {asked} is larger than Metal allows for a buffer on this machine. | One tensor of more than 4 GiB " +
				"is larger than Metal allows for an array.",
			"This is a limit of one buffer, not of all memory: split the tensor (shorter sequences, smaller batches, " +
				"attention in slices)."}},
	{name: "metal", framework: "metal", backend: "metal",
		match: words.Lazy(`kIOGPUCommandBufferCallbackErrorOutOfMemory`), says: []string{
			"Metal could not get memory for a command buffer; the message does not say how much.",
			"Apple's GPU shares memory with all programs: close others, or hold less at once."}},
	{name: "xpu-block", framework: "pytorch", backend: "xpu",
		match: words.Lazy(`can NOT allocate memory block with size larger than 4GB`),
		parts: []part{find(`Tried to allocate SIZE`, requested)}, says: []string{
			"PyTorch asked for one block of {asked}; Intel's runtime here allows blocks of at most 4 GiB each. | Intel's " +
				"runtime here allows blocks of at most 4 GiB each, and PyTorch asked for a larger one.",
			"This is a limit of one block, not of all memory: split the tensor, or see whether a newer driver allows larger " +
				"ones."}},
	{name: "sycl", framework: "sycl", backend: "xpu",
		match: words.Lazy(`PI_ERROR_OUT_OF_RESOURCES|UR_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)|PI_ERROR_MEM_OBJECT_ALLOCATION_FAILURE`), says: []string{
			"Intel's runtime reports that a resource of the GPU ran out. Memory is the usual one; the message does not tell " +
				"which, nor how much was asked for."}},
	{name: "hip", framework: "hip", backend: "hip", match: words.Lazy(`hipErrorOutOfMemory|HIP error: out of memory`),
		says: []string{
			"The HIP driver had no memory for a request on the GPU; the message does not say how much it asked for."}},
	{name: "hsa", framework: "hip", backend: "hip", match: words.Lazy(`HSA_STATUS_ERROR_OUT_OF_RESOURCES`), says: []string{
		"ROCm's runtime reports that a resource ran out. Memory of the GPU is the usual one, threads and system memory " +
			"others: the message does not tell which."}},
	{name: "vulkan", framework: "vulkan", backend: "vulkan",
		match: words.Lazy(`ErrorOutOfDeviceMemory|ggml_vulkan: Device memory allocation of size \d+ failed|VK_ERROR_OUT_OF_DEVICE_MEMORY`), parts: []part{findNumber(`allocation of size (\d+) failed`, requested)}, says: []string{
			"The Vulkan driver could not give {asked} on the GPU. | The Vulkan driver had no memory for a request on the GPU; " +
				"the message does not say how much.",
			"Drivers also bound one allocation: a request above that fails on an empty GPU too."}},
	{name: "opencl", framework: "opencl", backend: "opencl",
		match: words.Lazy(`CL_MEM_OBJECT_ALLOCATION_FAILURE|CL_OUT_OF_RESOURCES|CL_OUT_OF_HOST_MEMORY`), says: []string{
			"The OpenCL driver reports that memory or another resource ran out; the message does not tell which, nor how much " +
				"was asked for."}},
	{name: "neuron", framework: "neuron", backend: "neuron",
		match: words.Lazy(`Failed to alloc(?:ate)? DEVICE memory|nrt_\w+ status=4 message=\S?"?Allocation Failure|NRT_RESOURCE\b`), parts: []part{findNumber(`DEVICE memory: (\d+)`, requested)}, says: []string{
			"AWS Neuron's runtime could not allocate {asked} of the accelerator's memory. | AWS Neuron's runtime could not " +
				"get a resource of the accelerator; memory is the usual one, and the message does not say how much.",
			"That request was the last of many: how much the model takes in all stands elsewhere in its log (`neuron-top` " +
				"shows it while it runs)."}},
	{name: "habana", framework: "habana", backend: "hpu", match: words.Lazy(`PT_DEVMEM Allocation failed`),
		parts: []part{findNumber(`for size::(\d+)`, requested)}, says: []string{
			"PyTorch on Intel Gaudi asked for {asked} and could not get it. | PyTorch on Intel Gaudi could not allocate on " +
				"the accelerator."}},
	{name: "ptxas", framework: "cuda", backend: "kernel", match: words.Lazy(`uses too much shared data`), says: []string{
		"A kernel needs more of the memory on the chip (shared memory) than a block may have: this is not the device's " +
			"memory, and a smaller batch does not help.",
		"Smaller tiles or fewer stages of that kernel do."}},
	{name: "triton-units", framework: "triton", backend: "kernel",
		match: words.Lazy(`out of resource: (?:threads|tensor memory|registers)`), parts: []part{
			findText(`out of resource: (threads|tensor memory|registers)`, name)}, says: []string{
			"A Triton kernel needs more {name} than the GPU gives one block; the numbers of the message are not bytes.",
			"This is not the device's memory: smaller blocks (BLOCK_SIZE), fewer num_warps or num_stages help, a smaller " +
				"batch does not."}},
	{name: "triton", framework: "triton", backend: "kernel",
		match: words.Lazy(`out of resource: shared memory|OutOfMemoryError: out of resource:`), parts: []part{
			findNumber(`Required: (\d+)`, requested), findNumber(`Hardware limit: ?(\d+)`, allowed)}, says: []string{
			"A Triton kernel needs {asked} of the memory on the chip (shared memory) of one block; the GPU has {limit}. | A " +
				"Triton kernel needs more of a resource on the chip than the GPU has.",
			"This is not the device's memory: smaller blocks (BLOCK_SIZE) or fewer num_stages help, a smaller batch does not."}},

	{name: "llama.cpp", framework: "llama.cpp",
		match: words.Lazy(`ggml_backend_\w+: allocating [\d.]+ MiB on device|unable to allocate \w+ buffer|failed to allocate (?:\w+ )?buffer of size \d+|failed to allocate (?:compute (?:pp )?buffers|buffer for kv cache)`), parts: []part{
			find(`allocating SIZE on device`, requested), findNumber(`buffer of size (\d+)`, requested),
			findNumber(`on device (\d+): cudaMalloc`, device),
			findText(`allocate ((?:CUDA|CPU|ROCm|Vulkan|SYCL|Metal|MTL|CANN|MUSA)\w*) buffer`, name)}, says: []string{
			"llama.cpp asked for one buffer of {asked} on {name} and could not get it. | llama.cpp asked for one buffer of " +
				"{asked} and could not get it. | llama.cpp could not allocate a buffer on {name}; the message does not say how " +
				"much. | llama.cpp could not allocate a buffer; the message does not say how much.",
			"Fewer layers on the GPU (-ngl), a shorter context (-c) or a smaller quantisation need less."}},
	{name: "mlock", framework: "system", backend: "host", match: words.Lazy(`failed to mlock \d+-byte buffer`),
		parts: []part{findNumber(`mlock (\d+)-byte`, requested)}, says: []string{
			"{asked} could not be locked in memory: that is a limit of the user (`ulimit -l`), not a want of memory.",
			"It is a warning: the program goes on, and the system may swap those pages."}},
	{name: "xla-remat", framework: "jax", backend: "xla", match: words.Lazy(`Can't reduce memory use below`),
		parts: []part{
			find(`memory use below SIZE`, allowed), find(`only reduced to SIZE`, requested)}, says: []string{
			"XLA's compiler could bring what the program needs down to {asked} only, and aimed at {limit}. | XLA's compiler " +
				"could not bring what the program needs down to what it aimed at.",
			"This is a warning, no failure: when the program runs, it may run out of memory."}},
	{name: "tensorflow-driver", framework: "tensorflow",
		match: words.Lazy(`failed to allocate [\d.]+[KMGT]?i?B? \(\d+ bytes\) from device`),
		parts: []part{find(`failed to allocate [^(]*\(SIZE\)`, requested)}, says: []string{
			"TensorFlow asked the driver for {asked} and could not get it.",
			"At its start it tries to take nearly the whole GPU, and less if that fails: alone this line is not a failure. " +
				"Another program may hold memory (nvidia-smi)."}},
	{name: "cuda-driver-call", framework: "pytorch", match: words.Lazy(`CUDA driver error: out of memory`), says: []string{
		"A call of PyTorch's to the CUDA driver itself ran out of memory; the message does not say how much it asked for.",
		"Expandable segments, symmetric memory and compiled kernels call the driver so. Another process that holds the " +
			"device is a cause, too (nvidia-smi)."}},
	{name: "cuda-driver", framework: "cuda",
		match: words.Lazy(`(?i)\bTriton Error \[CUDA\]: out of memory|CUDA(?:_ERROR_OUT_OF_MEMORY| error: out of memory| failure \d+: out of memory| runtime error[^\n]*out of memory|\] out of memory|Malloc [^\n]*failed[^\n]*out of memory|Malloc failed[^\n]*out of memory)|cudaErrorMemoryAllocation`), says: []string{
			"The CUDA driver ran out of memory; the message does not say how much it asked for.",
			"A framework's own allocator would say how much, so the request came past the framework's allocator, if there is " +
				"one: a library, a context, pinned memory.",
			"Another process that holds the device is a cause, too (nvidia-smi)."}},

	{name: "torch-bare", framework: "pytorch",
		match: words.Lazy(`OutOfMemoryError: Allocation on device|\b(?:CUDA|HIP|XPU|NPU) out of memory\.?\s*\z`),
		says: []string{
			"PyTorch could not allocate on the GPU; the message does not say how much it asked for, nor what it held.",
			"The error as the program itself prints it, with its figures, or a snapshot of the allocator says more."}},

	{name: "accelerate-no-batch", framework: "accelerate",
		match: words.Lazy(`No executable batch size found, reached zero`), says: []string{
			"Accelerate made the batch smaller down to 1, and each failed: in most cases for lack of memory, by errors of " +
				"cuDNN too. Which it was stands in the log before.",
			"A batch of 1 has no smaller one: shorter sequences, checkpointed activations, a lighter optimizer or a larger " +
				"device help."}},

	// Serving.
	{name: "vllm-preempted", framework: "vllm",
		match: words.Lazy(`is preempted by \S*(?:RECOMPUTE|SWAP)\S* mode because there is not enough KV cache space`),
		says: []string{
			"This is a warning, no failure: vLLM's KV cache was full, so a request was put back and is computed again or " +
				"swapped in later.",
			"Raise gpu_memory_utilization, or lower max_num_seqs or max_num_batched_tokens, if it happens often."}},
	{name: "vllm-startup", framework: "vllm",
		match: words.Lazy(`[Ff]ree memory on device .* on startup is less than desired GPU memory utilization`),
		parts: []part{
			find(`/SIZE\) on startup`, total), find(`utilization \([\d.]+, SIZE\)`, requested)}, says: []string{
			"vLLM wants {asked} of the GPU's {total}, and less was free at the start.",
			"Something else holds the rest: look at nvidia-smi, or lower gpu_memory_utilization."}},
	{name: "vllm-kv", framework: "vllm",
		match: words.Lazy(`KV cache is needed, which is larger than the available KV cache memory`), parts: []part{
			find(`\(SIZE KV cache is needed`, requested), find(`KV cache is needed, [^)]*KV cache memory \(SIZE\)`, free),
			findNumber(`estimated maximum model length is (\d+)`, tokens)}, says: []string{
			"One request of the longest length needs {asked} of KV cache; {free} are left for it beside the weights. | One " +
				"request of the longest length needs more KV cache than is left beside the weights.",
			lowerLength}},
	{name: "vllm-kv-tokens", framework: "vllm",
		match: words.Lazy(`larger than the maximum number of tokens that can be stored in KV cache`),
		parts: []part{findNumber(`can be stored in KV cache \((\d+)\)`, tokens)}, says: []string{
			"The longest request allowed does not fit into the KV cache that is left beside the weights.", lowerLength}},
	{name: "vllm-no-blocks", framework: "vllm", match: words.Lazy(`No available memory for the cache blocks`),
		says: []string{
			"vLLM has no memory left for the KV cache: weights and activations take the whole share that it may use.",
			"Raise gpu_memory_utilization, quantise the weights, or split the model over GPUs (tensor_parallel_size)."}},
	{name: "vllm-warmup", framework: "vllm", match: words.Lazy(`out of memory occurred when warming up`),
		parts: []part{findText(`with (\d+) dummy requests`, name)}, says: []string{
			"vLLM ran out of the GPU's memory as it tried its last stage with {name} requests at once; how much it asked for " +
				"stands in the error above, if at all. | vLLM ran out of the GPU's memory as it tried its last stage; how much " +
				"it asked for stands in the error above, if at all.",
			"Lower max_num_seqs or gpu_memory_utilization."}},
	{name: "vllm-profiling", framework: "vllm", match: words.Lazy(`Error in memory profiling`), says: []string{
		"Nothing ran out: while vLLM measured its own use, the GPU's free memory grew, as another program gave some back.",
		"Start it again when no other program on the GPU begins or ends."}},
	{name: "tgi", framework: "tgi", match: words.Lazy(`Not enough memory to handle [\d\w ]*prefill tokens`),
		says: []string{
			"Text Generation Inference ran out of the GPU's memory as it tried its largest prefill; the message does not say " +
				"how much it asked for.",
			"Lower --max-batch-prefill-tokens, or take more GPUs (--num-shard)."}},
	{name: "sglang-unbalanced", framework: "sglang", match: words.Lazy(`The memory capacity is unbalanced`),
		says: []string{
			"Nothing ran out: one GPU of the group has less than nine tenths of the free memory that this one has, so SGLang " +
				"did not start.",
			"Another program on that GPU is the usual cause (nvidia-smi)."}},
	{name: "sglang-retracted", framework: "sglang",
		match: words.Lazy(`Decode out of memory happened|KV cache pool is full\. Retract`), says: []string{
			"SGLang's pool for the KV cache was full, so requests were put back to run later: it slows down, and is not a " +
				"failure.",
			"Fewer requests at once (--max-running-requests) or a larger pool (--mem-fraction-static) avoid it."}},
	{name: "sglang-pool", framework: "sglang",
		match: words.Lazy(`(?:Decode|Prefill) out of memory\. Try to lower your batch size`), says: []string{
			"SGLang's pool for the KV cache had no room for the tokens of a batch: that is the pool's size, not the device's.",
			"Fewer requests at once (--max-running-requests), shorter prefills (--chunked-prefill-size) or a larger pool " +
				"(--mem-fraction-static) help."}},
	{name: "exllama", framework: "exllama", match: words.Lazy(`Insufficient VRAM for model and cache`), says: []string{
		"ExLlama does not fit the model and its cache into the GPUs by the split that it was given; the message does not " +
			"say how much is missing.",
		"A shorter cache (max_seq_len), a quantised one, or another split needs less."}},
	{name: "sglang", framework: "sglang",
		match: words.Lazy(`Not enough memory\. Please try to increase --mem-fraction-static`), says: []string{
			"SGLang's share of the GPU is too small for the weights and any KV cache.",
			"Raise --mem-fraction-static, or split the model over GPUs (--tp)."}},
	{name: "ollama", framework: "ollama", backend: "host", match: words.Lazy(`model requires more system memory`),
		parts: []part{
			find(`system memory \(SIZE\)`, requested), find(`than is available \(SIZE\)`, free)}, says: []string{
			"Ollama estimates that the model needs {asked} of host memory; {free} are available.",
			"A smaller model or quantisation, or a shorter context (num_ctx), needs less."}},
	{name: "ollama-killed", framework: "ollama", backend: "host",
		match: words.Lazy(`llama runner process has terminated: signal: killed`), says: []string{
			"Ollama's runner was killed (SIGKILL) from outside. The kernel's out-of-memory killer is the usual cause: the " +
				"message does not say.",
			"`dmesg -T` (“Killed process”) on that machine tells."}},
	{name: "accelerate", framework: "accelerate",
		match: words.Lazy(`Some modules are dispatched on the CPU or the disk`), says: []string{
			"The model does not fit on the GPUs by Accelerate's own estimate, so parts would go to the CPU, which quantised " +
				"layers do not allow.",
			"Nothing ran out yet. Use a smaller model, more GPUs, or set device_map and max_memory by hand."}},

	// TPUs.
	{name: "xla-tpu", framework: "jax", backend: "tpu", match: words.Lazy(`Ran out of memory in memory space \w+`),
		parts: []part{
			find(`Used SIZE of`, requested), find(`Used [\d.]+\w* of SIZE`, total), findText(`memory space (\w+)`, name),
			find(`Scoped allocation with size SIZE`, requested), find(`and limit SIZE exceeded`, allowed)}, says: []string{
			"XLA compiled a program that needs {asked} of the TPU's {name}, which has {total}. Nothing was run yet. | A " +
				"kernel asked for {asked} of the TPU's {name} at once, and its limit is {limit}. Nothing was run yet. | XLA " +
				"compiled a program that needs more of the TPU's {name} than it has. Nothing was run yet.",
			"{over} are too much. In hbm a smaller batch, sharding, remat (jax.checkpoint) and donated arguments help; in " +
				"vmem a kernel's block sizes decide. | In hbm a smaller batch, sharding, remat (jax.checkpoint) and donated " +
				"arguments help; in vmem a kernel's block sizes decide."}},
	{name: "tpu-runtime", framework: "jax", backend: "tpu",
		match: words.Lazy(`Attempting to (?:allocate|reserve) [\d.]+[KMGT]\b[^\n]*not possible`), parts: []part{
			find(`Attempting to (?:allocate|reserve) SIZE`, requested), find(`There are SIZE free`, free)}, says: []string{
			"The TPU's runtime asked for {asked} of HBM and could not get it; {free} were free.",
			"Arrays of earlier programs hold the rest: delete or donate what is not needed."}},

	// TensorFlow's other words.
	{name: "tensorflow-dst", framework: "tensorflow", match: words.Lazy(`Dst tensor is not initialized`), says: []string{
		"TensorFlow could not allocate on the GPU what it was to copy there: this is its way to say out of memory.",
		"The message does not say how much it asked for."}},
}

// lowerLength is what helps where one sequence is too long for vLLM's KV cache.
const lowerLength = "Lower max_model_len to {tokens}, which the message says fits, raise gpu_memory_utilization, or use " +
	"an 8-bit KV cache (kv_cache_dtype). | Lower max_model_len, raise gpu_memory_utilization, or use an 8-bit KV cache " +
	"(kv_cache_dtype)."

var placeholder = words.Lazy(`\{\w+\}`)

// figureOf is a figure of a message in words, by its name in sentences; "": the message does not state it.
func figureOf(m *mem.OOMMessage, figure string) string {
	if figure == "name" {
		return m.Name
	}
	if n, ok := m.PID.Get(); ok && figure == "pid" {
		return fmt.Sprint(n)
	}
	if n, ok := m.Tokens.Get(); ok && figure == "tokens" {
		return fmt.Sprint(n)
	}
	size := map[string]mem.Optional{"asked": m.Requested, "free": m.Free, "limit": m.Allowed, "total": m.Total,
		"used": m.InUse, "held": m.Allocated}[figure]
	if asked, ok := m.Requested.Get(); ok && figure == "over" && m.Total.Known() && asked > m.Total.Or(0) {
		size = mem.Some(asked - m.Total.Or(0))
	}
	if !size.Known() {
		return ""
	}
	return of(size).String()
}

// fillIn fills a sentence's figures in; "": of no alternative the message states all.
func fillIn(sentence string, m *mem.OOMMessage) string {
	for alternative := range strings.SplitSeq(sentence, " | ") {
		complete := true
		text := placeholder.Regexp().ReplaceAllStringFunc(alternative, func(figure string) string {
			text := figureOf(m, figure[1:len(figure)-1])
			complete = complete && text != ""
			return text
		})
		if complete {
			return strings.TrimSpace(text)
		}
	}
	return ""
}
