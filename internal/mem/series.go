package mem

import "strings"

// Quantity says what a series measures. Analyses, pictures and tables ask for a quantity, and never for whoever
// measured it: which framework, process and device a series belongs to are fields of its definition.
type Quantity string

// The quantities that hightide itself records. A series belongs to a process, or with process 0 to the whole
// process tree ("tree.…") or the host; the label says how it was come by.
const (
	SeriesRSS  Quantity = "host.rss"  // bytes resident, of one process
	SeriesVMS  Quantity = "host.vms"  // bytes of address space
	SeriesSwap Quantity = "host.swap" // bytes swapped out
	SeriesPSS  Quantity = "host.pss"  // bytes resident, shared pages divided by their users
	SeriesUSS  Quantity = "host.uss"  // bytes resident that no other process shares
	// of the resident bytes, those of mapped files: libraries, data read through mmap
	SeriesRSSFile Quantity = "host.rss.file"
	// and those of shared memory: /dev/shm, memfd, shared mappings without a file
	SeriesRSSShared Quantity = "host.rss.shared"
	SeriesLocked    Quantity = "host.locked" // bytes of mappings that are locked in memory, whatever they are of
	// bytes that the system puts down to the process alone: the footprint on macOS, the commit charge on Windows
	SeriesPrivate     Quantity = "host.private"
	SeriesMinorFaults Quantity = "host.faults.minor" // count since the process began
	SeriesMajorFaults Quantity = "host.faults.major"
	SeriesCPU         Quantity = "host.cpu" // ns of processor time since the process began
	SeriesThreads     Quantity = "host.threads"
	SeriesFiles       Quantity = "host.files"

	// How far these may rise, where there is a limit (setrlimit(2)).
	SeriesVMSLimit     Quantity = "host.vms.limit"
	SeriesThreadsLimit Quantity = "host.threads.limit" // of all processes of the user together
	SeriesFilesLimit   Quantity = "host.files.limit"

	SeriesTreeRSS Quantity = "tree.rss" // sum over the process tree: shared pages count once per process
	// sum of PSS, what the tree really takes: estimated between its readings
	SeriesTreePSS      Quantity = "tree.pss"
	SeriesTreePSSError Quantity = "tree.pss_error" // how far it may be off, to either side
	SeriesTreeUSS      Quantity = "tree.uss"
	// of anonymous memory and files: by as much as a later value is above an earlier one, tree.pss was below its upper
	// bound then
	SeriesTreeShared   Quantity = "tree.shared"
	SeriesTreeSegments Quantity = "tree.shared_memory" // the same of shared memory
	SeriesTreeThreads  Quantity = "tree.threads"

	SeriesSystemAvailable Quantity = "system.available"
	SeriesSystemTotal     Quantity = "system.total"
	SeriesCgroupUsed      Quantity = "cgroup.used"
	SeriesCgroupFile      Quantity = "cgroup.file" // of that, pages of files that the kernel can take back
	SeriesCgroupLimit     Quantity = "cgroup.limit"
	SeriesCgroupOOM       Quantity = "cgroup.oom"      // count of times the limit was hit with nothing to reclaim
	SeriesCgroupOOMKill   Quantity = "cgroup.oom_kill" // count of processes killed for it

	// Threads of all processes, and how many there may be: of the control group that comes nearest to its limit, and of
	// the machine.
	SeriesCgroupThreads      Quantity = "cgroup.threads"
	SeriesCgroupThreadsLimit Quantity = "cgroup.threads.limit"
	SeriesSystemThreads      Quantity = "system.threads"
	SeriesSystemThreadsLimit Quantity = "system.threads.limit"

	SeriesShmUsed  Quantity = "shm.used"  // bytes of the file system /dev/shm, by anyone
	SeriesShmTotal Quantity = "shm.total" // that it may have

	SeriesHeapLive Quantity = "heap.live" // bytes, sampled

	// What the C library's malloc holds, in its own count. Of free bytes those count as resident that must be, by the
	// kernel's map of the arenas.
	SeriesMallocUsed     Quantity = "malloc.used"          // bytes of its arenas that the program has
	SeriesMallocFree     Quantity = "malloc.free"          // bytes of its arenas that nobody has
	SeriesMallocTop      Quantity = "malloc.top"           // of free: the end of the main arena
	SeriesMallocMapped   Quantity = "malloc.mapped"        // bytes of blocks with a mapping of their own
	SeriesMallocResident Quantity = "malloc.free_resident" // of free, estimated
	// resident bytes of the arenas beside the main one, which threads have
	SeriesMallocThreads Quantity = "malloc.threads"

	SeriesAllocated     Quantity = "allocator.allocated"      // bytes that the framework's allocator has handed out
	SeriesReserved      Quantity = "allocator.reserved"       // bytes it holds from the device
	SeriesActive        Quantity = "allocator.active"         // bytes of blocks in use, with what waits for another stream
	SeriesInactiveSplit Quantity = "allocator.inactive_split" // bytes of pieces cached beside blocks in use
	SeriesRequested     Quantity = "allocator.requested"      // bytes asked of it, before it rounds
	SeriesRetries       Quantity = "allocator.retries"        // count of requests that needed the cache emptied first
	SeriesOOMs          Quantity = "allocator.ooms"           // count of requests that failed

	SeriesDeviceUsed        Quantity = "device.used"    // bytes in use on the device, by anyone
	SeriesDeviceProcess     Quantity = "device.process" // bytes the vendor's interface puts down to one process
	SeriesDeviceUtilisation Quantity = "device.utilisation"
	SeriesDeviceTemperature Quantity = "device.temperature"
	SeriesDevicePower       Quantity = "device.power"

	// When a rank came to where ranks wait for each other, in each step: the value is how many steps it had completed.
	SeriesEnteredForward    Quantity = "entered.forward"    // what DDP sends before a forward pass
	SeriesEnteredBackward   Quantity = "entered.backward"   // a backward pass that sums gradients
	SeriesEnteredCollective Quantity = "entered.collective" // the first collective that the program or a library calls

	SeriesSampleInterval Quantity = "hightide.pss_interval" // ns: the interval at which PSS was being read
	SeriesOwnCPU         Quantity = "hightide.cpu"          // ns of the engine itself
	SeriesOwnRSS         Quantity = "hightide.rss"
)

