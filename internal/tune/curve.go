package tune

import (
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// StepCurve is what the allocator gave over one step, in the order of its allocations and frees: no kernel runs in an
// imagined run, so its times say nothing.
type StepCurve struct {
	Step   int         `json:"step" doc:"The number of the step, from 1."`
	Events int         `json:"events" doc:"How many allocations and frees the step has."`
	Points []StepPoint `json:"points" doc:"The highest of each of up to 160 even parts of the step, in order."`
	Phases []StepPhase `json:"phases" doc:"Its phases, told from the stacks that allocate."`
}

// StepPoint is the highest of a part of a step.
type StepPoint struct {
	Event     int       `json:"event" doc:"The number of the allocation or free after which it is, from 0 in the step."`
	Allocated mem.Bytes `json:"allocated_bytes" doc:"Bytes allocated."`
}

// StepPhase is a phase of a step.
type StepPhase struct {
	Phase mem.Phase `json:"phase" doc:"forward, backward or optimizer."`
	From  int       `json:"from_event" doc:"The number of its first event in the step."`
	To    int       `json:"to_event" doc:"The number of its last event in the step."`
}

const curveParts = 160

// Add takes in a moment after those before it; of a part of the step the highest stays.
func (c *StepCurve) Add(event int, allocated mem.Bytes) {
	part := func(event int) int { return event * curveParts / max(c.Events, 1) }
	if last := len(c.Points) - 1; last >= 0 && part(c.Points[last].Event) == part(event) {
		if allocated > c.Points[last].Allocated {
			c.Points[last] = StepPoint{event, allocated}
		}
		return
	}
	c.Points = append(c.Points, StepPoint{event, allocated})
}

// CurveOf is the step in which a run was fullest, of its allocator's history and of the moments, on the wall clock, at
// which its steps ended; nil where the history is not that of one device, or has no step that ended.
func CurveOf(snapshot *mem.AllocatorSnapshot, ends []int64) *StepCurve {
	if snapshot == nil || len(snapshot.Devices()) != 1 {
		return nil
	}
	device := snapshot.Devices()[0]
	whole := usage.FromTrace(snapshot, device, usage.Whole)
	seen := whole.Steps(ends)
	if seen == nil || seen.Source != "recorded" {
		return nil
	}
	step := fullest(snapshot, whole, seen.Steps)
	if step < 0 {
		return nil
	}
	at := seen.Steps[step]
	c := &StepCurve{Step: step + 1, Events: at.To - at.From + 1, Phases: []StepPhase{}}
	for _, p := range usage.FromTrace(snapshot, device, at).Curve {
		c.Add(max(p.Moment, at.From)-at.From, p.Allocated)
	}
	for _, p := range seen.Phases {
		if at.From <= p.From && p.From <= at.To { // what frees after the optimizer is of no phase
			c.Phases = append(c.Phases, StepPhase{Phase: p.Phase, From: p.From - at.From, To: min(p.To, at.To) - at.From})
		}
	}
	return c
}

// fullest is the step of the highest moment; of several, rather one after the first, which is like those to come. -1:
// the highest moment is in no step.
func fullest(s *mem.AllocatorSnapshot, d *usage.Device, steps []usage.Stretch) int {
	in := func(at usage.Moment) int {
		return slices.IndexFunc(steps, func(step usage.Stretch) bool { return step.From <= at && at <= step.To })
	}
	found := in(d.Peak.Moment)
	if found != 0 || len(steps) < 2 {
		return found
	}
	later := usage.FromTrace(s, d.Number, usage.Stretch{From: steps[1].From, To: steps[len(steps)-1].To})
	if later.Peak.Bytes == d.Peak.Bytes {
		found = max(found, in(later.Peak.Moment))
	}
	return found
}
