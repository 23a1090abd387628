package observe

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"hightide/internal/mem"
	"hightide/internal/system"
	"hightide/internal/usage"
	"hightide/internal/words"
)

// fatal are the signals of which Python's fault handler tells, by its words for them.
var fatal = map[string]syscall.Signal{
	"Segmentation fault": syscall.SIGSEGV, "Bus error": syscall.SIGBUS, "Aborted": syscall.SIGABRT,
	"Illegal instruction": syscall.SIGILL, "Floating point exception": syscall.SIGFPE,
	"Floating-point exception": syscall.SIGFPE,
}

const maxCrash = 256 << 10 // of a hundred threads with a hundred frames each

// crash is what Python's fault handler wrote.
type crash struct {
	signal syscall.Signal
	text   string
	where  *mem.Location
}

// crashOf is what Python's fault handler wrote beside an agent's channel (crash.py there); nil: nothing.
func crashOf(channel string) *crash {
	text, err := readCrash(strings.TrimSuffix(channel, ".ring") + ".crash")
	if found, ok := parseCrash(text); ok && err == nil {
		return &found
	}
	return nil
}

func readCrash(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|system.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCrash))
}

var (
	crashFrame  = words.Lazy(`^  File "(.*)", line (\d+) in (.*)$`)
	crashThread = words.Lazy(`^(Current thread|Thread|Stack) .*\(most recent call first\):$`)
)

// parseCrash reads "Fatal Python error: Segmentation fault", and the stack of the thread that crashed. Where that one
// ran no Python, it is the main thread's, which comes last.
func parseCrash(text []byte) (crash, bool) {
	var found crash
	var frames []mem.Location
	current := false
	for line := range bytes.Lines(text) {
		line := strings.TrimRight(string(line), "\n")
		if said, ok := strings.CutPrefix(line, "Fatal Python error: "); ok && found.signal == 0 {
			found.signal, found.text = fatal[said], strings.ToLower(said)
			continue
		}
		if m := crashThread.FindStringSubmatch(line); m != nil {
			if current {
				break
			}
			frames, current = nil, m[1] != "Thread"
		} else if m := crashFrame.FindStringSubmatch(line); m != nil {
			number, _ := strconv.Atoi(m[2])
			frames = append(frames, mem.Location{File: m[1], Line: number, Function: m[3]})
		}
	}
	if found.signal == 0 {
		return crash{}, false
	}
	found.where = usersOf(frames)
	if !current && found.where != nil {
		found.text += " in a thread that ran no Python; the main thread was at this line"
	}
	return found, true
}

// usersOf is the innermost frame that is the user's own, else the innermost; nil: there is none.
func usersOf(frames []mem.Location) *mem.Location {
	for i := range frames {
		if usage.KindOf(frames[i].File) == usage.UserFile {
			return &frames[i]
		}
	}
	if len(frames) == 0 {
		return nil
	}
	return &frames[0]
}
