package oomtext

import (
	"fmt"
	"regexp"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// others are what libraries, kernels, schedulers and runtimes print, the more particular first. Their sentences
// have the message's figures in braces ({asked}, {limit}, …); of alternatives, parted by " | ", the first is said whose
// figures the message states, and none if there is none. Add yours here, and a line in TestKindsOfMessages.
var others = []wording{
	// Frameworks and libraries on a GPU.
	{name: "cublas", framework: "cublas", match: words.Lazy(`CUBLAS_STATUS_ALLOC_FAILED`), says: []string{
		"cuBLAS could not allocate on the GPU; the message does not say how much it asked for.",
		"Its workspace lies outside the framework's allocator, which may hold nearly all of the device: hold less, or cap the allocator (torch.cuda.set_per_process_memory_fraction)."}},
	{name: "cublas-unclear", framework: "cublas", match: words.Lazy(`CUBLAS_STATUS_NOT_INITIALIZED`), says: []string{
		"cuBLAS could not start. A full GPU is a common cause, and not the only one: the message does not tell.",
		"Try it with a small batch. If it works then, memory was the cause; if not, an error of an earlier kernel is another (CUDA_LAUNCH_BLOCKING=1 shows where)."}},
	{name: "cuda-library", framework: "cuda", match: words.Lazy(`CUFFT_ALLOC_FAILED|(?:CUSOLVER|CUSPARSE)_STATUS_ALLOC_FAILED|CURAND_STATUS_ALLOCATION_FAILED|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES`), parts: []part{findText(`(CUFFT|CUSOLVER|CUSPARSE|CURAND)_`, name)}, says: []string{
		"A library of CUDA ({name}) could not allocate what it needs to work; the message does not say how much, nor whether on the GPU or on the host.",
		"What such libraries take lies outside the framework's allocator: hold less, or leave them room."}},
	{name: "cudnn", framework: "cudnn", match: words.Lazy(`CUDNN_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED`), says: []string{
		"cuDNN could not allocate on the GPU; the message does not say how much it asked for.",
		"Its handles and workspaces need room beside the tensors: hold less at once."}},
	{name: "cudnn-unclear", framework: "cudnn", match: words.Lazy(`(?:Unable to find a valid cuDNN algorithm|unable to find an engine to execute this computation|cuDNN failed to initialize|CUDNN_STATUS_NOT_INITIALIZED)`), says: []string{
		"cuDNN could not start or found no algorithm. A full GPU is a common cause, and not the only one: the message does not tell.",
		"Try it with a small batch. If it works then, memory was the cause; if not, look at the versions of cuDNN and the driver."}},
	{name: "nccl", framework: "nccl", match: words.Lazy(`Cuda failure (?:\d+ )?'out of memory'`), says: []string{
		"NCCL could not allocate its buffers on the GPU; the message does not say how much it asked for.",
		"NCCL's buffers lie outside the framework's allocator: some hundred MiB for each communicator. Leave it room, or create fewer process groups."}},
	{name: "nccl-alloc", framework: "nccl", match: words.Lazy(`Failed to CUDA (?:host )?(?:calloc|malloc|alloc)`), parts: []part{find(`alloc(?: async)? SIZE`, requested)}, says: []string{
		"NCCL could not allocate {asked}. | NCCL could not allocate.",
		"The line does not say why: a full GPU is the usual cause (for a host allocation, pinned host memory), an earlier error of CUDA another. The lines of NCCL_DEBUG=WARN above it tell.",
		"NCCL's buffers lie outside the framework's allocator."}},
	{name: "nccl-shm", framework: "nccl", backend: "shm", match: words.Lazy(`[Ee]rror while creating shared memory segment /dev/shm/nccl`), parts: []part{findNumber(`nccl\S* \(size (\d+)\)`, requested)}, says: []string{
		"NCCL could not create a segment of {asked} in /dev/shm. | NCCL could not create a segment in /dev/shm.", shmAdvice}},
	{name: "cupy", framework: "cupy", match: words.Lazy(`cupy\S*OutOfMemoryError|Out of memory allocating [\d,]+ bytes \(allocated so far`), parts: []part{
		find(`allocating SIZE`, requested), find(`allocated so far: SIZE`, allocated), find(`limit set to: SIZE`, allowed)}, says: []string{
		"CuPy asked for {asked} on the GPU and could not get it. | CuPy could not allocate on the GPU.",
		"Its pool had taken {held} so far.",
		"A limit of {limit} is set for the pool.",
		"What a pool holds and no array uses goes back with cupy.get_default_memory_pool().free_all_blocks(); the message does not say how much that is."}},
	{name: "rmm", framework: "rmm", match: words.Lazy(`(?:std::bad_alloc: )?out_of_memory: (?:CUDA error|RMM failure)|[Mm]aximum pool size exceeded`), parts: []part{
		find(`failed to allocate SIZE`, requested)}, says: []string{
		"RMM (RAPIDS) asked for {asked} on the GPU and could not get it. | RMM (RAPIDS) could not allocate on the GPU; the message does not say how much it asked for.",
		"Where a pool was made with a maximum size, that is the limit; else it is the device."}},
	{name: "xgboost", framework: "xgboost", match: words.Lazy(`Memory allocation error on worker`), parts: []part{
		find(`Requested memory: SIZE`, requested), find(`Free memory: SIZE`, free)}, says: []string{
		"XGBoost asked for {asked} on the GPU and could not get it. | XGBoost could not allocate on the GPU.",
		"{free} were free.", "QuantileDMatrix, fewer bins (max_bin) and external memory need less."}},
	{name: "tensorrt-tactic", framework: "tensorrt", match: words.Lazy(`[Mm]emory is insufficient to use tactic|insufficient memory on requested size`), parts: []part{
		find(`request: SIZE`, requested), find(`requested size of (\d+)`, requested), find(`Available: SIZE`, free)}, says: []string{
		"TensorRT passed over a tactic that needs {asked}, where {free} were free: a warning, no failure. | TensorRT passed over a tactic for lack of memory: a warning, no failure.",
		"The engine is built with other tactics, which may be slower."}},
	{name: "tensorrt-llm", framework: "tensorrt-llm", match: words.Lazy(`\[TensorRT-LLM\]\[ERROR\][^\n]*out of memory`), says: []string{
		"TensorRT-LLM could not allocate on the GPU; the message does not say how much it asked for.",
		"The engine's batch and lengths (max_batch_size, max_num_tokens) and the share for the KV cache (free_gpu_memory_fraction) decide what it takes."}},
	{name: "triton-server", framework: "triton-server", match: words.Lazy(`CNMEM_STATUS_OUT_OF_MEMORY|failed to allocate CUDA memory with byte size`), parts: []part{
		findNumber(`byte size (\d+)`, requested), findNumber(`on GPU (\d+)`, device)}, says: []string{
		"Triton Inference Server had no room for {asked} in its pool of CUDA memory. | Triton Inference Server had no room in its pool of CUDA memory.",
		"That is the pool's size (--cuda-memory-pool-byte-size), not the device's: what models hold lies elsewhere."}},
	{name: "bitsandbytes", framework: "bitsandbytes", match: words.Lazy(`(?i)error:? (?:CUDA )?out of memory at line \d+ in file \S*(?:pythonInterface|ops)\.`), says: []string{
		"bitsandbytes asked the CUDA driver for memory and could not get it; the message does not say how much.",
		"Nor does it say of which kind: workspaces lie on the GPU, states of paged optimizers in managed memory, which the host must have too."}},
	{name: "tensorrt", framework: "tensorrt", match: words.Lazy(`Requested amount of GPU memory \(\d+ bytes\) could not be allocated|\[TRT\][^\n]*OutOfMemory`), parts: []part{
		find(`Requested amount of GPU memory \(SIZE\)`, requested), find(`Requested size was SIZE`, requested)}, says: []string{
		"TensorRT asked for {asked} on the GPU and could not get it. | TensorRT could not allocate on the GPU.",
		"While it builds an engine it tries tactics, and a tactic without room is passed over: this is not a failure if the build goes on."}},
	{name: "onnxruntime", framework: "onnxruntime", match: words.Lazy(`BFCArena::AllocateRawInternal|Failed to allocate memory for requested buffer of size`), parts: []part{
		findNumber(`requested bytes of (\d+)`, requested), findNumber(`requested buffer of size (\d+)`, requested), findNumber(`Available memory of (\d+)`, free)}, says: []string{
		"ONNX Runtime's arena asked for {asked} and could not get it. | ONNX Runtime's arena could not grow.",
		"{free} were left to it.",
		"The arena grows by powers of two unless arena_extend_strategy is kSameAsRequested; gpu_mem_limit caps it."}},
	{name: "paddle", framework: "paddle", match: words.Lazy(`Out of memory error on GPU \d+\. Cannot allocate`), parts: []part{
		find(`Cannot allocate SIZE`, requested), findNumber(`error on GPU (\d+)`, device), find(`SIZE memory has been allocated`, allocated), find(`available memory is only SIZE`, free)}, says: []string{
		"Paddle asked for {asked} on the GPU and could not get it.", "{held} were allocated and {free} free."}},
	{name: "julia", framework: "julia", match: words.Lazy(`Out of GPU memory trying to allocate`), parts: []part{
		find(`trying to allocate SIZE`, requested), find(`GPU memory usage: [\d.]+% \(SIZE/`, inUse), find(`GPU memory usage: [\d.]+% \([^/]*/SIZE\)`, total)}, says: []string{
		"CUDA.jl asked for {asked} on the GPU and could not get it.", "{used} of the device's {total} were in use, by all processes."}},
	{name: "mlx", framework: "mlx", backend: "metal", match: words.Lazy(`\[metal::malloc\] Attempting to allocate`), parts: []part{
		find(`Attempting to allocate SIZE`, requested), find(`maximum allowed buffer size of SIZE`, allowed)}, says: []string{
		"MLX asked for one buffer of {asked}; Metal allows buffers of at most {limit} each. | MLX asked for {asked} of unified memory and could not get it.",
		"This is a limit of one buffer, not of all memory: split the array. | Hold less at once."}},
	{name: "mlx-count", framework: "mlx", backend: "metal", match: words.Lazy(`\[metal::malloc\] Resource limit`), says: []string{
		"MLX holds as many buffers as Metal allows: this is their number, not their bytes.",
		"A graph that is never evaluated, or many small arrays that are kept, does this: call mx.eval more often, or drop them."}},
	{name: "mps-buffer", framework: "pytorch", backend: "mps", match: words.Lazy(`Invalid buffer size: \d|total bytes of NDArray > 2\*\*32`), parts: []part{find(`buffer size: SIZE`, requested)}, says: []string{
		"One tensor of {asked} is larger than Metal allows for a buffer on this machine. | One tensor of more than 4 GiB is larger than Metal allows for an array.",
		"This is a limit of one buffer, not of all memory: split the tensor (shorter sequences, smaller batches, attention in slices)."}},
	{name: "metal", framework: "metal", backend: "metal", match: words.Lazy(`kIOGPUCommandBufferCallbackErrorOutOfMemory`), says: []string{
		"Metal could not get memory for a command buffer; the message does not say how much.", "Apple's GPU shares memory with all programs: close others, or hold less at once."}},
	{name: "xpu-block", framework: "pytorch", backend: "xpu", match: words.Lazy(`can NOT allocate memory block with size larger than 4GB`), parts: []part{find(`Tried to allocate SIZE`, requested)}, says: []string{
		"PyTorch asked for one block of {asked}; Intel's runtime here allows blocks of at most 4 GiB each. | Intel's runtime here allows blocks of at most 4 GiB each, and PyTorch asked for a larger one.",
		"This is a limit of one block, not of all memory: split the tensor, or see whether a newer driver allows larger ones."}},
	{name: "sycl", framework: "sycl", backend: "xpu", match: words.Lazy(`PI_ERROR_OUT_OF_RESOURCES|UR_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)|PI_ERROR_MEM_OBJECT_ALLOCATION_FAILURE`), says: []string{
		"Intel's runtime reports that a resource of the GPU ran out. Memory is the usual one; the message does not tell which, nor how much was asked for."}},
	{name: "hip", framework: "hip", backend: "hip", match: words.Lazy(`hipErrorOutOfMemory|HIP error: out of memory`), says: []string{
		"The HIP driver had no memory for a request on the GPU; the message does not say how much it asked for."}},
	{name: "hsa", framework: "hip", backend: "hip", match: words.Lazy(`HSA_STATUS_ERROR_OUT_OF_RESOURCES`), says: []string{
		"ROCm's runtime reports that a resource ran out. Memory of the GPU is the usual one, threads and system memory others: the message does not tell which."}},
	{name: "vulkan", framework: "vulkan", backend: "vulkan", match: words.Lazy(`ErrorOutOfDeviceMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY`), parts: []part{findNumber(`allocation of size (\d+) failed`, requested)}, says: []string{
		"The Vulkan driver could not give {asked} on the GPU. | The Vulkan driver had no memory for a request on the GPU; the message does not say how much.",
		"Drivers also bound one allocation: a request above that fails on an empty GPU too."}},
	{name: "opencl", framework: "opencl", backend: "opencl", match: words.Lazy(`CL_MEM_OBJECT_ALLOCATION_FAILURE|CL_OUT_OF_RESOURCES|CL_OUT_OF_HOST_MEMORY`), says: []string{
		"The OpenCL driver reports that memory or another resource ran out; the message does not tell which, nor how much was asked for."}},
	{name: "neuron", framework: "neuron", backend: "neuron", match: words.Lazy(`Failed to alloc(?:ate)? DEVICE memory|nrt_\w+ status=4 message=\S?"?Allocation Failure|NRT_RESOURCE\b`), parts: []part{findNumber(`DEVICE memory: (\d+)`, requested)}, says: []string{
		"AWS Neuron's runtime could not allocate {asked} of the accelerator's memory. | AWS Neuron's runtime could not get a resource of the accelerator; memory is the usual one, and the message does not say how much.",
		"That request was the last of many: how much the model takes in all stands elsewhere in its log (`neuron-top` shows it while it runs)."}},
	{name: "habana", framework: "habana", backend: "hpu", match: words.Lazy(`PT_DEVMEM Allocation failed`), parts: []part{findNumber(`for size::(\d+)`, requested)}, says: []string{
		"PyTorch on Intel Gaudi asked for {asked} and could not get it. | PyTorch on Intel Gaudi could not allocate on the accelerator."}},
	{name: "ptxas", framework: "cuda", backend: "kernel", match: words.Lazy(`uses too much shared data`), says: []string{
		"A kernel needs more of the memory on the chip (shared memory) than a block may have: this is not the device's memory, and a smaller batch does not help.",
		"Smaller tiles or fewer stages of that kernel do."}},
	{name: "triton", framework: "triton", backend: "kernel", match: words.Lazy(`out of resource: (?:shared memory|threads|tensor memory|registers)`), parts: []part{
		findNumber(`Required: (\d+)`, requested), findNumber(`Hardware limit: ?(\d+)`, allowed)}, says: []string{
		"A Triton kernel needs {asked} of the memory on the chip (shared memory) of one block; the GPU has {limit}. | A Triton kernel needs more of a resource on the chip than the GPU has.",
		"This is not the device's memory: smaller blocks (BLOCK_SIZE) or fewer num_stages help, a smaller batch does not."}},

	{name: "llama.cpp", framework: "llama.cpp", match: words.Lazy(`ggml_backend_\w+: allocating [\d.]+ MiB on device|unable to allocate \w+ buffer|failed to allocate (?:\w+ )?buffer of size \d+|failed to allocate (?:compute (?:pp )?buffers|buffer for kv cache)`), parts: []part{
		find(`allocating SIZE on device`, requested), findNumber(`buffer of size (\d+)`, requested), findNumber(`on device (\d+): cudaMalloc`, device),
		findText(`allocate ((?:CUDA|CPU|ROCm|Vulkan|SYCL|Metal|MTL|CANN|MUSA)\w*) buffer`, name)}, says: []string{
		"llama.cpp asked for one buffer of {asked} on {name} and could not get it. | llama.cpp asked for one buffer of {asked} and could not get it. | llama.cpp could not allocate a buffer on {name}; the message does not say how much. | llama.cpp could not allocate a buffer; the message does not say how much.",
		"Fewer layers on the GPU (-ngl), a shorter context (-c) or a smaller quantisation need less."}},
	{name: "mlock", framework: "system", backend: "host", match: words.Lazy(`failed to mlock \d+-byte buffer`), parts: []part{findNumber(`mlock (\d+)-byte`, requested)}, says: []string{
		"{asked} could not be locked in memory: that is a limit of the user (`ulimit -l`), not a want of memory.",
		"It is a warning: the program goes on, and the system may swap those pages."}},
	{name: "xla-remat", framework: "jax", backend: "xla", match: words.Lazy(`Can't reduce memory use below`), parts: []part{
		find(`memory use below SIZE`, allowed), find(`only reduced to SIZE`, requested)}, says: []string{
		"XLA's compiler could bring what the program needs down to {asked} only, and aimed at {limit}. | XLA's compiler could not bring what the program needs down to what it aimed at.",
		"This is a warning, no failure: when the program runs, it may run out of memory."}},
	{name: "tensorflow-driver", framework: "tensorflow", match: words.Lazy(`failed to allocate [\d.]+[KMGT]?i?B? \(\d+ bytes\) from device`), parts: []part{find(`failed to allocate [^(]*\(SIZE\)`, requested)}, says: []string{
		"TensorFlow asked the driver for {asked} and could not get it.",
		"At its start it tries to take nearly the whole GPU, and less if that fails: alone this line is not a failure. Another program may hold memory (nvidia-smi)."}},
	{name: "cuda-driver", framework: "cuda", match: words.Lazy(`(?i)CUDA(?:_ERROR_OUT_OF_MEMORY| error: out of memory| failure \d+: out of memory| runtime error[^\n]*out of memory|\] out of memory|Malloc [^\n]*failed[^\n]*out of memory|Malloc failed[^\n]*out of memory)|cudaErrorMemoryAllocation`), says: []string{
		"The CUDA driver ran out of memory; the message does not say how much it asked for.",
		"A framework's own allocator would say how much, so the request came past the framework's allocator, if there is one: a library, a context, pinned memory.",
		"Another process that holds the device is a cause, too (nvidia-smi)."}},

	{name: "torch-bare", framework: "pytorch", match: words.Lazy(`OutOfMemoryError: Allocation on device`), says: []string{
		"PyTorch could not allocate on the GPU; the message does not say how much it asked for, nor what it held.",
		"The error as the program itself prints it, with its figures, or a snapshot of the allocator says more."}},

	// Serving.
	{name: "vllm-startup", framework: "vllm", match: words.Lazy(`[Ff]ree memory on device .* on startup is less than desired GPU memory utilization`), parts: []part{
		find(`/SIZE\) on startup`, total), find(`utilization \([\d.]+, SIZE\)`, requested)}, says: []string{
		"vLLM wants {asked} of the GPU's {total}, and less was free at the start.",
		"Something else holds the rest: look at nvidia-smi, or lower gpu_memory_utilization."}},
	{name: "vllm-kv", framework: "vllm", match: words.Lazy(`KV cache is needed, which is larger than the available KV cache memory`), parts: []part{
		find(`\(SIZE KV cache is needed`, requested), find(`KV cache is needed, [^)]*KV cache memory \(SIZE\)`, free)}, says: []string{
		"One request of the longest length needs {asked} of KV cache; {free} are left for it beside the weights. | One request of the longest length needs more KV cache than is left beside the weights.",
		"Lower max_model_len, raise gpu_memory_utilization, or use an 8-bit KV cache (kv_cache_dtype)."}},
	{name: "vllm-kv-tokens", framework: "vllm", match: words.Lazy(`larger than the maximum number of tokens that can be stored in KV cache`), says: []string{
		"The longest request allowed does not fit into the KV cache that is left beside the weights.",
		"Lower max_model_len, raise gpu_memory_utilization, or use an 8-bit KV cache (kv_cache_dtype)."}},
	{name: "vllm-no-blocks", framework: "vllm", match: words.Lazy(`No available memory for the cache blocks`), says: []string{
		"vLLM has no memory left for the KV cache: weights and activations take the whole share that it may use.",
		"Raise gpu_memory_utilization, quantise the weights, or split the model over GPUs (tensor_parallel_size)."}},
	{name: "vllm-warmup", framework: "vllm", match: words.Lazy(`out of memory occurred when warming up`), parts: []part{findText(`with (\d+) dummy requests`, name)}, says: []string{
		"vLLM ran out of the GPU's memory as it tried its last stage with {name} requests at once; how much it asked for stands in the error above, if at all. | vLLM ran out of the GPU's memory as it tried its last stage; how much it asked for stands in the error above, if at all.",
		"Lower max_num_seqs or gpu_memory_utilization."}},
	{name: "vllm-profiling", framework: "vllm", match: words.Lazy(`Error in memory profiling`), says: []string{
		"Nothing ran out: while vLLM measured its own use, the GPU's free memory grew, as another program gave some back.",
		"Start it again when no other program on the GPU begins or ends."}},
	{name: "tgi", framework: "tgi", match: words.Lazy(`Not enough memory to handle [\d\w ]*prefill tokens`), says: []string{
		"Text Generation Inference ran out of the GPU's memory as it tried its largest prefill; the message does not say how much it asked for.",
		"Lower --max-batch-prefill-tokens, or take more GPUs (--num-shard)."}},
	{name: "sglang-retracted", framework: "sglang", match: words.Lazy(`Decode out of memory happened|KV cache pool is full\. Retract`), says: []string{
		"SGLang's pool for the KV cache was full, so requests were put back to run later: it slows down, and is not a failure.",
		"Fewer requests at once (--max-running-requests) or a larger pool (--mem-fraction-static) avoid it."}},
	{name: "sglang-pool", framework: "sglang", match: words.Lazy(`(?:Decode|Prefill) out of memory\. Try to lower your batch size`), says: []string{
		"SGLang's pool for the KV cache had no room for the tokens of a batch: that is the pool's size, not the device's.",
		"Fewer requests at once (--max-running-requests), shorter prefills (--chunked-prefill-size) or a larger pool (--mem-fraction-static) help."}},
	{name: "exllama", framework: "exllama", match: words.Lazy(`Insufficient VRAM for model and cache`), says: []string{
		"ExLlama does not fit the model and its cache into the GPUs by the split that it was given; the message does not say how much is missing.",
		"A shorter cache (max_seq_len), a quantised one, or another split needs less."}},
	{name: "sglang", framework: "sglang", match: words.Lazy(`Not enough memory\. Please try to increase --mem-fraction-static`), says: []string{
		"SGLang's share of the GPU is too small for the weights and any KV cache.", "Raise --mem-fraction-static, or split the model over GPUs (--tp)."}},
	{name: "ollama", framework: "ollama", backend: "host", match: words.Lazy(`model requires more system memory`), parts: []part{
		find(`system memory \(SIZE\)`, requested), find(`than is available \(SIZE\)`, free)}, says: []string{
		"Ollama estimates that the model needs {asked} of host memory; {free} are available.", "A smaller model or quantisation, or a shorter context (num_ctx), needs less."}},
	{name: "ollama-killed", framework: "ollama", backend: "host", match: words.Lazy(`llama runner process has terminated: signal: killed`), says: []string{
		"Ollama's runner was killed (SIGKILL) from outside. The kernel's out-of-memory killer is the usual cause: the message does not say.",
		"`dmesg -T | grep -i 'killed process'` on that machine tells."}},
	{name: "accelerate", framework: "accelerate", match: words.Lazy(`Some modules are dispatched on the CPU or the disk`), says: []string{
		"The model does not fit on the GPUs by Accelerate's own estimate, so parts would go to the CPU, which quantised layers do not allow.",
		"Nothing ran out yet. Use a smaller model, more GPUs, or set device_map and max_memory by hand."}},

	// TPUs.
	{name: "xla-tpu", framework: "jax", backend: "tpu", match: words.Lazy(`Ran out of memory in memory space \w+`), parts: []part{
		find(`Used SIZE of`, requested), find(`Used [\d.]+\w* of SIZE`, total), findText(`memory space (\w+)`, name)}, says: []string{
		"XLA compiled a program that needs {asked} of the TPU's {name}, which has {total}. Nothing was run yet.",
		"{over} are too much. In hbm a smaller batch, sharding, remat (jax.checkpoint) and donated arguments help; in vmem a kernel's block sizes decide."}},
	{name: "tpu-runtime", framework: "jax", backend: "tpu", match: words.Lazy(`Attempting to (?:allocate|reserve) [\d.]+[KMGT]\b[^\n]*not possible`), parts: []part{
		find(`Attempting to (?:allocate|reserve) SIZE`, requested), find(`There are SIZE free`, free)}, says: []string{
		"The TPU's runtime asked for {asked} of HBM and could not get it; {free} were free.",
		"Arrays of earlier programs hold the rest: delete or donate what is not needed."}},

	// TensorFlow's other words.
	{name: "tensorflow-dst", framework: "tensorflow", match: words.Lazy(`Dst tensor is not initialized`), says: []string{
		"TensorFlow could not allocate on the GPU what it was to copy there: this is its way to say out of memory.", "The message does not say how much it asked for."}},

	// Host memory, in the process.
	{name: "numpy", framework: "numpy", backend: "host", match: words.Lazy(`Unable to allocate [\d.]+ \w+ for an array with shape`), parts: []part{
		find(`Unable to allocate SIZE`, requested)}, says: []string{
		"NumPy asked for {asked} of host memory for one array, and the system refused at once.",
		"The system refuses a request only by a limit (ulimit -v), strict overcommit, or its own estimate of what can ever be; see whether the shape is what you meant."}},
	{name: "arrow", framework: "arrow", backend: "host", match: words.Lazy(`ArrowMemoryError|(?:malloc|realloc) of size \d+ failed`), parts: []part{findNumber(`of size (\d+) failed`, requested)}, says: []string{
		"Arrow asked for {asked} of host memory, and the system refused. | Arrow asked for host memory, and the system refused."}},
	{name: "rust", framework: "rust", backend: "host", match: words.Lazy(`memory allocation of \d+ bytes failed`), parts: []part{find(`allocation of SIZE`, requested)}, says: []string{
		"A library in Rust (Polars, tokenizers, safetensors…) asked for {asked} of host memory; the system refused, and the program aborted."}},
	{name: "java", framework: "java", backend: "host", match: words.Lazy(`java\.lang\.OutOfMemoryError`), says: []string{
		"The Java heap, or another part of the JVM's memory, is full. Its size is a setting (-Xmx, spark.driver.memory, spark.executor.memory), not what the machine has."}},
	{name: "windows-commit", framework: "windows", backend: "host", match: words.Lazy(`WinError 1455|paging file is too small`), says: []string{
		"Windows had no room left to commit memory: RAM and page file together are promised away, which need not mean that they are used.",
		"Enlarge the page file, or start fewer workers: each process that loads CUDA's libraries commits gigabytes."}},
	{name: "windows-memory", framework: "windows", backend: "host", match: words.Lazy(`WinError (?:8|14)\]`), says: []string{
		"Windows had no memory for a request; the message does not say how much. RAM and page file together bound it."}},
	{name: "node", framework: "node", backend: "host", match: words.Lazy(`JavaScript heap out of memory`), says: []string{
		"The heap of a JavaScript engine is full. Its size is a setting (node --max-old-space-size), not what the machine has."}},
	{name: "go", framework: "go", backend: "host", match: words.Lazy(`fatal error: runtime: (?:out of memory|cannot allocate memory)`), says: []string{
		"A program in Go asked for host memory, and the system refused; the message does not say how much."}},
	{name: "compiler", framework: "compiler", backend: "host", match: words.Lazy(`fatal error: Killed signal terminated program|virtual memory exhausted: Cannot allocate|\b(?:cc1plus|cc1|ld|cicc|ptxas)\S*: out of memory`), says: []string{
		"A compiler ran out of host memory or was killed: this is memory of a build on the host, not of the GPU.",
		"Build fewer files at once (MAX_JOBS=1, make -j1), or install a package that is already built."}},
	{name: "yarn", framework: "yarn", backend: "container", match: words.Lazy(`killed by YARN for exceeding (?:physical )?memory limits|is running beyond (?:physical|virtual) memory limits`), parts: []part{
		find(`SIZE of [\d.]+ ?\w+ (?:physical|virtual) memory used`, inUse), find(`[\d.]+ ?\w+ of SIZE (?:physical|virtual) memory used`, allowed)}, says: []string{
		"YARN killed the container: it used {used} of {limit}. | YARN killed the container, as it used more than its limit.",
		"What lies outside the Java heap counts too, Python workers above all: raise spark.executor.memoryOverhead."}},
	{name: "dask", framework: "dask", backend: "host", match: words.Lazy(`exceeded \d+% memory budget`), says: []string{
		"Dask's nanny restarted a worker that neared its own limit (memory_limit); the machine may have had room.", "Smaller partitions, or fewer and larger workers, need less at once."}},

	// Shared memory.
	{name: "torch-bus-error", framework: "pytorch", backend: "shm", match: words.Lazy(`killed by signal: Bus error|workers are out of shared memory`), parts: worker, says: []string{
		"DataLoader worker {pid} died of a bus error. A full /dev/shm is the usual cause, as workers pass tensors through it; the message is not sure. | A DataLoader worker died of a bus error. A full /dev/shm is the usual cause, as workers pass tensors through it; the message is not sure.",
		shmAdvice}},
	{name: "torch-worker-killed", framework: "pytorch", backend: "host", match: words.Lazy(`DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:is killed by signal: Killed|exited unexpectedly)`), parts: worker, says: []string{
		"DataLoader worker {pid} was killed or ended from outside its own code. The kernel's out-of-memory killer is one cause of several: the message does not say. | A DataLoader worker was killed or ended from outside its own code; the message does not say by what.",
		"`dmesg -T | grep -i 'killed process'` tells. Each worker holds its own copy of what it changes, and prefetch_factor batches."}},
	{name: "torch-shm", framework: "pytorch", backend: "shm", match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|resize file|mmap \d+ bytes from file)[^\n]*No space left`), parts: []part{
		find(`mmap SIZE`, requested)}, says: []string{
		"PyTorch could not put a tensor of {asked} into shared memory (/dev/shm): it is full. | PyTorch could not put a tensor into shared memory (/dev/shm): it is full.",
		shmAdvice}},

	{name: "torch-mmap", framework: "pytorch", backend: "shm", match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|resize file|mmap \d+ bytes from file)[^\n]*Cannot allocate memory`), parts: []part{
		find(`mmap SIZE`, requested)}, says: []string{
		"PyTorch could not map a tensor of {asked} into shared memory: the system refused (ENOMEM). | PyTorch could not map a tensor into shared memory: the system refused (ENOMEM).",
		"Too many mappings (vm.max_map_count) or a limit on the process's memory cause it. The message does not say that /dev/shm was full.",
		"Fewer tensors per batch of the workers, or torch.multiprocessing.set_sharing_strategy('file_system'), need fewer mappings."}},
	{name: "torch-files", framework: "pytorch", backend: "shm", match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|resize file|mmap \d+ bytes from file)[^\n]*Too many open files`), says: []string{
		"The process has as many files open as it may: each tensor in shared memory holds one. This is not a lack of memory.",
		"Raise the limit (`ulimit -n`), or use torch.multiprocessing.set_sharing_strategy('file_system')."}},

	// Kernels, schedulers, clusters: who killed the program, and by which limit.
	{name: "kernel-cgroup", framework: "kernel", backend: "cgroup", match: words.Lazy(`Memory cgroup out of memory: Kill|CONSTRAINT_MEMCG`), parts: killed, says: []string{
		"The kernel killed process {pid} ({name}): its cgroup (a container, a job, a service) reached its limit. | The kernel killed a process, as its cgroup (a container, a job, a service) reached its limit.",
		"That process held {held} of anonymous memory; all of the group's processes count, and files in /dev/shm too.",
		"The limit was {limit}.",
		"The machine itself may have had room: raise the limit, or let all processes of the group hold less."}},
	{name: "kernel", framework: "kernel", backend: "host", match: words.Lazy(`Out of memory: Kill(?:ed)? process|Out of memory \(oom_kill_allocating_task\)|invoked oom-killer`), parts: killed, says: []string{
		"The kernel killed process {pid} ({name}), as the machine had no memory left. | The kernel's out-of-memory killer ran.",
		"It held {held} of anonymous memory.",
		"It was chosen as it held most by the kernel's score; who asked last, or who grew, may be another."}},
	{name: "systemd-oomd", framework: "systemd", backend: "cgroup", match: words.Lazy(`systemd-oomd killed|killed by systemd-oomd|killed by the OOM killer|systemd-oomd\[\d+\]: Killed|Failed with result 'oom-kill'`), says: []string{
		"systemd reports that a process of a unit was killed for lack of memory: by the kernel, or by systemd-oomd, which acts on memory pressure and full swap before memory is gone.",
		"`journalctl -k` and `journalctl -u systemd-oomd` have the figures."}},
	{name: "earlyoom", framework: "earlyoom", backend: "host", match: words.Lazy(`sending SIG(?:TERM|KILL) to process \d+[^\n]*badness`), parts: []part{
		findNumber(`to process (\d+)`, pid), findText(`to process \d+[^"\n]*"([^"]*)"`, name), find(`VmRSS SIZE`, allocated)}, says: []string{
		"earlyoom ended process {pid} ({name}), as the machine had little memory left. | earlyoom ended process {pid}, as the machine had little memory left.",
		"It held {held} of host memory.",
		"It was chosen by the kernel's score: who grew may be another."}},
	{name: "kubernetes-node", framework: "kubernetes", backend: "host", match: words.Lazy(`System OOM encountered, victim process`), parts: []part{
		findNumber(`pid: (\d+)`, pid), findText(`victim process: ([^,\s]+)`, name)}, says: []string{
		"The kernel killed process {pid} ({name}), as the node itself had no memory left: no container's limit was reached. | The kernel killed a process, as the node itself had no memory left: no container's limit was reached.",
		"What pods request decides how many a node takes: requests below what they use lead to this."}},
	{name: "slurm-limit", framework: "slurm", backend: "cgroup", match: words.Lazy(`exceeded (?:job|step) memory limit|[Ee]xceeded job memory limit|exceeded memory limit \(\d+ > \d+\)`), parts: []part{
		findKilobytes(`memory limit \((\d+) >`, inUse), findKilobytes(`memory limit \(\d+ > (\d+)\)`, allowed)}, says: []string{
		"Slurm killed the job: it used {used}, and had asked for {limit}. | Slurm killed the job, as it used more memory than it had asked for.", slurmAdvice}},
	{name: "slurm", framework: "slurm", backend: "cgroup", match: words.Lazy(`[Dd]etected \d+ oom[-_]kill event|srun: error: .*: task \d+: Out Of Memory|State=OUT_OF_MEMORY|\bOUT_OF_ME\+?`), says: []string{
		"The kernel killed a process of the Slurm job, in most cases as the job reached the memory that it had asked for on this node. The message does not say which process, nor how much it held.", slurmAdvice}},
	{name: "lsf", framework: "lsf", backend: "cgroup", match: words.Lazy(`TERM_MEMLIMIT`), says: []string{
		"LSF killed the job: it reached the memory limit that it was submitted with (bsub -M).", "The report of LSF below it has Max Memory."}},
	{name: "pbs", framework: "pbs", backend: "cgroup", match: words.Lazy(`PBS: job killed: (?:p?v?mem) `), parts: []part{
		find(`mem SIZE exceeded`, inUse), find(`exceeded limit SIZE`, allowed)}, says: []string{
		"PBS killed the job: it used {used}, and its limit was {limit}.", "Ask for more (-l select=…:mem=…), or let it hold less."}},
	{name: "kubernetes-evicted", framework: "kubernetes", backend: "host", match: words.Lazy(`[Tt]he node was low on resource: memory`), parts: []part{
		find(`was using SIZE`, inUse), find(`request is SIZE`, requested), find(`available: SIZE`, free)}, says: []string{
		"Kubernetes evicted the pod, as the node ran low on memory: it was not the pod's limit.",
		"A container was using {used} and had requested {asked}. | A container was using {used}.",
		"Pods that use more than they request go first: request what it takes."}},
	{name: "kubernetes", framework: "kubernetes", backend: "cgroup", match: words.Lazy(`\bOOMKilled\b`), says: []string{
		"The kernel killed the container's process, in most cases as the container reached its memory limit; rarely the node itself was full.",
		"It is host memory, not the GPU's. A volume in memory (/dev/shm, emptyDir) counts towards the limit too."}},
	{name: "ray-node", framework: "ray", backend: "host", match: words.Lazy(`(?:due to the node running low on memory|killed due to memory pressure \(OOM\))`), parts: []part{
		find(`was running was SIZE /`, inUse), find(`was running was [^/]*/ SIZE`, total)}, says: []string{
		"Ray killed a task, as the node had {used} of {total} in use. | Ray killed a task or an actor, as its node ran low on memory.",
		"That is the whole node's memory, with other programs; Ray acts at a threshold (RAY_memory_usage_threshold), before the kernel does.",
		"The task killed is the one that can be tried again, not always the one that grew."}},
	{name: "ray-lost", framework: "ray", backend: "host", match: words.Lazy(`killed by SIGKILL by OOM killer due to high memory usage`), says: []string{
		"Ray lost a worker and does not know why. It lists the out-of-memory killer among several causes; that is not a finding.",
		"`dmesg -T | grep -i 'killed process'` on that node, and the worker's own log, tell."}},
	{name: "cloud", framework: "cloud", backend: "host", match: words.Lazy(`use an instance type with more memory|ran out-of-memory and exited with a non-zero status`), says: []string{
		"The cloud's service says that the job's machine ran out of host memory; the message does not say how much the job took.",
		"It is not the GPU's: a machine with more memory, fewer workers or smaller prefetches help."}},
	{name: "ray-store", framework: "ray", backend: "shm", match: words.Lazy(`ObjectStoreFullError`), says: []string{
		"Ray's object store is full, which lies in /dev/shm. References that live on keep objects there.", "Drop references (del, ray.internal.free), or give it more (object_store_memory)."}},
	{name: "killed", framework: "", backend: "host", match: words.Lazy(`(?:SIGKILL\)? received by PID \d+|exitcode ?: ?-9\b|[Ee]xit(?:ed)? (?:with )?(?:code|status):? 137\b|returncode=-9\b|Signals\.SIGKILL|terminated with signal SIGKILL|(?:line \d+:|zsh:)\s+(?:\d+ )?[Kk]illed\b|(?m:^Killed$))`), parts: []part{findNumber(`received by PID (\d+)`, pid)}, says: []string{
		"The process was killed (SIGKILL) from outside. The kernel's out-of-memory killer does so, and so do schedulers, time limits and people: the message does not say who.",
		"`dmesg -T | grep -i 'killed process'` on that machine, or the scheduler's account of the job, tells."}},
	{name: "jupyter", framework: "notebook", backend: "host", match: words.Lazy(`Kernel died, restarting|[Kk]ernel crashed while executing|kernel appears to have died`), says: []string{
		"The notebook's kernel ended, and the message does not say why. Host memory that ran out is a common cause, an error in native code another.",
		"`dmesg -T | grep -i 'killed process'` tells, or the same program outside of a notebook."}},
	{name: "colab", framework: "notebook", backend: "host", match: words.Lazy(`session crashed after using all available RAM`), says: []string{
		"The notebook's machine ran out of host memory (RAM), not of the GPU's."}},
	{name: "bad-alloc", framework: "c++", backend: "host", match: words.Lazy(`std::bad_alloc`), says: []string{
		"A C++ library asked for host memory and the system refused; the message does not say how much.",
		"The system refuses by a limit (ulimit -v), strict overcommit, or as the request is absurd: a corrupt file or a negative size looks like this too."}},
	{name: "enomem", framework: "system", backend: "host", match: words.Lazy(`\[Errno 12\]|(?:fork: |ENOMEM[^\n]*|errno = 12[^\n]*)Cannot allocate memory|Cannot allocate memory \(os error 12\)`), says: []string{
		"The system refused memory or a new process (ENOMEM). A fork needs room for a copy of what the parent may write: a large parent fails here first.",
		"Limits (ulimit -v, cgroups, vm.overcommit_memory=2) and the number of mappings (vm.max_map_count) give the same error."}},
	{name: "tensorflow-warning", framework: "tensorflow", backend: "host", match: words.Lazy(`Allocation of \d+ exceeds \d+% of free system memory`), parts: []part{findNumber(`Allocation of (\d+) exceeds`, requested)}, says: []string{
		"This is a warning, no failure: TensorFlow took {asked} of host memory at once."}},
	{name: "python", framework: "python", backend: "host", match: words.Lazy(`(?m)^\s*MemoryError\b`), says: []string{
		"Python asked for host memory and the system refused; the message does not say how much.",
		"On Linux that comes of a limit (ulimit -v), of strict overcommit, or of one absurd request: a machine that is merely full kills instead."}},
}

const (
	shmAdvice   = "/dev/shm is a file system in memory with a size of its own, 64 MiB in a container unless set: docker run --shm-size=8g or --ipc=host; in Kubernetes an emptyDir with medium Memory."
	slurmAdvice = "It is host memory, not the GPU's. Ask for more (--mem, --mem-per-cpu), or see with `sacct -j JOB -o MaxRSS,ReqMem` how much it took between samples."
)

var worker = []part{findNumber(`DataLoader worker \(pid\(?s?\)? ?(\d+)`, pid)}

// killed are the figures of the kernel's out-of-memory killer, whose kB are KiB.
var killed = []part{
	findNumber(`(?i)killed? process (\d+)`, pid), findText(`(?i)killed? process \d+ \(([^)]*)\)`, name),
	find(`anon-rss:SIZE`, allocated), find(`total-vm:SIZE`, other), find(`memory: usage [^,]*, limit SIZE`, allowed)}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// figureOf is a figure of a message in words, by its name in sentences; "": the message does not state it.
func figureOf(m *mem.OOMMessage, figure string) string {
	if figure == "name" {
		return m.Name
	}
	if n, ok := m.PID.Get(); ok && figure == "pid" {
		return fmt.Sprint(n)
	}
	size := map[string]mem.Optional{"asked": m.Requested, "free": m.Free, "limit": m.Allowed, "total": m.Total, "used": m.InUse, "held": m.Allocated}[figure]
	if asked, ok := m.Requested.Get(); ok && figure == "over" && m.Total.Known() && asked > m.Total.Or(0) {
		size = mem.Some(asked - m.Total.Or(0))
	}
	if !size.Known() {
		return ""
	}
	return of(size).String()
}

// say fills a sentence's figures in; "": of no alternative the message states all.
func say(sentence string, m *mem.OOMMessage) string {
	for alternative := range strings.SplitSeq(sentence, " | ") {
		complete := true
		text := placeholder.ReplaceAllStringFunc(alternative, func(figure string) string {
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
