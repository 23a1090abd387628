package oomtext

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kinds are messages as they are printed, one of each kind: what must be said, and after a "!" what must not.
var kinds = []struct {
	wording, message string
	says             []string
}{
	{"torch2-sentence", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 MiB. GPU 0 has a total " +
		"capacity of 7.79 GiB of which 14.31 MiB is free. Including non-PyTorch memory, this process has 7.75 GiB memory " +
		"in use. Of the allocated memory 7.51 GiB is allocated by PyTorch, and 1.02 MiB is reserved by PyTorch but " +
		"unallocated.",
		[]string{"14.3 MiB were free: less than the segment of 20.0 MiB that PyTorch takes for a request of this size",
			"Tensors alone took 96 %", "! limit"}},
	{"torch2-sentence", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total " +
		"capacity of 10.76 GiB of which 13.06 MiB is free. Including non-PyTorch memory, this process has 10.74 GiB " +
		"memory in use. Of the allocated memory 930.14 MiB is allocated by PyTorch, and 65.86 MiB is reserved by PyTorch " +
		"but unallocated.",
		[]string{"9.77 GiB of the 10.8 GiB were this process's, but not in PyTorch's allocator",
			"A smaller batch frees a part of the 930 MiB that tensors held, and no more", "! Hold less at once"}},
	{"torch2-sentence", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total " +
		"capacity of 79.11 GiB of which 1.14 GiB is free. Including non-PyTorch memory, this process has 40.00 GiB memory " +
		"in use. Process 991 has 37.90 GiB memory in use. Of the allocated memory 35.10 GiB is allocated by PyTorch, and " +
		"3.90 GiB is reserved by PyTorch but unallocated.",
		[]string{"37.9 GiB of the 79.1 GiB were held by other processes", "a part of the 35.1 GiB that tensors held",
			"! frees little"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of " +
		"which 593.25 MiB is free. Process 3456 has 78.56 GiB memory in use. Of the allocated memory 77.90 GiB is " +
		"allocated by PyTorch, and 127.50 MiB is reserved by PyTorch but unallocated.",
		[]string{"probably this one", "Tensors alone took 98 %", "! Other processes held"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of " +
		"which 593.25 MiB is free. Process 1 has 39.00 GiB memory in use. Process 2 has 39.50 GiB memory in use. Of the " +
		"allocated memory 17.90 GiB is allocated by PyTorch, and 127.50 MiB is reserved by PyTorch but unallocated.",
		[]string{"the message does not name its own",
			"60.5 GiB of the 79.2 GiB were not in PyTorch's allocator: other processes", "! probably this one"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 8.00 MiB is free. Process 77 has 23.30 GiB memory in use. Including non-PyTorch memory, this process has " +
		"388.00 MiB memory in use. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by " +
		"PyTorch but unallocated.",
		[]string{"Other processes held 23.3 GiB: without them the request would have fit", "! 0 %"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 12.00 GiB is free. Including non-PyTorch memory, this process has 11.00 GiB memory in use. Of the " +
		"allocated memory 10.20 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
		[]string{"had enough free", "it does not tell", "! full"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 12.00 GiB is free. 8.00 GiB allowed; Including non-PyTorch memory, this process has 8.30 GiB memory in " +
		"use. Of the allocated memory 7.60 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
		[]string{"A limit is set: this process may take 8.00 GiB", "! had enough free"}},
	{"torch1-parenthesis", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total " +
		"capacity; 0 bytes already allocated; 12.00 MiB free; 0 bytes reserved in total by PyTorch)",
		[]string{"10.7 GiB of the 10.8 GiB were not in PyTorch's allocator", "! 0 %"}},
	{"torch1-parenthesis", "RuntimeError: HIP out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.98 GiB total " +
		"capacity; 14.10 GiB already allocated; 1.20 GiB free; 14.40 GiB reserved in total by PyTorch)",
		[]string{"Tensors alone took 88 %"}},
	{"mps", "RuntimeError: MPS backend out of memory (MPS allocated: 8.80 GB, other allocations: 128.00 MB, max " +
		"allowed: 9.07 GB). Tried to allocate 256.00 MB on private pool.",
		[]string{"PyTorch held 8.80 GiB", "PYTORCH_MPS_HIGH_WATERMARK_RATIO"}},
	{"torch-cpu", "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: " +
		"you tried to allocate 1000000000000 bytes. Error code 12 (Cannot allocate memory)",
		[]string{"931 GiB of host memory"}},
	{"cuda-driver", "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at " +
		"some other API call", []string{"does not say how much", "past the framework's allocator"}},
	{"cublas", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
		[]string{"outside the framework's allocator"}},
	{"cudnn", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", []string{"cuDNN could not allocate"}},
	{"cudnn-unclear", "RuntimeError: FIND was unable to find an engine to execute this computation",
		[]string{"a common cause, and not the only one"}},
	{"cudnn-unclear", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", []string{"the message does not tell"}},
	{"nccl", "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'",
		[]string{"NCCL could not allocate its buffers"}},
	{"nccl-shm", "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a1B2c3 (size 9637888)",
		[]string{"segment of 9.19 MiB in /dev/shm", "--shm-size"}},
	{"torch-bus-error", "RuntimeError: DataLoader worker (pid 12345) is killed by signal: Bus error. It is possible " +
		"that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
		[]string{"worker 12345 died of a bus error", "usual cause", "--shm-size"}},
	{"torch-worker-killed", "RuntimeError: DataLoader worker (pid 991) is killed by signal: Killed.",
		[]string{"worker 991", "the message does not say"}},
	{"torch-worker-killed", "RuntimeError: DataLoader worker (pid(s) 991, 992) exited unexpectedly",
		[]string{"worker 991", "one cause of several"}},
	{"torch-shm", "RuntimeError: unable to write to file </torch_29_1234_0>: No space left on device (28)",
		[]string{"shared memory (/dev/shm): it is full", "! asked"}},
	{"jax-xla", "jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 68719476736 bytes.",
		[]string{"asked for 64.0 GiB"}},
	{"xla-tpu", "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used " +
		"17.44G of 15.48G hbm. Exceeded hbm capacity by 1.96G.",
		[]string{"needs 17.4 GiB of the TPU's hbm, which has 15.5 GiB", "1.96 GiB are too much", "Nothing was run yet"}},
	{"tpu-runtime", "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.00G. That was not " +
		"possible. There are 1.38G free.; (0x0x0_HBM0)", []string{"2.00 GiB of HBM", "1.38 GiB were free"}},
	{"tensorflow-bfc", "ResourceExhaustedError: OOM when allocating tensor with shape[64,2016,9,9] and type float on " +
		"/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc", []string{"39.9 MiB for a tensor"}},
	{"bfc", "2026-01-01 W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory " +
		"trying to allocate 2.20GiB (rounded to 2362232064)requested by op X", []string{"TensorFlow or JAX", "2.20 GiB"}},
	{"bfc-attempt", "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.37GiB with freed_by_count=0. The " +
		"caller indicates that this is not a failure, but this may mean that there could be performance gains if more " +
		"memory were available.", []string{"this is not a failure"}},
	{"tensorflow-driver", "failed to allocate 10.91G (11713970176 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of " +
		"memory", []string{"asked the driver for 10.9 GiB", "alone this line is not a failure"}},
	{"tensorflow-dst", "InternalError: Dst tensor is not initialized.", []string{"its way to say out of memory"}},
	{"tensorflow-warning", "W external/local_tsl/tsl/framework/cpu_allocator_impl.cc:83] Allocation of 1207959552 " +
		"exceeds 10% of free system memory.", []string{"a warning, no failure", "1.12 GiB"}},
	{"cupy", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: " +
		"4,294,967,296 bytes, limit set to: 10,737,418,240 bytes).",
		[]string{"asked for 8.00 GiB", "taken 4.00 GiB", "limit of 10.0 GiB"}},
	{"rmm", "MemoryError: std::bad_alloc: out_of_memory: CUDA error (failed to allocate 8589934592 bytes) at: " +
		"cuda_memory_resource.hpp:60: cudaErrorMemoryAllocation out of memory", []string{"RMM (RAPIDS) asked for 8.00 GiB"}},
	{"xgboost", "xgboost.core.XGBoostError: Memory allocation error on worker 0: std::bad_alloc: " +
		"cudaErrorMemoryAllocation: out of memory\n- Free memory: 1.2GB\n- Requested memory: 9.155GB",
		[]string{"XGBoost asked for 9.16 GiB", "1.20 GiB were free"}},
	{"tensorrt", "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (no further " +
		"information)\nRequested amount of GPU memory (8589934592 bytes) could not be allocated. There may not be enough " +
		"free memory for allocation to succeed.", []string{"TensorRT asked for 8.00 GiB"}},
	{"onnxruntime", "onnxruntime/core/framework/bfc_arena.cc:376 void* " +
		"onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Available memory of 1048576 is smaller than requested " +
		"bytes of 2097152", []string{"asked for 2.00 MiB", "1.00 MiB were left"}},
	{"paddle", "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 1.125000GB memory on GPU 0, " +
		"10.200000GB memory has been allocated and available memory is only 512.000000MB.",
		[]string{"asked for 1.12 GiB", "10.2 GiB were allocated and 512 MiB free"}},
	{"julia", "ERROR: Out of GPU memory trying to allocate 7.451 GiB\nEffective GPU memory usage: 98.29% (23.292 " +
		"GiB/23.697 GiB)", []string{"7.45 GiB", "23.3 GiB of the device's 23.7 GiB"}},
	{"mlx", "libc++abi: terminating due to uncaught exception of type std::runtime_error: [metal::malloc] Attempting " +
		"to allocate 17179869184 bytes which is greater than the maximum allowed buffer size of 9663676416 bytes.",
		[]string{"one buffer of 16.0 GiB", "at most 9.00 GiB", "not of all memory"}},
	{"metal", "[METAL] Command buffer execution failed: Insufficient Memory " +
		"(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", []string{"command buffer"}},
	{"sycl", "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)",
		[]string{"the message does not tell which"}},
	{"hip", "RuntimeError: HIP error: out of memory", []string{"The HIP driver"}},
	{"triton", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware " +
		"limit: 101376. Reducing block sizes or `num_stages` may help.",
		[]string{"needs 128 KiB", "has 99.0 KiB", "not the device's memory"}},
	{"llama.cpp", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8712.00 MiB on device 0: cudaMalloc failed: " +
		"out of memory", []string{"one buffer of 8.51 GiB"}},
	{"ollama", "Error: model requires more system memory (8.4 GiB) than is available (6.1 GiB)",
		[]string{"needs 8.40 GiB of host memory; 6.10 GiB are available"}},
	{"vllm-startup", "ValueError: Free memory on device (5.31/23.68 GiB) on startup is less than desired GPU memory " +
		"utilization (0.9, 21.31 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
		[]string{"wants 21.3 GiB of the GPU's 23.7 GiB"}},
	{"vllm-kv", "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV cache " +
		"is needed, which is larger than the available KV cache memory (2.31 GiB). Based on the available memory, the " +
		"estimated maximum model length is 18944.", []string{"needs 4.00 GiB of KV cache; 2.31 GiB are left", "Lower max_model_len to 18944,"}},
	{"vllm-kv-tokens", "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that " +
		"can be stored in KV cache (3664).", []string{"The longest request allowed does not fit", "Lower max_model_len to 3664,"}},
	{"vllm-no-blocks", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` " +
		"when initializing the engine.", []string{"no memory left for the KV cache"}},
	{"sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", []string{"SGLang"}},
	{"accelerate", "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM " +
		"to fit the quantized model.", []string{"Nothing ran out yet"}},
	{"numpy", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape " +
		"(1000000000,) and data type float64", []string{"asked for 7.45 GiB of host memory"}},
	{"arrow", "pyarrow.lib.ArrowMemoryError: malloc of size 17179869184 failed", []string{"Arrow asked for 16.0 GiB"}},
	{"rust", "memory allocation of 8589934592 bytes failed", []string{"8.00 GiB of host memory"}},
	{"java", "java.lang.OutOfMemoryError: Java heap space", []string{"-Xmx"}},
	{"windows-commit", "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error " +
		"loading \"cublas64_12.dll\"", []string{"need not mean that they are used"}},
	{"yarn", "Container killed by YARN for exceeding memory limits. 9.1 GB of 9 GB physical memory used. Consider " +
		"boosting spark.yarn.executor.memoryOverhead.", []string{"used 9.10 GiB of 9.00 GiB"}},
	{"dask", "distributed.nanny.memory - WARNING - Worker tcp://10.0.0.1:1 (pid=12) exceeded 95% memory budget. " +
		"Restarting...", []string{"the machine may have had room"}},
	{"kernel", "Out of memory: Killed process 12345 (python3) total-vm:52428800kB, anon-rss:25165824kB, " +
		"file-rss:1024kB, shmem-rss:0kB, UID:1000 pgtables:50000kB oom_score_adj:0",
		[]string{"killed process 12345 (python3), as the machine had no memory left", "24.0 GiB of anonymous", "! cgroup"}},
	{"kernel-cgroup", "memory: usage 8388608kB, limit 8388608kB, failcnt 12\nMemory cgroup out of memory: Killed " +
		"process 77 (python) total-vm:20000000kB, anon-rss:8300000kB, file-rss:0kB",
		[]string{"process 77 (python)", "its cgroup", "7.92 GiB", "The machine itself may have had room"}},
	{"systemd-oomd", "python.service: systemd-oomd killed 12 process(es) in this unit.", []string{"memory pressure"}},
	{"slurm-limit", "slurmstepd: error: Job 123 exceeded memory limit (10485760 > 4194304), being killed",
		[]string{"used 10.0 GiB, and had asked for 4.00 GiB"}},
	{"slurm", "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM " +
		"Killed.", []string{"does not say which process", "not the GPU's", "--mem"}},
	{"lsf", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", []string{"bsub -M"}},
	{"pbs", "=>> PBS: job killed: mem 8389000kb exceeded limit 8388608kb", []string{"its limit was 8.00 GiB"}},
	{"kubernetes", "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137",
		[]string{"in most cases", "not the GPU's"}},
	{"kubernetes-evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. " +
		"Container main was using 12Gi, request is 4Gi, has larger consumption of memory.",
		[]string{"not the pod's limit", "12.0 GiB and had requested 4.00 GiB"}},
	{"ray-node", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on " +
		"the node (IP: 10.0.0.1, ID: 01) where the task (task ID: 2, name=f) was running was 30.05GB / 31.30GB " +
		"(0.960064), which exceeds the memory usage threshold of 0.95.",
		[]string{"the node had 30.0 GiB of 31.3 GiB in use", "before the kernel does"}},
	{"ray-monitor", "ray.memory_monitor.RayOutOfMemoryError: More than 95% of the memory on node x is used (11.8 / " +
		"12.3 GB). The top 5 memory consumers " +
		"are:\n\nPID\tMEM\tCOMMAND\n28442\t5.0GB\tray_X:alloc()\n15294\t0.4GB\tchrome --type=renderer",
		[]string{"the node had 11.8 GiB of 12.3 GiB in use", "ray_X:alloc() (process 28442) 5.00 GiB"}},
	{"xla-tpu", "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %my_kernel.1 " +
		"= bf16[8192,8192]. Scoped allocation with size 18.00M and limit 16.00M exceeded scoped vmem limit by 2.00M.",
		[]string{"A kernel asked for 18.0 MiB of the TPU's vmem at once, and its limit is 16.0 MiB", "block sizes decide",
			"! are too much"}},
	{"bfc", "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB (rounded to 2415919104)requested by " +
		"op\nStats: \nLimit:                     10000000000\nInUse:                      9996543210\n",
		[]string{"Of the allocator's limit of 9.31 GiB, 9.31 GiB were in use."}},
	{"jax-xla", "bfc_allocator.cc:514] Allocator (GPU_0_bfc) ran out of memory trying to allocate 18.19GiB (rounded to " +
		"19528965376)requested by op \nCurrent allocation summary follows.\njax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: " +
		"Out of memory while trying to allocate 18.19GiB. [tf-allocator-allocation-error=''] " +
		"[executable_name='jit_train_step']",
		[]string{"JAX (XLA) asked for 18.2 GiB for the compiled function train_step and could not get it"}},
	{"mps", "MPS backend out of memory (MPS allocated: 17.20 GB, other allocations: 3.02 GB, max allowed: 18.13 GB). " +
		"Tried to allocate 256.00 MB on private pool.", []string{"18.1 GiB are allowed, and that is 2.09 GiB more", "! -2"}},
	{"ray-store", "ray.exceptions.ObjectStoreFullError: Failed to put object", []string{"/dev/shm"}},
	{"killed", "exitcode  : -9 (pid: 4242)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4242",
		[]string{"the message does not say who"}},
	{"colab", "Your session crashed after using all available RAM.", []string{"not of the GPU's"}},
	{"bad-alloc", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
		[]string{"does not say how much"}},
	{"enomem", "OSError: [Errno 12] Cannot allocate memory", []string{"ENOMEM"}},
	{"python", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nMemoryError",
		[]string{"merely full kills instead"}},
	// What the figures do not tell is not told: of a cut message, and of one whose device's free memory is not in it.
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 1.02 GiB is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated " +
		"memory 20.11 GiB is allocated by PyTorch, and 2.",
		[]string{"it does not tell full from fragmented", "if there is more of the message", "! it is full"}},
	{"torch2-sentence", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total " +
		"capacity of 15.56 GiB. Of the allocated memory 10.50 GiB is allocated by PyTorch, and 1.20 GiB is reserved by " +
		"PyTorch but unallocated.",
		[]string{"What the device had free is not in this text", "! it is full", "! wording is that of"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 1.02 GiB is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated " +
		"memory 20.11 GiB is allocated by PyTorch, and 2.10 GiB is reserved by PyTorch but unallocated.",
		[]string{"together, and neither alone: this is fragmentation", "! it is full"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 12.00 GiB is free. 8.00 GiB allowed; Including non-PyTorch memory, this process has 8.30 GiB memory in " +
		"use. Of the allocated memory 7.60 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
		[]string{"The limit of 8.00 GiB is reached: PyTorch held 7.60 GiB of it", "! of the device:"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1,50 GiB. GPU 0 has a total capacity of 23,69 GiB",
		[]string{"does not say how much", "! 150 GiB"}},
	{"torch2-sentence", "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB of " +
		"which 8.00 MiB is free.\nKilled\n", []string{"The text holds another message, on host memory (“Killed”)"}},
	{"torch1-parenthesis", "RuntimeError: NPU out of memory. Tried to allocate 512.00 MiB (NPU 1; 60.97 GiB total " +
		"capacity; 58.20 GiB already allocated; 58.20 GiB current active; 120.00 MiB free; 59.10 GiB reserved in total by " +
		"PyTorch)",
		[]string{"512 MiB on NPU 1", "PYTORCH_NPU_ALLOC_CONF", "! wording is that of", "! CUDA"}},
	{"torch-async", "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of " +
		"memory)\nCurrently allocated     : 20.11 GiB\nRequested               : 1.50 GiB\nDevice limit            : " +
		"23.69 GiB\nFree (according to CUDA): 12.00 MiB\nPyTorch limit (set by user-supplied memory fraction)\n           " +
		"             : 17179869184.00 GiB",
		[]string{"asked for 1.50 GiB on GPU 0", "12.0 MiB were free", "it does not tell full from fragmented",
			"! A limit is set"}},
	{"torch-bare", "torch.OutOfMemoryError: Allocation on device \nGot an OOM, unloading all loaded models.",
		[]string{"does not say how much it asked for"}},
	{"cublas-unclear", "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
		[]string{"a common cause, and not the only one"}},
	{"cuda-library", "RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED",
		[]string{"(CUFFT)", "nor whether on the GPU or on the host"}},
	{"cuda-driver", "onnxruntime::CudaCall CUDA failure 2: out of memory ; GPU=0 ; expr=cudaMalloc((void**)&p, size);",
		[]string{"does not say how much"}},
	{"nccl-alloc", "NCCL WARN Failed to CUDA calloc async 608 bytes",
		[]string{"could not allocate 608 B", "does not say why"}},
	{"tensorrt-tactic", "[W] [TRT] Tactic Device request: 4096MB Available: 2048MB. Device memory is insufficient to " +
		"use tactic.", []string{"needs 4.00 GiB, where 2.00 GiB were free: a warning, no failure"}},
	{"tensorrt-llm", "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out of memory " +
		"(/src/x.h:112)", []string{"TensorRT-LLM could not allocate"}},
	{"triton-server", "failed to allocate CUDA memory with byte size 4194304 on GPU 0: CNMEM_STATUS_OUT_OF_MEMORY",
		[]string{"no room for 4.00 MiB in its pool", "not the device's"}},
	{"bitsandbytes", "Error out of memory at line 380 in file /src/csrc/pythonInterface.cpp",
		[]string{"does not say how much", "managed memory"}},
	{"mlx-count", "[metal::malloc] Resource limit (499000) exceeded.", []string{"their number, not their bytes"}},
	{"mps-buffer", "RuntimeError: Invalid buffer size: 36.00 GiB",
		[]string{"One tensor of 36.0 GiB", "not of all memory"}},
	{"xpu-block", "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to " +
		"allocate 6.00 GB", []string{"one block of 6.00 GiB", "not of all memory"}},
	{"hsa", "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources.",
		[]string{"does not tell which"}},
	{"vulkan", "ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: " +
		"vk::Device::allocateMemory: ErrorOutOfDeviceMemory", []string{"Vulkan driver"}},
	{"opencl", "clEnqueueNDRangeKernel failed: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)", []string{"does not tell which"}},
	{"neuron", "ERROR  TDRV:dmem_alloc_internal  Failed to alloc DEVICE memory: 589824",
		[]string{"576 KiB of the accelerator's memory"}},
	{"neuron", "RuntimeError: nrt_tensor_allocate status=4 message=\"Allocation Failure\"",
		[]string{"does not say how much"}},
	{"habana", "[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4294967296 (4096)MB",
		[]string{"asked for 4.00 GiB"}},
	{"ptxas", "ptxas error   : Entry function 'k' uses too much shared data (0x12000 bytes, 0xc000 max)",
		[]string{"not the device's memory"}},
	{"mlock", "warning: failed to mlock 4294967296-byte buffer (after previously locking 0 bytes): Cannot allocate " +
		"memory", []string{"4.00 GiB could not be locked", "not a want of memory"}},
	{"xla-remat", "Can't reduce memory use below 29.28GiB (31438912512 bytes) by rematerialization; only reduced to " +
		"41.03GiB (44057641216 bytes), down from 45.00GiB (48318382080 bytes) originally",
		[]string{"down to 41.0 GiB only, and aimed at 29.3 GiB", "no failure"}},
	{"llama.cpp", "allocating 8192.00 MiB on device 0: cudaMalloc failed\nalloc_tensor_range: failed to allocate CUDA0 " +
		"buffer of size 8589934592\nllama_model_load: error loading model: unable to allocate CUDA0 buffer",
		[]string{"one buffer of 8.00 GiB on CUDA0"}},
	{"vllm-warmup", "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. " +
		"Please try lowering `max_num_seqs`", []string{"with 1024 requests at once"}},
	{"vllm-profiling", "AssertionError: Error in memory profiling. Initial free memory 22.1 GiB, current free memory " +
		"23.0 GiB.", []string{"Nothing ran out"}},
	{"tgi", "Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`",
		[]string{"largest prefill"}},
	{"sglang-retracted", "[TP0] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1474 -> 0.1845",
		[]string{"is not a failure"}},
	{"sglang-pool", "Prefill out of memory. Try to lower your batch size.\nTry to allocate 8192 tokens.\nAvailable " +
		"tokens: 210", []string{"the pool's size, not the device's"}},
	{"exllama", "Insufficient VRAM for model and cache", []string{"how much is missing"}},
	{"ollama-killed", "Error: llama runner process has terminated: signal: killed", []string{"the message does not say"}},
	{"windows-memory", "MemoryError: [WinError 8] Not enough memory resources are available to process this command",
		[]string{"page file", "! Linux"}},
	{"node", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
		[]string{"is a setting"}},
	{"go", "fatal error: runtime: out of memory", []string{"program in Go"}},
	{"compiler", "c++: fatal error: Killed signal terminated program cc1plus", []string{"not of the GPU"}},
	{"torch-mmap", "RuntimeError: unable to mmap 1073741824 bytes from file </torch_1_2_3>: Cannot allocate memory (12)",
		[]string{"a tensor of 1.00 GiB into shared memory", "vm.max_map_count", "! it is full"}},
	{"torch-files", "RuntimeError: unable to open shared memory object </torch_29_1234_0> in read-write mode: Too many " +
		"open files (24)", []string{"not a lack of memory", "ulimit -n", "! it is full"}},
	{"earlyoom", "earlyoom[500]: sending SIGTERM to process 1234 uid 1000 \"python\": badness 1200, VmRSS 30000 MiB",
		[]string{"process 1234 (python)", "29.3 GiB"}},
	{"kubernetes-node", "Warning  SystemOOM  kubelet  System OOM encountered, victim process: python, pid: 12345",
		[]string{"process 12345 (python)", "the node itself"}},
	{"systemd-oomd", "systemd-oomd[700]: Killed /user.slice/x.service due to memory pressure for /user.slice being " +
		"80.01% > 50.00% for > 20s with reclaim activity", []string{"before memory is gone"}},
	{"ray-lost", "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high " +
		"memory usage. (2) ray stop --force is called.", []string{"does not know why", "that is not a finding"}},
	{"cloud", "The replica workerpool0-0 ran out-of-memory and exited with a non-zero status of 9(SIGKILL).",
		[]string{"host memory"}},
	{"killed", "subprocess.CalledProcessError: Command '['python','train.py']' died with <Signals.SIGKILL: 9>.",
		[]string{"does not say who"}},
	{"killed", "/bin/bash: line 1: 12345 Killed                  python train.py", []string{"does not say who"}},
	{"jupyter", "The Kernel crashed while executing code in the current cell or a previous cell.",
		[]string{"does not say why"}},
	{"enomem", "OSError: [Errno 12] Nicht genügend Hauptspeicher verfügbar", []string{"ENOMEM"}},
	{"torch2-sentence", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 17179869183.98 GiB. GPU 0 has a " +
		"total capacity of 23.65 GiB of which 20.00 GiB is free. Including non-PyTorch memory, this process has 3.20 GiB " +
		"memory in use. Of the allocated memory 2.50 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch " +
		"but unallocated.",
		[]string{"asked for 17179869183.98 GiB on GPU 0, more than any machine has", "not a lack of memory",
			"! does not say how much", "! full"}},
	{"torch-bare", "torch.cuda.OutOfMemoryError: CUDA out of memory.", []string{"does not say how much"}},
	{"cuda-driver-call", "RuntimeError: CUDA driver error: out of memory",
		[]string{"Expandable segments", "! past the framework's allocator"}},
	{"cuda-driver", "RuntimeError: Triton Error [CUDA]: out of memory", []string{"does not say how much"}},
	{"triton", "torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfMemoryError: out of " +
		"resource: triton_tem_fused_0 Required: 163840 Hardware limit:101376 Reducing block sizes or `num_stages` may " +
		"help.", []string{"needs 160 KiB", "has 99.0 KiB", "not the device's memory"}},
	{"triton-units", "triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 640, Hardware " +
		"limit: 512. Reducing block sizes or `num_stages` may help.",
		[]string{"more tensor memory than", "not bytes", "! 640 B", "! shared memory"}},
	{"triton-units", "triton.runtime.errors.OutOfResources: out of resource: threads, Required: 2048, Hardware limit: " +
		"1024.", []string{"more threads than", "! KiB"}},
	{"cuda-library", "rocBLAS error: rocblas_status_memory_error", []string{"(rocblas)", "does not say how much"}},
	{"vulkan", "ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: Requested buffer size " +
		"exceeds device memory allocation limit: ErrorOutOfDeviceMemory",
		[]string{"could not give 1.00 GiB", "! does not say how much"}},
	{"xgboost", "Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free " +
		"memory: 12345678\n- Requested memory: 1073741824\n", []string{"XGBoost asked for 1.00 GiB", "11.8 MiB were free"}},
	{"tensorrt", "[TRT] [E] 1: [defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (out of memory)",
		[]string{"TensorRT could not allocate"}},
	{"tensorrt-workspace", "[TRT] [E] 10: Could not find any implementation for node {ForeignNode[x]} due to " +
		"insufficient workspace. See verbose log for requested sizes.", []string{"a setting of the builder"}},
	{"onnxruntime", "[ONNXRuntimeError] : 1 : FAIL : bfc_arena.cc:376 Available memory of 805306368 is smaller than " +
		"requested bytes of 1073741824", []string{"asked for 1.00 GiB", "768 MiB were left"}},
	{"faiss", "Faiss assertion 'err == cudaSuccess' failed; details: StandardGpuResources: alloc fail type " +
		"TemporaryMemoryOverflow dev 0 space Device stream 0x55 size 2147483648 bytes (cudaMalloc error out of memory [2])",
		[]string{"Faiss asked for 2.00 GiB"}},
	{"flashinfer", "RuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 550502400 and alignment " +
		"16 in AlignedAllocator", []string{"525 MiB", "that buffer's size, not the device's"}},
	{"mindspore", "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/Conv2D-op1, " +
		"alloc size: 2097152B.", []string{"asked for 2.00 MiB"}},
	{"ascend", "[ERROR] RUNTIME(1234,python):[npu_driver.cc:1234]DevMemAllocHugePageManaged:[drv api] halMemAlloc " +
		"failed:size=1073741824(bytes), type=2, moduleId=3, drvRetCode=6!", []string{"allocate 1.00 GiB on the NPU"}},
	{"ascend", "EL0004: [PID: 123] Failed to allocate memory. Possible Cause: Available memory is insufficient.",
		[]string{"does not say how much"}},
	{"deepspeed-flush", "[WARNING] [stage3.py:1850:step] 2 pytorch allocator cache flushes since last step. this " +
		"happens when there is high memory pressure and is detrimental to performance.", []string{"a warning, no failure"}},
	{"accelerate-no-batch", "RuntimeError: No executable batch size found, reached zero.", []string{"smaller down to 1"}},
	{"vllm-preempted", "WARNING 08-01 10:10:10 scheduler.py:1099] Sequence group 12 is preempted by " +
		"PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.", []string{"a warning, no failure"}},
	{"sglang-unbalanced", "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other " +
		"processes. pre_model_load_memory=10.2, local_gpu_memory=22.1, local_gpu_memory * 0.9=19.9",
		[]string{"Nothing ran out", "nine tenths"}},
	{"tensorflow-op", "ResourceExhaustedError: {{function_node " +
		"__wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}} failed to allocate memory [Op:Mul]",
		[]string{"does not say how much"}},
	{"java-thread", "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or " +
		"process/resource limits reached", []string{"limit of threads", "! is full"}},
	{"java-native", "# There is insufficient memory for the Java Runtime Environment to continue.\n# Native memory " +
		"allocation (mmap) failed to map 12884901888 bytes for committing reserved memory.",
		[]string{"asked the system for 12.0 GiB"}},
	{"spark-memory", "org.apache.spark.memory.SparkOutOfMemoryError: Unable to acquire 65536 bytes of memory, got 0",
		[]string{"asked for 64.0 KiB", "got 0 B"}},
	{"torch-bus-error", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient " +
		"shared memory (shm).", []string{"the message is not sure", "--shm-size"}},
	{"kernel-reaper", "[ 1234.5] oom_reaper: reaped process 999 (python3), now anon-rss:0kB, file-rss:0kB, " +
		"shmem-rss:0kB", []string{"killed process 999 (python3)", "! 0 B"}},
	{"kubernetes-pending", "Warning  FailedScheduling  10s  default-scheduler  0/5 nodes are available: 5 Insufficient " +
		"memory.", []string{"Nothing ran out"}},
	{"kubernetes-volume", "Usage of EmptyDir volume \"dshm\" exceeds the limit \"8Gi\".",
		[]string{"its volume dshm holds more than its sizeLimit of 8.00 GiB"}},
	{"cloud-run", "Memory limit of 512 MiB exceeded with 533 MiB used. Consider increasing the memory limit",
		[]string{"used 533 MiB", "limit was 512 MiB"}},
	{"lambda", "RequestId: abc Error: Runtime exited with error: signal: killed",
		[]string{"the message alone does not say"}},
	{"condor", "Job was held. Error from slot1@host: Job has gone over memory limit of 2048 megabytes. Peak usage: " +
		"2300 megabytes.", []string{"HTCondor held the job"}},
	{"process-pool", "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated " +
		"abruptly while the future was running or pending.", []string{"does not know why"}},
	{"no-thread", "RuntimeError: can't start new thread", []string{"not a lack of memory"}},
	{"pandas-reader", "pandas.errors.ParserError: Error tokenizing data. C error: out of memory",
		[]string{"does not say how much"}},
	{"opencv", "cv2.error: OpenCV(4.8.0) alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate 74649600 " +
		"bytes in function 'OutOfMemoryError'", []string{"asked for 71.2 MiB"}},
	{"r", "Error: cannot allocate vector of size 7.5 Gb", []string{"one vector of 7.50 GiB"}},
	{"duckdb", "duckdb.duckdb.OutOfMemoryException: Out of Memory Error: failed to allocate data of size 1.0 GiB (25.1 " +
		"GiB/25.1 GiB used)", []string{"asked for 1.00 GiB", "25.1 GiB of its limit of 25.1 GiB"}},
	{"enomem", "mmap: Cannot allocate memory", []string{"ENOMEM"}},
	{"bad-alloc", "LLVM ERROR: out of memory", []string{"does not say how much"}},
	{"killed", "E0101 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 " +
		"(pid: 4411) of binary: /usr/bin/python",
		[]string{"`dmesg -T` (“Killed process”) on that machine, or the scheduler's account of the job, tells."}},
}

// TestHeldAgainstEachOther: a process's own limit is told from the device, and figures that cannot all be right are
// not explained.
func TestHeldAgainstEachOther(t *testing.T) {
	const hip = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of " +
		"which %s is free. %sOf the allocated memory %s is allocated by PyTorch, and %s is reserved by PyTorch but " +
		"unallocated."
	for name, test := range map[string]struct{ message, want, not string }{
		"its own limit": {fmt.Sprintf(hip, "2.00 MiB", "255.98 GiB", "244.65 GiB", "1.05 GiB allowed; ",
			"1017.01 MiB", "54.99 MiB"), "The limit of 1.05 GiB is reached: PyTorch held 1.05 GiB of it", "10.3 GiB"},
		"the device, below its limit": {fmt.Sprintf(hip, "2.00 GiB", "15.98 GiB", "1.00 GiB", "12.00 GiB allowed; ",
			"3.00 GiB", "0 bytes"), "12.0 GiB of the 16.0 GiB were not in PyTorch's allocator", "is reached"},
		"both": {fmt.Sprintf(hip, "2.00 GiB", "15.98 GiB", "1.00 GiB", "4.00 GiB allowed; ",
			"3.00 GiB", "0 bytes"), "Tensors took 75 % of what the process may take", "of the 4.00 GiB were not"},
		"neither": {fmt.Sprintf(hip, "512.00 MiB", "191.98 GiB", "150.00 GiB", "24.00 GiB allowed; ",
			"10.00 GiB", "2.00 GiB"), "neither the device nor the process's limit was in the way", "fragmentation"},
		"free above capacity": {fmt.Sprintf(hip, "16.00 GiB", "15.49 GiB", "84.98 GiB", "", "1.67 GiB",
			"8.08 GiB"), "contradicts itself: it gives the device 15.5 GiB in all and 85.0 GiB free", "of which 85.0 GiB were free"},
		"free and held above capacity": {fmt.Sprintf(hip, "6.00 GiB", "15.49 GiB", "9.98 GiB", "", "5.67 GiB", "4.08 GiB"),
			"contradicts itself: 9.98 GiB free and 9.75 GiB held", "fragment"},
		"as much as there is": {fmt.Sprintf(hip, "6.00 GiB", "15.49 GiB", "5.74 GiB", "", "5.67 GiB", "4.08 GiB"),
			"this is fragmentation", "contradicts"},
		"processes beyond the device": {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 " +
			"has a total capacity of 23.68 GiB of which 12.81 MiB is free. Process 1111 has 12.00 GiB memory in use. Process " +
			"2222 has 20.00 GiB memory in use. Of the allocated memory 11.00 GiB is allocated by PyTorch, and 500.00 MiB is " +
			"reserved by PyTorch but unallocated.",
			"the processes that it names hold 32.0 GiB", "fragmentation"},
		"less in the process than in PyTorch": {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. " +
			"GPU 0 has a total capacity of 23.68 GiB of which 12.81 MiB is free. Including non-PyTorch memory, this process " +
			"has 3.00 GiB memory in use. Of the allocated memory 11.00 GiB is allocated by PyTorch, and 500.00 MiB is " +
			"reserved by PyTorch but unallocated.",
			"this process has 3.00 GiB in use, and PyTorch in it 11.5 GiB", "fragmentation"},
		"one allocation of Intel's": {"torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a " +
			"total capacity of 5.65 GiB of which 5.65 GiB is free. Of the allocated memory 195.50 KiB is allocated by " +
			"PyTorch, and 1.81 MiB is reserved by PyTorch but unallocated.",
			"limits a single allocation", "had enough free"},
		"Intel's device": {"torch.OutOfMemoryError: XPU out of memory. Tried to allocate 32.00 GiB. GPU 0 has a total " +
			"capacity of 11.59 GiB of which 9.01 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 " +
			"bytes is reserved by PyTorch but unallocated.",
			"larger than the device", "single allocation"},
	} {
		m, err := Parse(test.message)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(Words(m), "\n"); !strings.Contains(said, test.want) || strings.Contains(said, test.not) {
			t.Errorf("%s: want %q and not %q in:\n%s", name, test.want, test.not, said)
		}
	}
}

// TestListed: what a message itself names is told.
func TestListed(t *testing.T) {
	for file, want := range map[string][]string{
		"xla-tpu.txt": {"XLA counts 63.8 GiB of HLO temp",
			"The largest buffer that XLA lists has 2.00 GiB (f32[32,4096,4096]) and comes from attention_module.py:1059."},
		"xla-gpu.txt": {"has 6.00 MiB (f32[4096,128,3]) and comes from models.py:689",
			"The line of most of the list, 10.0 MiB in 2 buffers, is layers.py:12"},
		"ray-node.txt": {"python run_sim.py --tasks many (process 4112) 9.02 GiB, ray::SimEnv.step (process 4331) 2.22 GiB",
			"The killed one, SimEnv.__init__ (process 4331), held 2.22 GiB: not the most."},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(Words(m), "\n")
		for _, sentence := range want {
			if !strings.Contains(said, sentence) {
				t.Errorf("%s: want %q in:\n%s", file, sentence, said)
			}
		}
	}
}

// TestKindsOfMessages holds what is said of each kind of message, and that no wording is without an example.
func TestKindsOfMessages(t *testing.T) {
	met := map[string]bool{"torch1-cached": true, "torch0-thc": true} // in the collection of TestMessages
	for _, kind := range kinds {
		met[kind.wording] = true
		m, err := Parse("epoch 3 loss 0.1\n" + kind.message)
		if err != nil || m.Wording != kind.wording {
			t.Errorf("%.60q: read as %+v %v, want %s", kind.message, m, err, kind.wording)
			continue
		}
		said := strings.Join(Words(m), "\n")
		for _, want := range kind.says {
			if text, forbidden := strings.CutPrefix(want, "! "); forbidden == strings.Contains(said, text) {
				t.Errorf("%s: %q, in:\n%s", kind.wording, want, said)
			}
		}
		if strings.Count(said, "`")%2 > 0 {
			t.Errorf("%s: a command is cut:\n%s", kind.wording, said)
		}
		if strings.ContainsAny(said, "{}|") {
			t.Errorf("%s: a figure is not filled in:\n%s", kind.wording, said)
		}
	}
	for _, w := range slices.Concat(wordings, others) {
		if !met[w.name] {
			t.Errorf("no example of %s", w.name)
		}
	}
}
