package run

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// attached says of a process that ran before its recording what is not known of it.
func attached(in *Input) (r report.Part) {
	if !in.Attached() {
		return r
	}
	main := in.Run.Process(1)
	if main == nil {
		return r
	}
	since := "The recording began when the process had run for some time."
	if age, ok := in.age(); ok {
		since = fmt.Sprintf("The recording began when the process had run for %s.", report.Duration(age))
	}
	since += " What it took, allocated and did before is not known"
	if mark := before(main); mark > 0 {
		since += fmt.Sprintf(", but for the kernel's mark: it had up to %v resident", mem.Bytes(mark))
	}
	if s := in.Find(main.ID, mem.SeriesRSS); s != nil {
		since += fmt.Sprintf("; when the recording began it had %v", mem.Bytes(s.Values[0]))
	}
	r.AddNote(since + ".")
	if main.Facts["brought_in"] == "sys.remote_exec" {
		r.AddNote("The agent was loaded into the process with sys.remote_exec, as it was allowed. It stays there until " +
			"the process ends.")
	}
	if !in.inside() {
		r.AddNote("Watched from outside" + in.whyOutside() + ": steps, phases and lines were not looked for.")
	}
	return r
}

// before is the kernel's mark of a process from before the recording, in bytes; 0: there was none.
func before(p *mem.Process) int64 {
	return p.PeakBefore.Or(0)
}

// attachment is the event that notes how a process was found.
func (in *Input) attachment() mem.Event {
	for _, e := range in.Run.Events {
		if e.Kind == "attach" {
			return e
		}
	}
	return mem.Event{}
}

// age is how long the process had run.
func (in *Input) age() (ns int64, known bool) {
	e := in.attachment()
	return e.Number("age_ns").Get()
}

// inside says whether any process told something itself.
func (in *Input) inside() bool {
	return slices.ContainsFunc(in.Run.Processes, func(p *mem.Process) bool { return p.Python != "" }) ||
		len(in.Run.Heap) > 0
}

func (in *Input) whyOutside() string {
	if why := in.attachment().Facts["why_not_inside"]; why != "" {
		return " (" + why + ")"
	}
	return ""
}

// beforeClause is what the headline says of a time that took more than the recording shows; "" where none did.
func (in *Input) beforeClause() string {
	most := int64(0)
	for _, p := range in.Run.Processes {
		most = max(most, before(p))
	}
	if most <= in.Peak.HostRSS.Or(0) {
		return ""
	}
	return fmt.Sprintf("before the recording it had up to %v resident", mem.Bytes(most))
}
