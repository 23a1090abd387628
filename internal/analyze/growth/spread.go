package growth

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// largerSteps takes out of what grows as a whole those processes whose steps take ever more and give it back, where no
// line and no container explains the growth: what malloc keeps for the next step grows with them. A leak's readings
// fall at its end as far as they did at first. That nothing is kept is not known, so a note says what is.
func (in *Found) largerSteps(all []total, known []growing) []total {
	return slices.DeleteFunc(all, func(t total) bool {
		if t.minutes || in.holderOfTotal(t) != nil ||
			slices.ContainsFunc(known, func(g growing) bool { return g.process == t.process }) {
			return false
		}
		because, holes := "", 0.0
		first, last, ok := in.spreads(&t)
		if t.source == "rss" {
			holes = in.moreHoles(t.process)
		}
		switch {
		case ok && last-first >= leastOfSteps*t.kept:
			because = fmt.Sprintf("what its steps take and give back rose too, from %v to %v, as where sequences get longer",
				bytesPer(first), bytesPer(last))
		case holes >= leastOfHoles*t.kept:
			because = fmt.Sprintf("%v of it (%s) lie free inside malloc's arenas, between blocks in use", bytesPer(holes),
				mem.Estimated)
		default:
			return false
		}
		in.largerStep = fmt.Sprintf("Whether %s keeps what its %s rose by, %v (%s), is not known: %s. No line and no "+
			"container was seen to keep more.", in.ProcessName(t.process), memoryName(t.source), bytesPer(t.kept),
			in.labelOf(t.source), because)
		if in.unjudged == nil {
			in.unjudged = map[string][]uint32{}
		}
		in.unjudged[t.source] = append(in.unjudged[t.source], t.process)
		return true
	})
}

// largerStepNote says what is not known of larger steps, in place of the good news where nothing else is found.
func (in *Found) largerStepNote() {
	switch {
	case in.largerStep == "":
	case len(in.Said.Findings) == 0 && in.NotLooked == "":
		in.NotLooked = in.largerStep
	default:
		in.Said.AddNote(in.largerStep)
	}
}

// leastOfSteps is the part of a growth by which readings must fall further at its end, to be of steps that take more.
const leastOfSteps = 0.1

// spreads is what steps take and give back in the first third and in the last: how far readings of what grows fall
// within a short time. Where malloc keeps what was freed, only the sampled heap falls.
func (in *Found) spreads(t *total) (first, last float64, ok bool) {
	read := []*mem.Series{in.Find(t.process, mem.SeriesRSS), in.Find(t.process, mem.SeriesHeapLive)}
	if t.source == "device" {
		read = nil
		for _, m := range in.memories(t.process) {
			if m.source == t.source && m.device == t.device {
				read = append(read, m.series)
			}
		}
	}
	for _, s := range read {
		if a, b, known := in.spreadOf(t.process, s); known && (!ok || b-a > last-first) {
			first, last, ok = a, b, true
		}
	}
	return first, last, ok
}

// spreadOf is that of one series: the medians over stretches of equally many readings. What only rises does not fall.
func (in *Found) spreadOf(process uint32, s *mem.Series) (first, last float64, ok bool) {
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	if s == nil {
		return 0, 0, false
	}
	i, _ := slices.BinarySearch(s.Times, from)
	end, _ := slices.BinarySearch(s.Times, to+1)
	count := end - i
	if count < stretches*leastInStretch {
		return 0, 0, false
	}
	var falls []float64
	for b := range stretches {
		falls = append(falls, fall(s.Values[i+b*count/stretches:i+(b+1)*count/stretches]))
	}
	third := stretches / 3
	return usage.Median(falls[:third]), usage.Median(falls[stretches-third:]), true
}

// fall is by how much readings fall at most.
func fall(values []int64) float64 {
	highest, most := values[0], int64(0)
	for _, v := range values {
		highest = max(highest, v)
		most = max(most, highest-v)
	}
	return float64(most)
}

const (
	stretches      = 6
	leastInStretch = 3 // readings
)
