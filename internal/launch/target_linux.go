package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"hightide/internal/system"
)

// look reads what this user may know of it.
func (t *Target) look() {
	t.Cwd, _ = os.Readlink(t.proc("cwd"))
	t.Exe, _ = os.Readlink(t.proc("exe"))
	t.Env = list(t.proc("environ"))
	t.Foreign = t.foreign()
}

// gone says whether it has ended.
func (t *Target) gone() bool {
	fields := StatFields(t.PID)
	return len(fields) <= fieldStart || ended(fields) || fields[fieldStart] != strconv.FormatUint(t.StartTicks, 10)
}

// exitStatus is how the process ended, where the kernel says so to one who is not its parent.
func (t *Target) exitStatus() (syscall.WaitStatus, bool) {
	fields := StatFields(t.PID)
	if len(fields) > fieldExitCode && ended(fields) && fields[fieldStart] == strconv.FormatUint(t.StartTicks, 10) &&
		t.Env != nil {
		// 0 also where it may not be read: then Env is nil
		if code, err := strconv.ParseUint(fields[fieldExitCode], 10, 32); err == nil {
			return statusOf(uint32(code)), true
		}
	}
	return exitOf(t.pidfd)
}

// processState is the state letter of a process, 0 where it is gone.
func processState(pid int) byte {
	fields := StatFields(pid)
	if len(fields) == 0 || fields[fieldState] == "" {
		return 0
	}
	return fields[fieldState][0]
}

func (t *Target) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", t.PID, file) }

// Of /proc/PID/stat, fields are counted from 0 behind the program's name.
const (
	fieldState    = 0
	fieldParent   = 1
	fieldFlags    = 6
	fieldThreads  = 17
	fieldStart    = 19
	fieldExitCode = 49
	kernelThread  = 0x00200000
)

// identify refuses what is not a process, or one without memory of its own.
func (t *Target) identify() error {
	fields := StatFields(t.PID)
	if len(fields) <= fieldStart {
		return missing(t.PID)
	}
	flags, _ := strconv.ParseUint(fields[fieldFlags], 10, 64)
	t.StartTicks, _ = strconv.ParseUint(fields[fieldStart], 10, 64)
	t.Command = list(t.proc("cmdline"))
	group := status(t.PID, "Tgid")
	switch {
	case group != "" && group != strconv.Itoa(t.PID):
		return &NoTarget{Text: fmt.Sprintf("%d is a thread of process %s", t.PID, group), Hint: "hightide attach " + group}
	case flags&kernelThread != 0:
		return &NoTarget{Text: fmt.Sprintf("process %d is a thread of the kernel: it has no memory of its own", t.PID)}
	case ended(fields):
		return &NoTarget{Text: fmt.Sprintf("process %d has ended, and its parent has not asked how (a zombie)", t.PID),
			Hint: "its memory is given back already; record the next one from its start: hightide run -- COMMAND"}
	}
	return nil
}

// ended says whether all of a process but its entry in the list is gone. A zombie that still has threads is a program
// whose first thread ended before the others.
func ended(fields []string) bool {
	return fields[fieldState] == "X" || fields[fieldState] == "Z" &&
		(len(fields) <= fieldThreads || fields[fieldThreads] <= "1")
}

// missing says why there is no such process here.
func missing(pid int) error {
	if err := system.Kill(pid, 0); err == nil || errors.Is(err, syscall.EPERM) {
		return &NoTarget{Denied: true, Text: fmt.Sprintf("process %d is hidden: /proc shows only your own processes", pid),
			Hint: "as its user, or as root, it can be recorded"}
	}
	e := &NoTarget{Text: fmt.Sprintf("there is no process %d", pid),
		Hint: "ps, or pgrep -f train.py, tells the number of a process"}
	if outer := outerPID(pid); outer > 0 {
		e.Hint = fmt.Sprintf("in a container, process %d is %d here: hightide attach %d", pid, outer, outer)
	}
	return e
}

// outerPID is our number of a process that a container calls pid; 0: there is none, or several.
func outerPID(pid int) int {
	found := 0
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		outer, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		numbers := strings.Fields(status(outer, "NSpid"))
		if len(numbers) < 2 || numbers[len(numbers)-1] != strconv.Itoa(pid) {
			continue
		}
		if found != 0 {
			return 0
		}
		found = outer
	}
	return found
}

// foreign says why nothing can be brought into the process: what we would write for it, it could not read.
func (t *Target) foreign() string {
	info, err := os.Stat(t.proc("."))
	if err != nil {
		return "it may not be looked at"
	}
	if user, ok := system.Owner(info); ok && user != os.Getuid() {
		return "it is another user's"
	}
	for _, kind := range []string{"pid", "mnt"} {
		theirs, err := os.Readlink(t.proc("ns/" + kind))
		if errors.Is(err, fs.ErrPermission) {
			return "it may not be looked at"
		}
		if ours, _ := os.Readlink("/proc/self/ns/" + kind); err == nil && theirs != ours {
			return "it runs in a container of its own"
		}
	}
	return ""
}

// StatFields are the fields of /proc/PID/stat behind the program's name, which may hold anything. The first is the
// state, field 3. Nil: the process is gone.
func StatFields(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(data, ')')
	if err != nil || end < 0 {
		return nil
	}
	return strings.Fields(string(data[end+1:]))
}

// status is what /proc/PID/status has behind a name.
func status(pid int, name string) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// list reads a file of words that end in zeros; nil: it is empty, or may not be read.
func list(path string) []string {
	data, err := os.ReadFile(path)
	text := strings.TrimRight(string(data), "\x00")
	if err != nil || text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
