package analyze

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// signal is one that ends programs: its name on Linux, and what it most often means.
type signal struct{ name, means string }

var signals = map[int64]signal{
	1:  {"SIGHUP", "its terminal went away"},
	2:  {"SIGINT", "somebody interrupted it, as Ctrl-C does"},
	3:  {"SIGQUIT", "somebody interrupted it, as Ctrl-\\ does"},
	4:  {"SIGILL", "an instruction that this machine's processor lacks"},
	6:  {"SIGABRT", "it ended itself, as C++ does over an exception that nobody catches or a failed assertion; its last words say which"},
	7:  {"SIGBUS", "a file or a shared memory that it had mapped has no room left, often /dev/shm"},
	8:  {"SIGFPE", "a division by zero in compiled code"},
	9:  {"SIGKILL", "most often the kernel, for want of the host's memory, or a batch system over its limit"},
	11: {"SIGSEGV", "compiled code went to memory that is not its own: a fault in an extension, or a stack that overflowed"},
	13: {"SIGPIPE", "whoever read its output went away"},
	15: {"SIGTERM", "somebody asked it to end, as timeout and batch systems do"},
	24: {"SIGXCPU", "its limit of processor time is used up"},
	25: {"SIGXFSZ", "a file grew over its limit"},
}

// SignalText is a signal's name with what it most often means: "SIGKILL: most often the kernel, …".
func SignalText(number int64) string {
	s, ok := signals[number]
	if !ok {
		return fmt.Sprintf("signal %d", number)
	}
	return s.name + ": " + s.means
}

// signalName is "SIGKILL", "signal 35" for one without a name of its own.
func signalName(number int64) string {
	name, _, _ := strings.Cut(SignalText(number), ":")
	return name
}

// failure says how a program ended that gave no verdict: by a signal, an exception, an exit code.
func (in *Input) failure() string {
	end := in.Run.End
	if end == nil {
		return "the recording ends before the program did"
	}
	if number, ok := end.Signal.Get(); ok {
		return "a signal ended the program, " + SignalText(number)
	}
	code := end.ExitCode.Or(0)
	text := fmt.Sprintf("exit code %d", code)
	if e, ok := in.lastException(); ok {
		text = strings.TrimSuffix(e.Facts["class"]+": "+firstLine(e.Text, 160), ": ")
		if e.Facts["class"] == "KeyboardInterrupt" {
			return "the program was interrupted"
		}
		if e.Where != nil && e.Where.File != "" {
			text += " at " + lineName(*e.Where)
		}
		if rank, ok := in.rankOf(e.Process); ok {
			text += fmt.Sprintf(" in rank %d", rank)
		}
	} else if s, ok := signals[code-128]; ok {
		text += ", as shells say of a child that a signal ended, " + s.name + ": " + s.means
	}
	return "the program failed for a reason of its own, " + text
}

// ofChild are exceptions that say no more than that a child failed, as launchers raise them.
var ofChild = []string{"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "CalledProcessError"}

// lastException is the one that ended a process, the main one's where it has one. Where that only tells of a
// child, it is the first of those: the others may have failed for its sake.
func (in *Input) lastException() (last mem.Event, ok bool) {
	var first mem.Event
	for _, e := range in.Run.Events {
		if e.Kind != "exception" || e.Facts["class"] == "" {
			continue
		}
		if first.Kind == "" && !in.isMain(e.Process) {
			first = e
		}
		if !ok || in.isMain(e.Process) || !in.isMain(last.Process) {
			last, ok = e, true
		}
	}
	if first.Kind != "" && in.isMain(last.Process) && slices.Contains(ofChild, last.Facts["class"]) {
		last = first
	}
	return last, ok
}

// rankOf is a process's rank where it is one of several.
func (in *Input) rankOf(process uint32) (int64, bool) {
	p := in.Run.Process(process)
	if p == nil || p.WorldSize.Or(1) < 2 {
		return 0, false
	}
	return p.Rank.Get()
}

// tooManyRanks says so where more ranks were started than there are GPUs, "" where there were not.
func (in *Input) tooManyRanks(v *Imagined) string {
	var ranks int64
	if v.Verdict != VerdictFailed && v.Verdict != VerdictOOM || slices.ContainsFunc(v.Ranks, func(r RankUse) bool { return r.Played }) {
		return ""
	}
	for _, p := range in.Run.Processes {
		if local, ok := p.LocalRank.Get(); ok && p.WorldSize.Or(1) > 1 {
			ranks = max(ranks, local+1)
		}
	}
	if ranks <= int64(v.GPUs) {
		return ""
	}
	return fmt.Sprintf("%d ranks had %d GPU%s: --gpus %d gives each its own.", ranks, v.GPUs, strings.Repeat("s", min(1, v.GPUs-1)), ranks)
}

func (in *Input) isMain(process uint32) bool {
	p := in.Run.Process(process)
	return p != nil && p.Role == "main"
}

// usedTorch says whether any process imported PyTorch.
func (in *Input) usedTorch() bool {
	for _, p := range in.Run.Processes {
		if p.Frameworks["torch"] != "" {
			return true
		}
	}
	return false
}
