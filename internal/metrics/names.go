package metrics

import "hightide/internal/mem"

// kind says what a metric is of, and so which labels it has.
type kind int

const (
	ofRun     kind = iota // the process tree, or the machine it runs on
	ofProcess             // one process
	ofDevice              // a device, or one process on it
)

// labels of each kind. run is the run's id; process its number there, empty for what is of no single process. The
// label says how a figure was come by: measured, imagined, replayed, estimated.
var labels = map[kind][]string{
	ofRun:     {"run", "label"},
	ofProcess: {"run", "process", "rank", "label"},
	ofDevice:  {"run", "process", "rank", "device", "framework", "label"},
}

// metric is how a series is told: a name by Prometheus's conventions, in base units.
type metric struct {
	series  mem.Quantity
	name    string
	of      kind
	counter bool    // it only grows, from the start of its process on
	scale   float64 // of the recorded integer to the base unit; 0: 1
	help    string
}

const (
	perNanosecond = 1e-9
	perMilli      = 1e-3
)

// told lists the series that are told. Add yours here. The others are parts that readers of a recording need to bound
// another figure.
var told = []metric{
	{mem.SeriesTreeRSS, "hightide_run_resident_memory_bytes", ofRun, false, 0,
		"Resident memory of the run's processes, summed: shared pages count once for each."},
	{mem.SeriesTreePSS, "hightide_run_proportional_memory_bytes", ofRun, false, 0,
		"Resident memory of the run's processes, shared pages counted once."},
	{mem.SeriesTreePSSError, "hightide_run_proportional_memory_error_bytes", ofRun, false, 0,
		"How far the proportional memory may be off, to either side."},
	{mem.SeriesTreeUSS, "hightide_run_unique_memory_bytes", ofRun, false, 0,
		"Resident memory that no process outside of the one counted shares, summed."},

	{mem.SeriesRSS, "hightide_process_resident_memory_bytes", ofProcess, false, 0, "Resident memory of a process."},
	{mem.SeriesRSSFile, "hightide_process_resident_file_bytes", ofProcess, false, 0,
		"Of the resident memory of a process, that of mapped files."},
	{mem.SeriesRSSShared, "hightide_process_resident_shared_bytes", ofProcess, false, 0,
		"Of the resident memory of a process, shared memory."},
	{mem.SeriesPrivate, "hightide_process_private_memory_bytes", ofProcess, false, 0,
		"What the system puts down to a process alone: footprint on macOS, commit charge on Windows."},
	{mem.SeriesLocked, "hightide_process_locked_memory_bytes", ofProcess, false, 0,
		"Mappings of a process that are locked in memory."},
	{mem.SeriesPSS, "hightide_process_proportional_memory_bytes", ofProcess, false, 0,
		"Resident memory of a process, shared pages divided by their users."},
	{mem.SeriesUSS, "hightide_process_unique_memory_bytes", ofProcess, false, 0,
		"Resident memory that no other process shares."},
	{mem.SeriesVMS, "hightide_process_virtual_memory_bytes", ofProcess, false, 0, "Address space of a process."},
	{mem.SeriesSwap, "hightide_process_swap_bytes", ofProcess, false, 0, "Memory of a process that is swapped out."},
	{mem.SeriesMinorFaults, "hightide_process_minor_page_faults_total", ofProcess, true, 0,
		"Page faults served without reading."},
	{mem.SeriesMajorFaults, "hightide_process_major_page_faults_total", ofProcess, true, 0,
		"Page faults that had to read from disk."},
	{mem.SeriesCPU, "hightide_process_cpu_seconds_total", ofProcess, true, perNanosecond, "Processor time of a process."},
	{mem.SeriesThreads, "hightide_process_threads", ofProcess, false, 0, "Threads of a process."},
	{mem.SeriesFiles, "hightide_process_open_files", ofProcess, false, 0, "Open file descriptors of a process."},
	{mem.SeriesFilesLimit, "hightide_process_open_files_limit", ofProcess, false, 0,
		"Open file descriptors that a process may have."},
	{mem.SeriesThreadsLimit, "hightide_process_threads_limit", ofProcess, false, 0,
		"Threads that all processes of a process's user may have."},
	{mem.SeriesVMSLimit, "hightide_process_virtual_memory_limit_bytes", ofProcess, false, 0,
		"Address space that a process may have."},
	{mem.SeriesHeapLive, "hightide_process_heap_bytes", ofProcess, false, 0, "Live heap of a process, sampled."},
	{mem.SeriesMallocUsed, "hightide_process_malloc_used_bytes", ofProcess, false, 0,
		"Bytes of malloc's arenas that the program has."},
	{mem.SeriesMallocFree, "hightide_process_malloc_free_bytes", ofProcess, false, 0,
		"Bytes of malloc's arenas that nobody has."},
	{mem.SeriesMallocTop, "hightide_process_malloc_top_bytes", ofProcess, false, 0,
		"Of the free bytes, those at the end of the main arena."},
	{mem.SeriesMallocMapped, "hightide_process_malloc_mapped_bytes", ofProcess, false, 0,
		"Bytes of malloc's blocks that have a mapping of their own."},
	{mem.SeriesMallocResident, "hightide_process_malloc_free_resident_bytes", ofProcess, false, 0,
		"Of malloc's free bytes, those that are resident, estimated."},
	{mem.SeriesMallocThreads, "hightide_process_malloc_thread_arenas_bytes", ofProcess, false, 0,
		"Resident bytes of malloc's arenas beside the main one, estimated."},

	{mem.SeriesAllocated, "hightide_allocator_allocated_bytes", ofDevice, false, 0,
		"Device memory that the framework's allocator has handed out."},
	{mem.SeriesReserved, "hightide_allocator_reserved_bytes", ofDevice, false, 0,
		"Device memory that the framework's allocator holds."},
	{mem.SeriesActive, "hightide_allocator_active_bytes", ofDevice, false, 0,
		"Device memory of blocks in use, with those that wait for another stream."},
	{mem.SeriesInactiveSplit, "hightide_allocator_inactive_split_bytes", ofDevice, false, 0,
		"Device memory cached beside blocks in use: fragmentation."},
	{mem.SeriesRequested, "hightide_allocator_requested_bytes", ofDevice, false, 0,
		"Device memory asked of the allocator, before it rounds."},
	{mem.SeriesRetries, "hightide_allocator_retries_total", ofDevice, true, 0,
		"Requests that needed the allocator's cache emptied first."},
	{mem.SeriesOOMs, "hightide_allocator_out_of_memory_total", ofDevice, true, 0, "Requests that found no memory."},
	{mem.SeriesDeviceUsed, "hightide_device_used_bytes", ofDevice, false, 0, "Memory in use on the device, by anyone."},
	{mem.SeriesDeviceProcess, "hightide_device_process_used_bytes", ofDevice, false, 0,
		"Memory on the device that its driver puts down to the process."},
	{mem.SeriesDeviceUtilisation, "hightide_device_utilisation_ratio", ofDevice, false, perMilli,
		"Share of time in which the device worked, 0 to 1."},
	{mem.SeriesDeviceTemperature, "hightide_device_temperature_celsius", ofDevice, false, 0, "Temperature of the device."},
	{mem.SeriesDevicePower, "hightide_device_power_watts", ofDevice, false, perMilli, "Power that the device draws."},

	{mem.SeriesSystemAvailable, "hightide_host_available_memory_bytes", ofRun, false, 0,
		"Memory that the machine of the run has left."},
	{mem.SeriesSystemTotal, "hightide_host_memory_bytes", ofRun, false, 0, "Memory that the machine of the run has."},
	{mem.SeriesCgroupUsed, "hightide_cgroup_used_bytes", ofRun, false, 0, "Memory of the run's control group."},
	{mem.SeriesCgroupFile, "hightide_cgroup_file_bytes", ofRun, false, 0,
		"Of the memory of the run's control group, pages of files that the kernel can take back."},
	{mem.SeriesCgroupLimit, "hightide_cgroup_limit_bytes", ofRun, false, 0,
		"Memory that the run's control group may have."},
	{mem.SeriesCgroupOOM, "hightide_cgroup_out_of_memory_total", ofRun, true, 0,
		"Times that the control group hit its limit with nothing to reclaim."},
	{mem.SeriesCgroupOOMKill, "hightide_cgroup_kills_total", ofRun, true, 0,
		"Processes of the control group that were killed for lack of memory."},
	{mem.SeriesTreeThreads, "hightide_run_threads", ofRun, false, 0, "Threads of the run's processes."},
	{mem.SeriesCgroupThreads, "hightide_cgroup_threads", ofRun, false, 0,
		"Threads of the control group that comes nearest to its limit of them."},
	{mem.SeriesCgroupThreadsLimit, "hightide_cgroup_threads_limit", ofRun, false, 0,
		"Threads that this control group may have."},
	{mem.SeriesSystemThreads, "hightide_host_threads", ofRun, false, 0,
		"Threads of the machine of the run, the kernel's own included."},
	{mem.SeriesSystemThreadsLimit, "hightide_host_threads_limit", ofRun, false, 0,
		"Threads that the machine of the run may have."},
	{mem.SeriesShmUsed, "hightide_shm_used_bytes", ofRun, false, 0, "Memory in /dev/shm, of all programs."},
	{mem.SeriesShmTotal, "hightide_shm_bytes", ofRun, false, 0, "Memory that /dev/shm may have."},

	{mem.SeriesOwnCPU, "hightide_recorder_cpu_seconds_total", ofRun, true, perNanosecond,
		"Processor time of the hightide that records the run."},
	{mem.SeriesOwnRSS, "hightide_recorder_resident_memory_bytes", ofRun, false, 0,
		"Resident memory of the hightide that records the run."},
}
