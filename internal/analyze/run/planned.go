package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// planned says of a run with a plan of levers whether it was applied, and how the peak compares with the plan's.
func planned(in *Input) (r report.Part) {
	at := slices.IndexFunc(in.Run.Events, func(e mem.Event) bool { return e.Kind == mem.EventPlan })
	if at < 0 {
		return r
	}
	e := &in.Run.Events[at]
	var did []string
	applied, refused, left, moved := 0, "", "", ""
	for _, p := range in.Run.Processes {
		if refused == "" {
			refused = p.Facts[mem.FactPlanRefused]
		}
		if text := p.Facts[mem.FactPlanLeft]; text != "" && left == "" {
			left = " " + text + "."
		}
		if p.Facts[mem.FactPlan] == "" {
			continue
		}
		if applied++; applied == 1 {
			moved = asMoved(e, p)
			for key, text := range p.Facts {
				if name, is := strings.CutPrefix(key, mem.FactLever); is {
					did = append(did, name+" ("+text+")")
				}
			}
		}
	}
	slices.Sort(did)
	switch name := cmp.Or(e.Facts["file"], "The plan"); {
	case refused != "":
		r.AddNote(fmt.Sprintf("%s could not be applied, and the program was ended: %s.", name, refused))
	case applied == 0 && e.Facts["agent"] != "":
		r.AddNote(fmt.Sprintf("%s was not applied: %s.", name, frameworks.Unseen(e.Facts["framework"])))
	case len(did) == 0:
		r.AddNote(fmt.Sprintf("%s: %s.%s%s", name, e.Text, left, in.asPlanned(e)+moved))
	default:
		r.AddNote(fmt.Sprintf("%s was applied: %s.%s", name, strings.Join(did, ", "), left+in.asPlanned(e)+moved))
	}
	return r
}

// asPlanned compares the peak of what the allocator gave with the plan's.
func (in *Input) asPlanned(e *mem.Event) string {
	plan, known := e.Number("allocated").Get()
	peak, measured := in.Peak.Allocated.Get()
	switch {
	case !known:
		return " The plan says no peak."
	case !measured:
		return " What the allocator of a device gave at most is not known, so the plan's peak was not compared."
	case peak == plan:
		return fmt.Sprintf(" The allocator gave at most %v, as planned to the byte.", mem.Bytes(peak))
	}
	return fmt.Sprintf(" The allocator gave at most %v, %s.", mem.Bytes(peak), thanPlanned(peak, plan))
}

// asMoved compares what a process moved to the host in a step with the plan; "": the plan moves nothing.
func asMoved(e *mem.Event, p *mem.Process) string {
	plan, known := e.Number("moved").Get()
	activations, states := p.Number(mem.NumberOffloaded), p.Number(mem.NumberHosted)
	moved := activations.Or(0) + states.Or(0)
	switch {
	case !known || !activations.Known() && !states.Known():
		return ""
	case moved == plan:
		return fmt.Sprintf(" In the last step %v went to the host and back, as planned to the byte.", mem.Bytes(moved))
	}
	return fmt.Sprintf(" In the last step %v went to the host and back, %s.", mem.Bytes(moved), thanPlanned(moved, plan))
}

func thanPlanned(is, plan int64) string {
	more, than := is-plan, "more"
	if more < 0 {
		more, than = -more, "less"
	}
	return fmt.Sprintf("%v (%.1f %%) %s than planned", mem.Bytes(more), 100*float64(more)/float64(plan), than)
}
