package replay

import (
	"fmt"
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Outcomes of a Verdict.
const (
	OutOfMemory = "out of memory"
	Depends     = "depends" // on addresses: out of memory in some orders of them
	Avoided     = "avoided" // every request that ran out of memory in the record is served
	Fits        = "fits"    // in the memory that was asked for; in the record none ran out
)

// Verdict says whether memory runs out: what who lost a run to it asks first. Every front door shows its text before
// any figure.
type Verdict struct {
	Outcome string       `json:"outcome" enum:"out of memory,depends,avoided,fits" doc:"What became of the requests: depends, where only some orders of addresses have memory run out; avoided, where every request is served that the record refused; fits, in the memory asked for."`
	Text    string       `json:"text" doc:"The same in words."`
	Event   *int         `json:"event,omitempty" doc:"The event that found no memory; where it is avoided, the one of the record."`
	Spare   mem.Optional `json:"spare_bytes,omitzero" doc:"What the allocator could still have taken at its highest, in bytes; absent where it runs out, or no limit is known."`
}

// IsOutOfMemory says whether memory runs out, whatever addresses turn out to be.
func (v *Verdict) IsOutOfMemory() bool { return v != nil && v.Outcome == OutOfMemory }

// judge is the verdict on a trace's requests under a setup, of its outcomes in every order of addresses that was run.
// asRecorded: nothing was changed. nil: memory is not short, and nobody asked for a limit.
func (r *recorded) judge(setup *allocator.Setup, all []*allocator.Outcome, asRecorded bool) *Verdict {
	v, refused := &Verdict{}, r.refused()
	if asRecorded && len(refused) > 0 { // it is known how addresses turned out
		all = all[:1]
	}
	var lacked *allocator.OOM
	failed, highest := 0, mem.Bytes(0)
	for _, o := range all {
		highest = max(highest, o.Usage.PeakReserved)
		if at := firstLack(o); at != nil {
			if failed++; lacked == nil {
				lacked = at
			}
		}
	}
	if asRecorded && len(refused) > 0 && failed == 0 { // the model does not see it
		lacked, failed = &allocator.OOM{Event: refused[0], Size: r.trace.Size[refused[0]]}, 1
	}
	switch {
	case failed == len(all):
		v.Outcome, v.Event, v.Text = OutOfMemory, &lacked.Event, r.lackText(setup, lacked, refused, asRecorded)
	case failed > 0:
		v.Outcome, v.Event = Depends, &lacked.Event
		v.Text = fmt.Sprintf("Out of memory at event %s in %d of %d orders of addresses, which cannot be known.",
			report.Count(int64(lacked.Event)), failed, len(all))
	case len(refused) > 0:
		v.Outcome, v.Event = Avoided, &refused[0]
		v.spare(setup, highest)
		v.Text = avoidedText(refused) + v.spareText(setup) +
			" What the program does with that memory later is not in the record."
	case setup.Memory > 0:
		v.Outcome = Fits
		v.spare(setup, highest)
		v.Text = "It fits" + v.spareText(setup)
	default:
		return nil
	}
	v.Text += r.doubts(setup, refused)
	return v
}

// refused are the events whose requests found no memory in the record.
func (r *recorded) refused() (events []int) {
	for i, action := range r.trace.Action {
		if action == mem.ActionOOM {
			events = append(events, i)
		}
	}
	return events
}

// firstLack is the first request of a run that found no memory, as in the record or as a new one; nil: all did.
func firstLack(o *allocator.Outcome) *allocator.OOM {
	if o.Again != nil {
		return o.Again
	}
	return o.OOM
}

func (r *recorded) lackText(setup *allocator.Setup, at *allocator.OOM, refused []int, asRecorded bool) string {
	lead := "Out of memory at event"
	switch _, again := slices.BinarySearch(refused, at.Event); {
	case again && !asRecorded:
		lead = "Still out of memory at event"
	case !again && len(refused) > 0 && at.Event < refused[0]:
		lead = "Out of memory sooner, at event"
	}
	text := fmt.Sprintf("%s %s of %s: a request for %v finds none", lead, report.Count(int64(at.Event)),
		report.Count(int64(r.trace.Len())), at.Size)
	if limit := setup.Limit(); limit > 0 {
		text += fmt.Sprintf(" in %v", limit)
	}
	if at.Fragmented {
		text += ", though in one piece what is free would be enough: fragmentation"
	}
	return text + "."
}

func avoidedText(refused []int) string {
	if len(refused) == 1 {
		return fmt.Sprintf("Out of memory at event %s is avoided", report.Count(int64(refused[0])))
	}
	return fmt.Sprintf("Out of memory is avoided at all %d events that it was recorded at", len(refused))
}

func (v *Verdict) spare(setup *allocator.Setup, highest mem.Bytes) {
	if limit := setup.Limit(); limit > 0 {
		v.Spare = mem.Some(int64(limit - highest))
	}
}

// spareText ends a sentence that memory does not run out.
func (v *Verdict) spareText(setup *allocator.Setup) string {
	bytes, known := v.Spare.Get()
	switch limit := setup.Limit(); {
	case !known:
		return "."
	case mem.Bytes(bytes) < limit/mem.LeastSpare:
		return fmt.Sprintf(", but with only %v to spare of %v: too little to go on.", mem.Bytes(bytes), limit)
	default:
		return fmt.Sprintf(", %v to spare.", mem.Bytes(bytes))
	}
}

// doubts are what a verdict cannot know.
func (r *recorded) doubts(setup *allocator.Setup, refused []int) (text string) {
	if setup.Memory == 0 && len(refused) > 0 {
		if room, limited := r.program.RoomAt(r.trace, refused[len(refused)-1]); limited {
			text = fmt.Sprintf(" The device had room, so this holds if a limit of %v was reached, which the file does not "+
				"say.", room)
		}
	}
	if !r.verified.Exact() {
		text += " The replay is not exact here, so this is an estimate."
	}
	return text
}

// worst is the verdict of several traces' that matters most, named after its trace.
func worst(files []*Result) *Verdict {
	order := []string{OutOfMemory, Depends, Avoided, Fits}
	var found *Verdict
	for _, f := range files {
		if v := f.Verdict; v != nil && (found == nil || slices.Index(order, v.Outcome) < slices.Index(order, found.Outcome)) {
			named := *v
			named.Text = f.Trace() + ": " + v.Text
			found = &named
		}
	}
	return found
}