// Quantities lists all of them.
var Quantities = []Quantity{
	SeriesRSS, SeriesVMS, SeriesSwap, SeriesPSS, SeriesUSS, SeriesRSSFile, SeriesRSSShared, SeriesLocked, SeriesPrivate,
	SeriesMinorFaults, SeriesMajorFaults, SeriesCPU, SeriesThreads, SeriesFiles,
	SeriesVMSLimit, SeriesThreadsLimit, SeriesFilesLimit,
	SeriesTreeRSS, SeriesTreePSS, SeriesTreePSSError, SeriesTreeUSS, SeriesTreeShared, SeriesTreeSegments,
	SeriesTreeThreads, SeriesSystemAvailable, SeriesSystemTotal,
	SeriesCgroupUsed, SeriesCgroupFile, SeriesCgroupLimit, SeriesCgroupOOM, SeriesCgroupOOMKill, SeriesHeapLive,
	SeriesCgroupThreads, SeriesCgroupThreadsLimit, SeriesSystemThreads, SeriesSystemThreadsLimit, SeriesShmUsed,
	SeriesShmTotal,
	SeriesMallocUsed, SeriesMallocFree, SeriesMallocTop, SeriesMallocMapped, SeriesMallocResident, SeriesMallocThreads,
	SeriesAllocated, SeriesReserved, SeriesActive, SeriesInactiveSplit, SeriesRequested, SeriesRetries, SeriesOOMs,
	SeriesDeviceUsed, SeriesDeviceProcess, SeriesDeviceUtilisation, SeriesDeviceTemperature, SeriesDevicePower,
	SeriesEnteredForward, SeriesEnteredBackward, SeriesEnteredCollective, SeriesSampleInterval, SeriesOwnCPU, SeriesOwnRSS,
}

// OfDevice says whether the quantity is of a device's memory, and not of the host's.
func (q Quantity) OfDevice() bool {
	return strings.HasPrefix(string(q), "allocator.") || strings.HasPrefix(string(q), "device.")
}
