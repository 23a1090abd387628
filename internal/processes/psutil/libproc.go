package psutil

import (
	"encoding/binary"

	"hightide/internal/mem"
	"hightide/internal/processes"
)

// What macOS' libproc tells and gopsutil does not: page faults, and the memory that the system puts down to a process.
// Offsets are those of struct proc_taskinfo (sys/proc_info.h) and struct rusage_info_v2 (sys/resource.h), which are the
// same on both processors.
const (
	taskInfoBytes = 96
	atFaults      = 52
	atPageins     = 56

	rusageBytes = 160
	atFootprint = 72
)

// addTaskInfo takes the counts of an answer of proc_pidinfo(PROC_PIDTASKINFO). The counters have 32 bits and wrap: from
// there on they tell nothing.
func addTaskInfo(f *processes.Figures, answer []byte) {
	if len(answer) != taskInfoBytes {
		return
	}
	faults := int64(int32(binary.LittleEndian.Uint32(answer[atFaults:])))
	pageins := int64(int32(binary.LittleEndian.Uint32(answer[atPageins:])))
	if faults > 0 && pageins >= 0 && pageins <= faults {
		f.MinorFaults, f.MajorFaults = mem.Some(faults-pageins), mem.Some(pageins)
	}
}

// addRusage takes the footprint of an answer of proc_pid_rusage(RUSAGE_INFO_V2).
func addRusage(f *processes.Figures, answer []byte) {
	if len(answer) != rusageBytes {
		return
	}
	if footprint := int64(binary.LittleEndian.Uint64(answer[atFootprint:])); footprint > 0 {
		f.Private = mem.Some(footprint)
	}
}
