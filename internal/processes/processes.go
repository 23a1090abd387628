// Package processes asks the operating system what runs and what it has, where there is no /proc: on macOS and Windows.
//
//	psutil.Table  (macOS: sysctl, libproc)               ─┐
//	Windows       (one answer of NtQuerySystemInformation) ├─▶ Table ─▶ sampler.Portable, launch.Look
//	here.Table    picks the one of this system            ─┘
//
// Nothing here keeps state about a run. What a system does not tell is absent. On Linux the table is used by tests
// alone, beside the sampler that reads /proc.
package processes

import "hightide/internal/mem"

// Process is one that runs. PID and Start together are its identity: numbers are given again.
type Process struct {
	PID, Parent int
	Start       uint64 // when it began, ms since 1970 by the clock of the wall
}

// Figures are what a process has, bytes and counts since it began.
type Figures struct {
	RSS         int64 // resident; on Windows the working set
	VMS         mem.Optional
	MaxRSS      mem.Optional // the system's own mark of the highest RSS
	Private     mem.Optional // what the system puts down to it alone: footprint on macOS, commit charge on Windows
	CPU         mem.Optional // ns
	Threads     mem.Optional
	MinorFaults mem.Optional // without those that read from a disk
	MajorFaults mem.Optional
	Files       mem.Optional // open descriptors
}

// Memory is that of the machine, in bytes.
type Memory struct{ Total, Available mem.Optional }

// Table is what a system tells of its processes. It is for one goroutine.
type Table interface {
	// List returns all that run. Zombies may be among them: Figures has none of those.
	List() ([]Process, error)
	// Figures are those of the last List or newer; false: it has ended, or may not be looked at.
	Figures(pid int) (Figures, bool)
	// Command is its argument vector, as far as it may be read.
	Command(pid int) []string
	// Memory of the machine.
	Memory() Memory
}

// Find looks up one process.
func Find(t Table, pid int) (Process, bool) {
	all, err := t.List()
	if err != nil {
		return Process{}, false
	}
	for _, p := range all {
		if p.PID == pid {
			return p, true
		}
	}
	return Process{}, false
}
