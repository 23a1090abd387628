package oomtext

import (
	"hightide/internal/mem"
	"hightide/internal/words"
)

// onHosts are what libraries, kernels, schedulers and runtimes print of a machine's own memory, see others.
var onHosts = []wording{
	// Host memory, in the process.
	{name: "numpy", framework: "numpy", backend: "host",
		match: words.Lazy(`Unable to allocate [\d.]+ \w+ for an array with shape`), parts: []part{
			find(`Unable to allocate SIZE`, requested)}, says: []string{
			"NumPy asked for {asked} of host memory for one array, and the system refused at once.",
			"The system refuses a request only by a limit (ulimit -v), strict overcommit, or its own estimate of what can " +
				"ever be; see whether the shape is what you meant."}},
	{name: "arrow", framework: "arrow", backend: "host",
		match: words.Lazy(`ArrowMemoryError|(?:malloc|realloc) of size \d+ failed`),
		parts: []part{findNumber(`of size (\d+) failed`, requested)}, says: []string{
			"Arrow asked for {asked} of host memory, and the system refused. | Arrow asked for host memory, and the system " +
				"refused."}},
	{name: "rust", framework: "rust", backend: "host", match: words.Lazy(`memory allocation of \d+ bytes failed`),
		parts: []part{find(`allocation of SIZE`, requested)}, says: []string{
			"A library in Rust (Polars, tokenizers, safetensors…) asked for {asked} of host memory; the system refused, and " +
				"the program aborted."}},
	{name: "java-thread", framework: "java", backend: "host",
		match: words.Lazy(`OutOfMemoryError: unable to create (?:new )?native thread`), says: []string{
			"Java could not start a thread: in most cases the limit of threads or processes (ulimit -u, the cgroup's " +
				"pids.max), and not the heap.",
			"A larger heap (-Xmx) does not help: it leaves less for the stacks of threads."}},
	{name: "java-native", framework: "java", backend: "host",
		match: words.Lazy(`insufficient memory for the Java Runtime Environment|` +
			`Native memory allocation \(\w+\) failed`),
		parts: []part{find(`failed to (?:map|allocate) SIZE`, requested)}, says: []string{
			"Java asked the system for {asked} outside its heap or for it, and the system refused. | Java asked the system " +
				"for memory, and the system refused.",
			"A smaller heap (-Xmx) leaves the system more; limits (ulimit -v, cgroups, strict overcommit) refuse, too."}},
	{name: "spark-memory", framework: "spark", backend: "host",
		match: words.Lazy(`Unable to acquire \d+ bytes of memory, got \d+`),
		parts: []part{findNumber(`acquire (\d+) bytes`, requested), findNumber(`memory, got (\d+)`, free)}, says: []string{
			"A task of Spark asked for {asked} of the executor's share for execution and got {free}: that share is a setting, " +
				"not what the machine has.",
			"More partitions, fewer tasks at once (spark.executor.cores) or a larger executor (spark.executor.memory) help."}},
	{name: "java", framework: "java", backend: "host", match: words.Lazy(`java\.lang\.OutOfMemoryError`),
		says: []string{
			"The Java heap, or another part of the JVM's memory, is full. Its size is a setting (-Xmx, spark.driver.memory, " +
				"spark.executor.memory), not what the machine has."}},
	{name: "windows-commit", framework: "windows", backend: "host",
		match: words.Lazy(`WinError 1455|paging file is too small`), says: []string{
			"Windows had no room left to commit memory: RAM and page file together are promised away, which need not mean " +
				"that they are used.",
			"Enlarge the page file, or start fewer workers: each process that loads CUDA's libraries commits gigabytes."}},
	{name: "windows-memory", framework: "windows", backend: "host", match: words.Lazy(`WinError (?:8|14)\]`),
		says: []string{
			"Windows had no memory for a request; the message does not say how much. RAM and page file together bound it."}},
	{name: "node", framework: "node", backend: "host", match: words.Lazy(`JavaScript heap out of memory`),
		says: []string{
			"The heap of a JavaScript engine is full. Its size is a setting (node --max-old-space-size), not what the machine " +
				"has."}},
	{name: "go", framework: "go", backend: "host",
		match: words.Lazy(`fatal error: runtime: (?:out of memory|cannot allocate memory)`), says: []string{
			"A program in Go asked for host memory, and the system refused; the message does not say how much."}},
	{name: "compiler", framework: "compiler", backend: "host",
		match: words.Lazy(`fatal error: Killed signal terminated program|` +
			`virtual memory exhausted: Cannot allocate|\b(?:cc1plus|cc1|ld|cicc|ptxas)\S*: out of memory`),
		says: []string{
			"A compiler ran out of host memory or was killed: this is memory of a build on the host, not of the GPU.",
			"Build fewer files at once (MAX_JOBS=1, make -j1), or install a package that is already built."}},
	{name: "yarn", framework: "yarn", backend: "container",
		match: words.Lazy(`killed by YARN for exceeding (?:physical )?memory limits|` +
			`is running beyond (?:physical|virtual) memory limits`), parts: []part{
			find(`SIZE of [\d.]+ ?\w+ (?:physical|virtual) memory used`, inUse),
			find(`[\d.]+ ?\w+ of SIZE (?:physical|virtual) memory used`, allowed)}, says: []string{
			"YARN killed the container: it used {used} of {limit}. | YARN killed the container, as it used more than its limit.",
			"What lies outside the Java heap counts too, Python workers above all: raise spark.executor.memoryOverhead."}},
	{name: "dask", framework: "dask", backend: "host", match: words.Lazy(`exceeded \d+% memory budget`),
		says: []string{
			"Dask's nanny restarted a worker that neared its own limit (memory_limit); the machine may have had room.",
			"Smaller partitions, or fewer and larger workers, need less at once."}},

	// Shared memory.
	{name: "torch-bus-error", framework: "pytorch", backend: "shm",
		match: words.Lazy(`killed by signal: Bus error|workers are out of shared memory|` +
			`Unexpected bus error encountered in worker`), parts: worker, says: []string{
			"DataLoader worker {pid} died of a bus error. A full /dev/shm is the usual cause, as workers pass tensors through " +
				"it; the message is not sure. | A DataLoader worker died of a bus error. A full /dev/shm is the usual cause, as " +
				"workers pass tensors through it; the message is not sure.",
			shmAdvice}},
	{name: "torch-worker-killed", framework: "pytorch", backend: "host",
		match: words.Lazy(`DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:is killed by signal: Killed|` +
			`exited unexpectedly)`),
		parts: worker, says: []string{
			"DataLoader worker {pid} was killed or ended from outside its own code. The kernel's out-of-memory killer is one " +
				"cause of several: the message does not say. | A DataLoader worker was killed or ended from outside its own " +
				"code; the message does not say by what.",
			"`dmesg -T` (“Killed process”) tells. Each worker holds its own copy of what it changes, and prefetch_factor " +
				"batches."}},
	{name: "torch-shm", framework: "pytorch", backend: "shm",
		match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|` +
			`resize file|mmap \d+ bytes from file)[^\n]*No space left`), parts: []part{
			find(`mmap SIZE`, requested)}, says: []string{
			"PyTorch could not put a tensor of {asked} into shared memory (/dev/shm): it is full. | PyTorch could not put a " +
				"tensor into shared memory (/dev/shm): it is full.",
			shmAdvice}},

	{name: "torch-mmap", framework: "pytorch", backend: "shm",
		match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|` +
			`resize file|mmap \d+ bytes from file)[^\n]*Cannot allocate memory`), parts: []part{
			find(`mmap SIZE`, requested)}, says: []string{
			"PyTorch could not map a tensor of {asked} into shared memory: the system refused (ENOMEM). | PyTorch could not " +
				"map a tensor into shared memory: the system refused (ENOMEM).",
			"Too many mappings (vm.max_map_count) or a limit on the process's memory cause it. The message does not say that " +
				"/dev/shm was full.",
			"Fewer tensors per batch of the workers, or torch.multiprocessing.set_sharing_strategy('file_system'), need fewer " +
				"mappings."}},
	{name: "torch-files", framework: "pytorch", backend: "shm",
		match: words.Lazy(`unable to (?:open shared memory object|write to file|allocate shared memory|` +
			`resize file|mmap \d+ bytes from file)[^\n]*Too many open files`), says: []string{
			"The process has as many files open as it may: each tensor in shared memory holds one. This is not a lack of " +
				"memory.",
			"Raise the limit (`ulimit -n`), or use torch.multiprocessing.set_sharing_strategy('file_system')."}},

	// Kernels, schedulers, clusters: who killed the program, and by which limit.
	{name: "kernel-cgroup", framework: "kernel", backend: "cgroup",
		match: words.Lazy(`Memory cgroup out of memory: Kill|CONSTRAINT_MEMCG`), parts: killed, says: []string{
			"The kernel killed process {pid} ({name}): its cgroup (a container, a job, a service) reached its limit. | The " +
				"kernel killed a process, as its cgroup (a container, a job, a service) reached its limit.",
			"That process held {held} of anonymous memory; all of the group's processes count, and files in /dev/shm too.",
			"The limit was {limit}.",
			"The machine itself may have had room: raise the limit, or let all processes of the group hold less."}},
	{name: "kernel-reaper", framework: "kernel", backend: "host", match: words.Lazy(`oom_reaper: reaped process`),
		parts: []part{
			findNumber(`reaped process (\d+)`, pid), findText(`reaped process \d+ \(([^)]*)\)`, name)}, says: []string{
			"The kernel's out-of-memory killer had killed process {pid} ({name}); this line only says that its memory was " +
				"taken back.",
			"The lines before it in `dmesg -T` have the figures, and whether a cgroup's limit or the machine was the cause."}},
	{name: "kernel", framework: "kernel", backend: "host",
		match: words.Lazy(`Out of memory: Kill(?:ed)? process|Out of memory \(oom_kill_allocating_task\)|` +
			`invoked oom-killer`), parts: killed, says: []string{
			"The kernel killed process {pid} ({name}), as the machine had no memory left. | The kernel's out-of-memory killer " +
				"ran.",
			"It held {held} of anonymous memory.",
			"It was chosen as it held most by the kernel's score; who asked last, or who grew, may be another."}},
	{name: "systemd-oomd", framework: "systemd", backend: "cgroup",
		match: words.Lazy(`systemd-oomd killed|killed by systemd-oomd|killed by the OOM killer|` +
			`systemd-oomd\[\d+\]: Killed|Failed with result 'oom-kill'`), says: []string{
			"systemd reports that a process of a unit was killed for lack of memory: by the kernel, or by systemd-oomd, which " +
				"acts on memory pressure and full swap before memory is gone.",
			"`journalctl -k` and `journalctl -u systemd-oomd` have the figures."}},
	{name: "earlyoom", framework: "earlyoom", backend: "host",
		match: words.Lazy(`sending SIG(?:TERM|KILL) to process \d+[^\n]*badness`), parts: []part{
			findNumber(`to process (\d+)`, pid), findText(`to process \d+[^"\n]*"([^"]*)"`, name),
			find(`VmRSS SIZE`, allocated)}, says: []string{
			"earlyoom ended process {pid} ({name}), as the machine had little memory left. | earlyoom ended process {pid}, as " +
				"the machine had little memory left.",
			"It held {held} of host memory.",
			"It was chosen by the kernel's score: who grew may be another."}},
	{name: "kubernetes-node", framework: "kubernetes", backend: "host",
		match: words.Lazy(`System OOM encountered, victim process`), parts: []part{
			findNumber(`pid: (\d+)`, pid), findText(`victim process: ([^,\s]+)`, name)}, says: []string{
			"The kernel killed process {pid} ({name}), as the node itself had no memory left: no container's limit was " +
				"reached. | The kernel killed a process, as the node itself had no memory left: no container's limit was reached.",
			"What pods request decides how many a node takes: requests below what they use lead to this."}},
	{name: "slurm-limit", framework: "slurm", backend: "cgroup",
		match: words.Lazy(`exceeded (?:job|step) memory limit|[Ee]xceeded job memory limit|` +
			`exceeded memory limit \(\d+ > \d+\)`), parts: []part{
			findKilobytes(`memory limit \((\d+) >`, inUse), findKilobytes(`memory limit \(\d+ > (\d+)\)`, allowed)},
		says: []string{
			"Slurm killed the job: it used {used}, and had asked for {limit}. | Slurm killed the job, as it used more memory " +
				"than it had asked for.", slurmAdvice}},
	{name: "slurm", framework: "slurm", backend: "cgroup",
		match: words.Lazy(`[Dd]etected \d+ oom[-_]kill event|srun: error: .*: task \d+: Out Of Memory|` +
			`State=OUT_OF_MEMORY|\bOUT_OF_ME\+?`), says: []string{
			"The kernel killed a process of the Slurm job, in most cases as the job reached the memory that it had asked for " +
				"on this node. The message does not say which process, nor how much it held.", slurmAdvice}},
	{name: "lsf", framework: "lsf", backend: "cgroup", match: words.Lazy(`TERM_MEMLIMIT`), says: []string{
		"LSF killed the job: it reached the memory limit that it was submitted with (bsub -M).",
		"The report of LSF below it has Max Memory."}},
	{name: "pbs", framework: "pbs", backend: "cgroup", match: words.Lazy(`PBS: job killed: (?:p?v?mem) `),
		parts: []part{
			find(`mem SIZE exceeded`, inUse), find(`exceeded limit SIZE`, allowed)}, says: []string{
			"PBS killed the job: it used {used}, and its limit was {limit}.",
			"Ask for more (-l select=…:mem=…), or let it hold less."}},
	{name: "kubernetes-evicted", framework: "kubernetes", backend: "host",
		match: words.Lazy(`[Tt]he node was low on resource: memory`), parts: []part{
			find(`was using SIZE`, inUse), find(`request is SIZE`, requested), find(`available: SIZE`, free)}, says: []string{
			"Kubernetes evicted the pod, as the node ran low on memory: it was not the pod's limit.",
			"A container was using {used} and had requested {asked}. | A container was using {used}.",
			"Pods that use more than they request go first: request what it takes."}},
	{name: "kubernetes-pending", framework: "kubernetes", backend: "host",
		match: words.Lazy(`nodes are available:[^\n]*Insufficient memory`), says: []string{
			"Nothing ran out: the pod requests more host memory than any node has that no other pod requests. It has not " +
				"started.",
			"What counts are requests, not use: lower the pod's request, or add a larger node."}},
	{name: "kubernetes-volume", framework: "kubernetes", backend: "shm",
		match: words.Lazy(`Usage of EmptyDir volume \S+ exceeds the limit`), parts: []part{
			findText(`EmptyDir volume "?([\w.-]+)`, name), find(`exceeds the limit "?SIZE`, allowed)}, says: []string{
			"Kubernetes evicted the pod, as its volume {name} holds more than its sizeLimit of {limit}.",
			"With medium Memory, as for /dev/shm, those files are memory of the pod; the message does not say which medium it " +
				"is."}},
	{name: "kubernetes", framework: "kubernetes", backend: "cgroup", match: words.Lazy(`\bOOMKilled\b`),
		says: []string{
			"The kernel killed the container's process, in most cases as the container reached its memory limit; rarely the " +
				"node itself was full.",
			"It is host memory, not the GPU's. A volume in memory (/dev/shm, emptyDir) counts towards the limit too."}},
	{name: "ray-node", framework: "ray", backend: "host",
		match: words.Lazy(`(?:due to the node running low on memory|killed due to memory pressure \(OOM\))`),
		parts: []part{
			find(`was running was SIZE /`, inUse), find(`was running was [^/]*/ SIZE`, total)}, says: []string{
			"Ray killed a task, as the node had {used} of {total} in use. | Ray killed a task or an actor, as its node ran " +
				"low on memory.",
			"That is the whole node's memory, with other programs; Ray acts at a threshold (RAY_memory_usage_threshold), " +
				"before the kernel does.",
			"The task killed is the one that can be tried again, not always the one that grew."}},
	{name: "ray-monitor", framework: "ray", backend: "host",
		match: words.Lazy(`RayOutOfMemoryError: More than \d+% of the memory on node`), parts: []part{
			{words.Lazy(`is used \(([\d.]+) / [\d.]+ GB\)`), setter(inUse,
				func(text string) mem.Optional { return parseSize(text + "GB") })}, find(`is used \([\d.]+ / SIZE\)`, total)}, says: []string{
			"Ray ended a task with this error, as the node had {used} of {total} in use. | Ray ended a task with this error, " +
				"as its node ran low on memory.",
			"That is the whole node's memory, with other programs: the task that ends is not always the one that grew."}},
	{name: "ray-lost", framework: "ray", backend: "host",
		match: words.Lazy(`killed by SIGKILL by OOM killer due to high memory usage`), says: []string{
			"Ray lost a worker and does not know why. It lists the out-of-memory killer among several causes; that is not a " +
				"finding.",
			"`dmesg -T` (“Killed process”) on that node, and the worker's own log, tell."}},
	{name: "cloud-run", framework: "cloud", backend: "host",
		match: words.Lazy(`Memory limit of [\d.]+ ?\w+ exceeded with [\d.]+ ?\w+ used`), parts: []part{
			find(`limit of SIZE exceeded`, allowed), find(`exceeded with SIZE used`, inUse)}, says: []string{
			"The cloud's service ended the container: it used {used} of host memory, and its limit was {limit}.",
			"Files that it writes to a file system in memory count too."}},
	{name: "lambda", framework: "cloud", backend: "host", match: words.Lazy(`Runtime exited with error: signal: killed`),
		says: []string{
			"The function was killed (SIGKILL). Where “Max Memory Used” is the memory size, it ran out of host memory; the " +
				"message alone does not say."}},
	{name: "condor", framework: "condor", backend: "cgroup",
		match: words.Lazy(`[Jj]ob has gone over (?:cgroup )?memory limit of \d+ megabytes`), says: []string{
			"HTCondor held the job: it went over the host memory that it had requested (request_memory)."}},
	{name: "cloud", framework: "cloud", backend: "host",
		match: words.Lazy(`use an instance type with more memory|` +
			`ran out-of-memory and exited with a non-zero status`),
		says: []string{
			"The cloud's service says that the job's machine ran out of host memory; the message does not say how much the " +
				"job took.",
			"It is not the GPU's: a machine with more memory, fewer workers or smaller prefetches help."}},
	{name: "ray-store", framework: "ray", backend: "shm", match: words.Lazy(`ObjectStoreFullError`), says: []string{
		"Ray's object store is full, which lies in /dev/shm. References that live on keep objects there.",
		"Drop references (del, ray.internal.free), or give it more (object_store_memory)."}},
	{name: "killed", framework: "", backend: "host",
		match: words.Lazy(`(?:SIGKILL\)? received by PID \d+|exitcode ?: ?-9\b|` +
			`[Ee]xit(?:ed)? (?:with )?(?:code|status):? 137\b|returncode=-9\b|Signals\.SIGKILL|` +
			`terminated with signal SIGKILL|(?:line \d+:|zsh:)\s+(?:\d+ )?[Kk]illed\b|(?m:^Killed$))`),
		parts: []part{findNumber(`received by PID (\d+)`, pid)}, says: []string{
			"The process was killed (SIGKILL) from outside. The kernel's out-of-memory killer does so, and so do schedulers, " +
				"time limits and people: the message does not say who.",
			"`dmesg -T` (“Killed process”) on that machine, or the scheduler's account of the job, tells."}},
	{name: "jupyter", framework: "notebook", backend: "host",
		match: words.Lazy(`Kernel died, restarting|[Kk]ernel crashed while executing|kernel appears to have died`),
		says: []string{
			"The notebook's kernel ended, and the message does not say why. Host memory that ran out is a common cause, an " +
				"error in native code another.",
			"`dmesg -T` (“Killed process”) tells, or the same program outside of a notebook."}},
	{name: "colab", framework: "notebook", backend: "host",
		match: words.Lazy(`session crashed after using all available RAM`), says: []string{
			"The notebook's machine ran out of host memory (RAM), not of the GPU's."}},
	{name: "process-pool", framework: "python", backend: "host",
		match: words.Lazy(`BrokenProcessPool: A process in the process pool was terminated abruptly|` +
			`TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated`),
		says: []string{
			"A worker of a pool of processes ended, and Python does not know why: an error in native code, or the kernel's " +
				"out-of-memory killer.",
			"`dmesg -T` (“Killed process”) tells. Each worker holds its own copy of what it is handed."}},
	{name: "no-thread", framework: "system", backend: "host",
		match: words.Lazy(`RuntimeError: can't start new thread|fork: (?:retry: )?Resource temporarily unavailable`),
		says: []string{
			"The system refused a new thread or process. In most cases their number is limited (ulimit -u, the cgroup's " +
				"pids.max): this is then not a lack of memory.",
			"Fewer workers and threads (num_workers, OMP_NUM_THREADS) need fewer."}},
	{name: "pandas-reader", framework: "pandas", backend: "host",
		match: words.Lazy(`Error tokenizing data\. C error: out of memory`), says: []string{
			"pandas' CSV reader asked for host memory, and the system refused; the message does not say how much.",
			"Read it in pieces (chunksize), fewer columns (usecols), or smaller types."}},
	{name: "opencv", framework: "opencv", backend: "host", match: words.Lazy(`\(-4:Insufficient memory\)`),
		parts: []part{find(`Failed to allocate SIZE`, requested)}, says: []string{
			"OpenCV asked for {asked} of host memory, and the system refused. | OpenCV asked for host memory, and the system " +
				"refused."}},
	{name: "r", framework: "r", backend: "host", match: words.Lazy(`cannot allocate vector of size`),
		parts: []part{find(`vector of size SIZE`, requested)}, says: []string{
			"R asked for one vector of {asked} of host memory, and could not get it. | R asked for host memory and could not " +
				"get it.",
			"That is the last request, not what the session holds in all."}},
	{name: "duckdb", framework: "duckdb", backend: "host",
		match: words.Lazy(`Out of Memory Error: (?:failed to allocate data|could not allocate block) of size`),
		parts: []part{
			find(`of size SIZE`, requested), find(`\(SIZE/`, inUse), find(`/SIZE used\)`, allowed)}, says: []string{
			"DuckDB asked for {asked} and could not get it; {used} of its limit of {limit} were in use. | DuckDB asked for " +
				"{asked} and could not get it.",
			"That limit is its own (memory_limit, by default four fifths of the RAM), not what the machine has."}},
	{name: "bad-alloc", framework: "c++", backend: "host",
		match: words.Lazy(`std::bad_alloc|LLVM ERROR: out of memory|libgomp: Out of memory`), says: []string{
			"A library in C or C++ asked for host memory and the system refused; the message does not say how much.",
			"The system refuses by a limit (ulimit -v), strict overcommit, or as the request is absurd: a corrupt file or a " +
				"negative size looks like this too."}},
	{name: "enomem", framework: "system", backend: "host",
		match: words.Lazy(`\[Errno 12\]|(?:fork: |mmap(?: failed)?: |ENOMEM[^\n]*|` +
			`errno = 12[^\n]*)Cannot allocate memory|Cannot allocate memory \(os error 12\)`), says: []string{
			"The system refused memory or a new process (ENOMEM). A fork needs room for a copy of what the parent may write: " +
				"a large parent fails here first.",
			"Limits (ulimit -v, cgroups, vm.overcommit_memory=2) and the number of mappings (vm.max_map_count) give the same " +
				"error."}},
	{name: "tensorflow-warning", framework: "tensorflow", backend: "host",
		match: words.Lazy(`Allocation of \d+ exceeds \d+% of free system memory`),
		parts: []part{findNumber(`Allocation of (\d+) exceeds`, requested)}, says: []string{
			"This is a warning, no failure: TensorFlow took {asked} of host memory at once."}},
	{name: "python", framework: "python", backend: "host", match: words.Lazy(`(?m)^\s*MemoryError\b`), says: []string{
		"Python asked for host memory and the system refused; the message does not say how much.",
		"On Linux that comes of a limit (ulimit -v), of strict overcommit, or of one absurd request: a machine that is " +
			"merely full kills instead."}},
}

const (
	shmAdvice = "/dev/shm is a file system in memory with a size of its own, 64 MiB in a container unless set: " +
		"docker run --shm-size=8g or --ipc=host; in Kubernetes an emptyDir with medium Memory."
	slurmAdvice = "It is host memory, not the GPU's. Ask for more (--mem, --mem-per-cpu), or see with `sacct -j JOB -o " +
		"MaxRSS,ReqMem` how much it took between samples."
)

var worker = []part{findNumber(`DataLoader worker \(pid\(?s?\)? ?(\d+)`, pid)}

// killed are the figures of the kernel's out-of-memory killer, whose kB are KiB.
var killed = []part{
	findNumber(`(?i)killed? process (\d+)`, pid), findText(`(?i)killed? process \d+ \(([^)]*)\)`, name),
	find(`anon-rss:SIZE`, allocated), find(`total-vm:SIZE`, other), find(`memory: usage [^,]*, limit SIZE`, allowed)}
