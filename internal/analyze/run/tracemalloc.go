package run

import (
	"fmt"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const tracedSites = "Python memory by tracemalloc, measured; native memory is not seen, as that of PyTorch's tensors. " +
	"NumPy's arrays are. The highest is that of the looks. What was allocated before the agent began is not seen."

// blocksName is what the lines of a heap are counted in.
func (in *Input) blocksName() string {
	if in.HeapTraced() {
		return "blocks"
	}
	return "samples"
}

// tracedNote says what tracemalloc saw of the leading process, and what it cost.
func (in *Input) tracedNote(r *report.Part, h *mem.Heap) {
	p := in.Run.Process(in.Leader)
	text := fmt.Sprintf("Lines are of Python's memory by tracemalloc (measured): %v at the highest of %s, in %s.",
		h.Peak.Live,
		report.Counted(int64(max(len(h.History)-1, 1)), "look"), in.ProcessName(in.Leader))
	if peak := mem.Bytes(p.Numbers[mem.NumberTracedPeak]); peak > h.Peak.Live+h.Peak.Live/20 {
		text += fmt.Sprintf(" Between looks it was %v; which lines held that is not known.", peak)
	}
	r.AddNote(text + " Native memory is not seen, nor what was allocated before the agent began.")
	cost := fmt.Sprintf("tracemalloc slows each allocation of Python, by how much was not measured. It held up to %v "+
		"for itself, which is in the figures of the process.", mem.Bytes(p.Numbers[mem.NumberTracedOwn]))
	if ns, ok := p.Numbers[mem.NumberTracedLooks]; ok {
		cost += fmt.Sprintf(" Looks took %s of a processor, the longest %s. Each copies for that time "+
			"what is known of every block.",
			report.Duration(ns), report.Duration(p.Numbers[mem.NumberTracedLongest]))
	}
	r.AddNote(cost)
	switch p.Facts[mem.FactTracemalloc] {
	case mem.TracedTooMany:
		r.AddNote("tracemalloc knew of more than 2,000,000 blocks at times. No look was made then, as it would take " +
			"hundreds of megabytes.")
	case mem.TracedStopped:
		r.AddNote("The program stopped tracemalloc: what its lines held after that is not known.")
	}
}
