// Package psutil reads the table of processes through gopsutil: on macOS, and in tests on Linux beside /proc.
package psutil

import (
	"context"

	"hightide/internal/mem"
	"hightide/internal/processes"

	psmem "github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// Table is that of this system.
type Table struct{}

// List implements processes.Table.
func (*Table) List() ([]processes.Process, error) {
	process.EnableBootTimeCache(true) // on Linux the time of a start is made of it, and is to stay what it was
	pids, err := process.Pids()
	if err != nil {
		return nil, err
	}
	all := make([]processes.Process, 0, len(pids))
	for _, pid := range pids {
		if p, ok := find(pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

func find(pid int32) (processes.Process, bool) {
	p := process.Process{Pid: pid}
	parent, err := p.Ppid()
	if err != nil {
		return processes.Process{}, false
	}
	began, err := p.CreateTime()
	return processes.Process{PID: int(pid), Parent: int(parent), Start: uint64(max(began, 0))}, err == nil
}

// Figures implements processes.Table.
func (*Table) Figures(pid int) (f processes.Figures, ok bool) {
	p := process.Process{Pid: int32(pid)}
	memory, err := p.MemoryInfo()
	if err != nil || memory.RSS == 0 { // of one that ended or may not be looked at, macOS' libproc tells nothing
		return f, false
	}
	f.RSS, f.VMS = int64(memory.RSS), mem.Some(int64(memory.VMS))
	if memory.HWM > 0 {
		f.MaxRSS = mem.Some(int64(memory.HWM))
	}
	if times, err := p.Times(); err == nil {
		f.CPU = mem.Some(int64((times.User + times.System) * 1e9))
	}
	if threads, err := p.NumThreads(); err == nil && threads > 0 {
		f.Threads = mem.Some(int64(threads))
	}
	if files, err := p.NumFDs(); err == nil {
		f.Files = mem.Some(int64(files))
	}
	if faults, err := p.PageFaults(); err == nil {
		f.MinorFaults, f.MajorFaults = mem.Some(int64(faults.MinorFaults)), mem.Some(int64(faults.MajorFaults))
	}
	askLibproc(pid, &f)
	return f, true
}

// Command implements processes.Table.
func (*Table) Command(pid int) []string {
	words, err := (&process.Process{Pid: int32(pid)}).CmdlineSliceWithContext(context.Background())
	if err != nil {
		return nil
	}
	return words
}

// Memory implements processes.Table.
func (*Table) Memory() (m processes.Memory) {
	if all, err := psmem.VirtualMemory(); err == nil {
		m.Total, m.Available = mem.Some(int64(all.Total)), mem.Some(int64(all.Available))
	}
	return m
}
