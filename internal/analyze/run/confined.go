package run

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// confined says whether a program ran in the host memory that it was allowed, and who held it to that.
func confined(in *Input) (r report.Part) {
	at := slices.IndexFunc(in.Run.Events, func(e mem.Event) bool { return e.Kind == mem.EventConfined })
	if at < 0 {
		return r
	}
	e := &in.Run.Events[at]
	l := &report.MemoryLimit{Limit: e.Bytes.Or(0), Verdict: in.confinedVerdict(), By: e.Facts["by"], Why: e.Facts["why"],
		Reached: e.Number("reached"), Highest: e.Number("highest")}
	r.MemoryLimit = l
	r.AddNote(confinedNote(l))
	return r
}

func (in *Input) confinedVerdict() string {
	done := in.Ending().Kind == mem.EndDone
	switch killed := len(in.kills()) > 0; {
	case killed && done:
		return "in part"
	case killed:
		return "killed"
	case done:
		return "ran"
	}
	switch in.Ending().Kind {
	case mem.EndStopped:
		return "stopped"
	case mem.EndOOM, mem.EndFailed:
		return "failed"
	}
	return "unknown"
}

// confinedClause is the answer in a few words.
func confinedClause(l *report.MemoryLimit) string {
	if l == nil {
		return ""
	}
	limit := mem.Bytes(l.Limit)
	if l.By == mem.ByWatching && (l.Verdict == "ran" || l.Verdict == "stopped") {
		end := map[string]string{"ran": "to its end", "stopped": "until it was stopped"}[l.Verdict]
		return fmt.Sprintf("ran %s, where at most %v were seen of the %v that it was allowed", end, mem.Bytes(l.Highest.Or(0)), limit)
	}
	switch l.Verdict {
	case "ran":
		return fmt.Sprintf("ran to its end in the %v that it was allowed", limit)
	case "in part":
		return fmt.Sprintf("ran to its end in the %v that it was allowed, but processes of it were killed for that", limit)
	case "stopped":
		return fmt.Sprintf("stayed within the %v that it was allowed until it was stopped", limit)
	case "killed":
		return fmt.Sprintf("did not run in the %v that it was allowed", limit)
	case "failed":
		return fmt.Sprintf("failed in the %v that it was allowed, without a kill for memory", limit)
	}
	return ""
}

func confinedNote(l *report.MemoryLimit) string {
	limit := mem.Bytes(l.Limit)
	if l.By == mem.ByWatching {
		return fmt.Sprintf("--memory %v was watched, not enforced, as %s. At most %v were seen of what the kernel cannot take "+
			"back; between two looks it may have been more.", limit, l.Why, mem.Bytes(l.Highest.Or(0)))
	}
	text := fmt.Sprintf("The kernel held the program and all it started to %v (--memory), with what hightide's agent takes in "+
		"it, and without swap. Pages of files that were read before it began are charged to who read them.", limit)
	switch reached, known := l.Reached.Get(); {
	case !known || l.Verdict == "killed" || l.Verdict == "in part": // how often of them it was for that is not known
		return text
	case reached == 0:
		return text + " The limit was never reached."
	default:
		return text + fmt.Sprintf(" The limit was reached %s: the kernel took back pages of files each time, and reads them again "+
			"where they are needed.", report.Times(reached))
	}
}
