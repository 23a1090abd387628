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
	{name: "cudnn", framework: "cudnn", match: words.Lazy(`CUDNN_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED`), says: []string{
		"cuDNN could not allocate on the GPU; the message does not say how much it asked for.",
		"Its handles and workspaces need room beside the tensors: hold less at once."}},
	{name: "cudnn-unclear", framework: "cudnn", match: words.Lazy(`(?:Unable to find a valid cuDNN algorithm|unable to find an engine to execute this computation|cuDNN failed to initialize|CUDNN_STATUS_NOT_INITIALIZED)`), says: []string{
		"cuDNN could not start or found no algorithm. A full GPU is a common cause, and not the only one: the message does not tell.",
		"Try it with a small batch. If it works then, memory was the cause; if not, look at the versions of cuDNN and the driver."}},
	{name: "nccl", framework: "nccl", match: words.Lazy(`Cuda failure (?:\d+ )?'out of memory'`), says: []string{
		"NCCL could not allocate its buffers on the GPU; the message does not say how much it asked for.",
		"NCCL's buffers lie outside the framework's allocator: some hundred MiB for each communicator. Leave it room, or create fewer process groups."}},
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
	{name: "tensorrt", framework: "tensorrt", match: words.Lazy(`Requested amount of GPU memory \(\d+ bytes\) could not be allocated|\[TRT\][^\n]*OutOfMemory`), parts: []part{
		find(`Requested amount of GPU memory \(SIZE\)`, requested), find(`Requested size was SIZE`, requested)}, says: []string{
		"TensorRT asked for {asked} on the GPU and could not get it. | TensorRT could not allocate on the GPU.",
		"While it builds an engine it tries tactics, and a tactic without room is passed over: this is no failure if the build goes on."}},
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
	{name: "metal", framework: "metal", backend: "metal", match: words.Lazy(`kIOGPUCommandBufferCallbackErrorOutOfMemory`), says: []string{
		"Metal could not get memory for a command buffer; the message does not say how much.", "Apple's GPU shares memory with all programs: close others, or hold less at once."}},
	{name: "sycl", framework: "sycl", backend: "xpu", match: words.Lazy(`PI_ERROR_OUT_OF_RESOURCES|UR_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)|PI_ERROR_MEM_OBJECT_ALLOCATION_FAILURE`), says: []string{
		"Intel's runtime reports that a resource of the GPU ran out. Memory is the usual one; the message does not tell which, nor how much was asked for."}},
	{name: "hip", framework: "hip", backend: "hip", match: words.Lazy(`hipErrorOutOfMemory|HIP error: out of memory`), says: []string{
		"The HIP driver had no memory for a request on the GPU; the message does not say how much it asked for."}},
	{name: "triton", framework: "triton", backend: "kernel", match: words.Lazy(`out of resource: (?:shared memory|threads|tensor memory|registers)`), parts: []part{
		findNumber(`Required: (\d+)`, requested), findNumber(`Hardware limit: ?(\d+)`, allowed)}, says: []string{
		"A Triton kernel needs {asked} of the memory on the chip (shared memory) of one block; the GPU has {limit}. | A Triton kernel needs more of a resource on the chip than the GPU has.",
		"This is not the device's memory: smaller blocks (BLOCK_SIZE) or fewer num_stages help, a smaller batch does not."}},

	{name: "llama.cpp", framework: "llama.cpp", match: words.Lazy(`ggml_backend_\w+: allocating [\d.]+ MiB on device|unable to allocate \w+ buffer`), parts: []part{
		find(`allocating SIZE on device`, requested), findNumber(`on device (\d+): cudaMalloc`, device)}, says: []string{
		"llama.cpp asked for one buffer of {asked} on the GPU and could not get it. | llama.cpp could not allocate a buffer.",
		"Fewer layers on the GPU (-ngl), a shorter context (-c) or a smaller quantisation need less."}},
	{name: "tensorflow-driver", framework: "tensorflow", match: words.Lazy(`failed to allocate [\d.]+[KMGT]?i?B? \(\d+ bytes\) from device`), parts: []part{find(`failed to allocate [^(]*\(SIZE\)`, requested)}, says: []string{
		"TensorFlow asked the driver for {asked} and could not get it.",
		"At its start it tries to take nearly the whole GPU, and less if that fails: alone this line is no failure. Another program may hold memory (nvidia-smi)."}},
	{name: "cuda-driver", framework: "cuda", match: words.Lazy(`(?i)CUDA(?:_ERROR_OUT_OF_MEMORY| error: out of memory|Malloc [^\n]*failed[^\n]*out of memory|Malloc failed[^\n]*out of memory)|cudaErrorMemoryAllocation`), says: []string{
		"The CUDA driver ran out of memory; the message does not say how much it asked for.",
		"The request came past the framework's allocator: a library, a context, pinned memory, or another process that holds the device (nvidia-smi)."}},

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
	{name: "sglang", framework: "sglang", match: words.Lazy(`Not enough memory\. Please try to increase --mem-fraction-static`), says: []string{
		"SGLang's share of the GPU is too small for the weights and any KV cache.", "Raise --mem-fraction-static, or split the model over GPUs (--tp)."}},
	{name: "ollama", framework: "ollama", backend: "host", match: words.Lazy(`model requires more system memory`), parts: []part{
		find(`system memory \(SIZE\)`, requested), find(`than is available \(SIZE\)`, free)}, says: []string{
		"Ollama estimates that the model needs {asked} of host memory; {free} are available.", "A smaller model or quantisation, or a shorter context (num_ctx), needs less."}},
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
	{name: "torch-shm", framework: "pytorch", backend: "shm", match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|resize file|mmap \d+ bytes from file)[^\n]*(?:No space left|Cannot allocate|/torch_)`), parts: []part{
		find(`mmap SIZE`, requested)}, says: []string{
		"PyTorch could not put a tensor of {asked} into shared memory (/dev/shm): it is full. | PyTorch could not put a tensor into shared memory (/dev/shm): it is full.",
		shmAdvice}},

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
	{name: "systemd-oomd", framework: "systemd", backend: "cgroup", match: words.Lazy(`systemd-oomd killed|killed by systemd-oomd|killed by the OOM killer`), says: []string{
		"systemd reports that a process of a unit was killed for want of memory: by the kernel, or by systemd-oomd, which acts on memory pressure before memory is gone.",
		"`journalctl -k` and `journalctl -u systemd-oomd` have the figures."}},
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
	{name: "ray-store", framework: "ray", backend: "shm", match: words.Lazy(`ObjectStoreFullError`), says: []string{
		"Ray's object store is full, which lies in /dev/shm. References that live on keep objects there.", "Drop references (del, ray.internal.free), or give it more (object_store_memory)."}},
	{name: "killed", framework: "", backend: "host", match: words.Lazy(`(?:SIGKILL\)? received by PID \d+|exitcode ?: ?-9\b|[Ee]xit(?:ed)? (?:with )?(?:code|status):? 137\b|returncode=-9\b)`), parts: []part{findNumber(`received by PID (\d+)`, pid)}, says: []string{
		"The process was killed (SIGKILL) from outside. The kernel's out-of-memory killer does so, and so do schedulers, time limits and people: the message does not say who.",
		"`dmesg -T | grep -i 'killed process'` on that machine, or the scheduler's account of the job, tells."}},
	{name: "colab", framework: "notebook", backend: "host", match: words.Lazy(`session crashed after using all available RAM`), says: []string{
		"The notebook's machine ran out of host memory (RAM), not of the GPU's."}},
	{name: "bad-alloc", framework: "c++", backend: "host", match: words.Lazy(`std::bad_alloc`), says: []string{
		"A C++ library asked for host memory and the system refused; the message does not say how much.",
		"The system refuses by a limit (ulimit -v), strict overcommit, or as the request is absurd: a corrupt file or a negative size looks like this too."}},
	{name: "enomem", framework: "system", backend: "host", match: words.Lazy(`(?:\[Errno 12\] |fork: |os error 12\)?|ENOMEM[^\n]*)Cannot allocate memory|Cannot allocate memory \(os error 12\)`), says: []string{
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
