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

// Target is a process that runs already and is not ours, as far as it may be looked at.
type Target struct {
	PID        int
	StartTicks uint64   // since boot: pids are given again, with it they are not
	Command    []string // as the kernel has it
	Cwd        string   // "": it may not be read
	Exe        string   // the file of its program; "": it may not be read
	Env        []string // as it was started; nil: it may not be read
	Foreign    string   // why nothing of ours can be brought into it; "": it can
	pidfd      int      // -1: the kernel is older than 5.3, or does not let us
}

// NoTarget says why a process cannot be recorded.
type NoTarget struct {
	Denied bool // it is there, and may not be looked at
	Text   string
	Hint   string
}

func (e *NoTarget) Error() string { return e.Text }

// Look finds the process of a pid. Errors are a *NoTarget. Close gives it back.
func Look(pid int) (*Target, error) {
	if pid == os.Getpid() {
		return nil, &NoTarget{Text: fmt.Sprintf("process %d is hightide itself", pid),
			Hint: "name the process that is to be recorded"}
	}
	t := &Target{PID: pid, pidfd: -1}
	if fd, err := openProcess(pid); err == nil {
		t.pidfd = fd // before all else: from here on the pid is of this process, or of none
	}
	err := t.identify()
	if err != nil {
		t.Close()
		return nil, err
	}
	t.Cwd, _ = os.Readlink(t.proc("cwd"))
	t.Exe, _ = os.Readlink(t.proc("exe"))
	t.Env = list(t.proc("environ"))
	t.Foreign = t.foreign()
	return t, nil
}

// Close gives back what Look opened.
func (t *Target) Close() {
	if t.pidfd >= 0 {
		_ = closeProcess(t.pidfd)
		t.pidfd = -1
	}
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
