package launch

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// begun is a program that was started, in a job of its own: the system counts all that it starts to it, and ends them
// together.
type begun struct {
	pid     int
	process windows.Handle
	job     windows.Handle // 0: it could not be put into one
	own     bool           // it is to end when this process does
}

// ownAndLast has a command lead a group of its own: Ctrl-C does not reach it.
func ownAndLast() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

var resume = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// startIn starts a program. It stands still until it is in its job: nothing that it starts is outside.
func startIn(_ Group, path string, argv []string, attr *syscall.ProcAttr) (*begun, error) {
	with, own := *attr, attr.Sys != nil
	sys := syscall.SysProcAttr{}
	if own {
		sys = *attr.Sys
	}
	sys.CreationFlags |= windows.CREATE_SUSPENDED
	with.Sys = &sys
	pid, process, err := syscall.StartProcess(path, argv, &with)
	if err != nil {
		return nil, err
	}
	b := &begun{pid: pid, process: windows.Handle(process)}
	if job, err := newJob(own); err == nil {
		if windows.AssignProcessToJobObject(job, b.process) == nil {
			b.job = job
		} else {
			_ = windows.CloseHandle(job)
		}
	}
	if status, _, _ := resume.Call(uintptr(b.process)); status != 0 {
		_ = windows.TerminateProcess(b.process, 1)
		b.close()
		return nil, fmt.Errorf("it could not be let run: status %#x", status)
	}
	return b, nil
}

// newJob is a job; what is in it ends with its last handle, where it is our own.
func newJob(own bool) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil || !own {
		return job, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return job, err
}

// wait waits for its end.
func (b *begun) wait(change *Change) error {
	if _, err := windows.WaitForSingleObject(b.process, windows.INFINITE); err != nil {
		return err
	}
	if err := windows.GetExitCodeProcess(b.process, &change.Status.ExitCode); err != nil {
		return err
	}
	change.peak = peakOf(b.process)
	return nil
}

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX.
type memoryCounters struct {
	size, faults                                                                            uint32
	peakRSS, rss, peakPaged, paged, peakNonPaged, nonPaged, pagefile, peakPagefile, private uintptr
}

var processMemory = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// peakOf is the highest working set of a process, which may have ended; 0: not told.
func peakOf(process windows.Handle) int64 {
	var counters memoryCounters
	counters.size = uint32(unsafe.Sizeof(counters))
	if ok, _, _ := processMemory.Call(uintptr(process), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size)); ok == 0 {
		return 0
	}
	return int64(counters.peakRSS)
}

func maxRSS(*Change) int64 { return 0 } // its peak is read as it ends

// endedByUs is the exit code of what is ended from outside. Windows has no signals: whatever is asked for that ends a
// process on other systems ends it here, with all that it started.
const endedByUs = 1

func (b *begun) signal(s syscall.Signal, _ bool) {
	switch s {
	case syscall.SIGTERM, syscall.SIGKILL, syscall.SIGQUIT:
		if b.job == 0 || windows.TerminateJobObject(b.job, endedByUs) != nil {
			_ = windows.TerminateProcess(b.process, endedByUs)
		}
	}
}

// members lists the processes of the job.
func (b *begun) members() func() []int {
	if b.job == 0 {
		return nil
	}
	return func() []int { return membersOf(b.job) }
}

func membersOf(job windows.Handle) (pids []int) {
	// JOBOBJECT_BASIC_PROCESS_ID_LIST: how many there are, how many follow, their numbers
	for room := 256; room <= 1<<20; room *= 4 {
		list := make([]uintptr, 1+room)
		err := windows.QueryInformationJobObject(job, windows.JobObjectBasicProcessIdList,
			uintptr(unsafe.Pointer(&list[0])), uint32(len(list))*uint32(unsafe.Sizeof(list[0])), nil)
		if err == windows.ERROR_MORE_DATA {
			continue
		}
		if err != nil {
			return nil
		}
		counts := (*[2]uint32)(unsafe.Pointer(&list[0]))
		for _, pid := range list[1 : 1+min(int(counts[1]), room)] {
			pids = append(pids, int(pid))
		}
		return pids
	}
	return nil
}

func (b *begun) close() {
	for _, handle := range []windows.Handle{b.process, b.job} {
		if handle != 0 {
			_ = windows.CloseHandle(handle)
		}
	}
}

// Windows has no job control, and a console in place of a terminal.

func hasTerminal() bool { return false }

// foreground is true: Ctrl-C goes to all programs of a console.
func foreground() bool { return true }

// Die does nothing: the caller ends with the exit code.
func Die(syscall.Signal) {}

func stopByTerminal(time.Duration) {}

func statusOf(code uint32) syscall.WaitStatus { return syscall.WaitStatus{ExitCode: code} }

var _ = os.Getpid
