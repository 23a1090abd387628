package run

import (
	"fmt"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// rescued says that steps ran out of memory and were done again in micro-batches, that the command was started again for
// that, and whether --rescue had a step to watch at all.
func rescued(in *Input) (r report.Part) {
	times, parts, first := int64(0), int64(0), mem.Optional{}
	for _, e := range in.Run.Events {
		if e.Kind == mem.EventRescue {
			times++
			parts = max(parts, e.Number("count").Or(0))
			if !first.Known() {
				first = e.Step
			}
		}
	}
	if times > 0 {
		from := ""
		if step, ok := first.Get(); ok {
			from = fmt.Sprintf(" of step %d", step+1)
		}
		r.AddNote(fmt.Sprintf("Memory ran out with the batch%s, which was then done in micro-batches, as were those after it: a batch "+
			"in up to %s. Peaks and times are those of the parts.", from, report.Counted(parts, "part")))
	}
	for _, e := range in.Run.Events {
		if e.Kind == mem.EventRetry {
			r.AddNote(fmt.Sprintf("This is start %d of at most %d: memory ran out in run %s, and the command was started again with %s.",
				e.Number("start").Or(0), e.Number("most").Or(0), e.Facts["before"], e.Text))
		}
	}
	asked, watched := false, ""
	for _, p := range in.Run.Processes {
		if from := p.Facts[mem.FactResumed]; from != "" {
			r.AddNote(fmt.Sprintf("The Trainer of transformers went on from %s.", from))
		}
		if name, is := p.Facts[mem.FactRescue]; is {
			asked = true
			if name != noTrainer {
				watched = name
			}
		}
	}
	if asked && watched == "" {
		r.AddNote("--rescue watched no step: the program uses no trainer that it knows, which is the Trainer of transformers. " +
			"hightide.rescue(step) watches a step function of the program's own.")
	}
	return r
}

// noTrainer is what the agent says until a trainer that it knows is there.
const noTrainer = "none"
