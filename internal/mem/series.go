package mem

// Names of the series that hightide itself writes. A series belongs to a process, or with process
// 0 to the whole process tree ("tree.…") or the host; the label says how it was come by.
const (
	SeriesRSS         = "host.rss"          // bytes resident, of one process
	SeriesVMS         = "host.vms"          // bytes of address space
	SeriesSwap        = "host.swap"         // bytes swapped out
	SeriesPSS         = "host.pss"          // bytes resident, shared pages divided by their users
	SeriesUSS         = "host.uss"          // bytes resident that no other process shares
	SeriesMinorFaults = "host.faults.minor" // count since the process began
	SeriesMajorFaults = "host.faults.major"
	SeriesCPU         = "host.cpu" // ns of processor time since the process began
	SeriesThreads     = "host.threads"
	SeriesFiles       = "host.files"

	SeriesTreeRSS = "tree.rss" // sum over the process tree: shared pages count once per process
	SeriesTreePSS = "tree.pss" // sum of PSS: what the tree really takes
	SeriesTreeUSS = "tree.uss"

	SeriesSystemAvailable = "system.available"
	SeriesSystemTotal     = "system.total"
	SeriesCgroupUsed      = "cgroup.used"
	SeriesCgroupLimit     = "cgroup.limit"
	SeriesCgroupOOM       = "cgroup.oom"      // count of times the limit was hit with nothing to reclaim
	SeriesCgroupOOMKill   = "cgroup.oom_kill" // count of processes killed for it

	SeriesHeapLive = "heap.live" // bytes, sampled

	SeriesAllocated     = "torch.allocated" // bytes handed to tensors by the caching allocator
	SeriesReserved      = "torch.reserved"  // bytes it holds from the device
	SeriesActive        = "torch.active"
	SeriesInactiveSplit = "torch.inactive_split"
	SeriesRequested     = "torch.requested"
	SeriesRetries       = "torch.retries"
	SeriesOOMs          = "torch.ooms"

	SeriesDeviceUsed        = "device.used"    // bytes in use on the device, by anyone
	SeriesDeviceProcess     = "device.process" // bytes the vendor's interface puts down to one process
	SeriesDeviceUtilisation = "device.utilisation"
	SeriesDeviceTemperature = "device.temperature"
	SeriesDevicePower       = "device.power"

	SeriesSampleInterval = "hightide.pss_interval" // ns: the interval at which PSS was being read
	SeriesOwnCPU         = "hightide.cpu"          // ns of the engine itself
	SeriesOwnRSS         = "hightide.rss"
)
