package sampler

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"hightide/internal/mem"
	"hightide/internal/processes"
	"hightide/internal/processes/here"
	"hightide/internal/system"
)

// Details is what is read of one process when somebody asks for it, as some of it costs: its PSS tens of milliseconds
// for a gigabyte. What the kernel does not tell, or not to this user, is absent.
type Details struct {
	PSS, USS          mem.Optional // shared pages divided by their users; without them
	Anon, File, Shmem mem.Optional // of the resident memory: its own, mapped files, shared memory
	Swap, Peak        mem.Optional // swapped out; the highest RSS since it began
	OpenFiles         mem.Optional
	Age               mem.Optional // ns since it began
	Folder            string       // in which it works
}

// ReadDetails reads the process that began at startTicks; ErrGone where that has ended.
func ReadDetails(root string, pid int, startTicks uint64) (*Details, error) {
	if table := here.Table(); table != nil {
		return detailsByTable(table, pid, startTicks)
	}
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	status, err := os.ReadFile(dir + "/status")
	if err != nil || !sameProcess(root, pid, startTicks) {
		return nil, ErrGone
	}
	d := &Details{}
	for name, into := range map[string]*mem.Optional{"RssAnon": &d.Anon, "RssFile": &d.File, "RssShmem": &d.Shmem,
		"VmSwap": &d.Swap, "VmHWM": &d.Peak} {
		if value, ok := field(status, name); ok {
			*into = mem.Some(value)
		}
	}
	if rollup, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		pss, known := field(rollup, "Pss")
		clean, _ := field(rollup, "Private_Clean")
		dirty, _ := field(rollup, "Private_Dirty")
		huge, _ := field(rollup, "Private_Hugetlb")
		if known {
			d.PSS, d.USS = mem.Some(pss), mem.Some(clean+dirty+huge)
		}
	}
	if open, err := os.ReadDir(dir + "/fd"); err == nil {
		d.OpenFiles = mem.Some(int64(len(open)))
	}
	d.Folder, _ = os.Readlink(dir + "/cwd")
	if text, err := os.ReadFile(filepath.Join(root, "proc", "uptime")); err == nil {
		first, _, _ := bytes.Cut(text, []byte(" "))
		if up, err := strconv.ParseFloat(string(first), 64); err == nil {
			d.Age = mem.Some(max(int64(up*1e9)-int64(startTicks)*clockTick, 0))
		}
	}
	return d, nil
}

// detailsByTable is what a table of processes tells of one.
func detailsByTable(table processes.Table, pid int, start uint64) (*Details, error) {
	p, ok := processes.Find(table, pid)
	figures, known := table.Figures(pid)
	if !ok || !known || p.Start != start {
		return nil, ErrGone
	}
	return &Details{Peak: figures.MaxRSS, OpenFiles: figures.Files,
		Age: mem.Some(max(system.WallClock()-int64(start)*1e6, 0))}, nil
}

// Signal sends a signal to the process that began at startTicks. A descriptor of the process is taken first, so that
// a number which became another's in between is never signalled.
func Signal(pid int, startTicks uint64, signal syscall.Signal) error {
	return signalError(sendIf(pid, signal, func() bool { return sameProcess("/", pid, startTicks) }))
}

func signalError(err error) error {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return ErrGone
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("it belongs to another user")
	}
	return err
}
