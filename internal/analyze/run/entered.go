package run

import (
	"fmt"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Who waits for whom follows from when each rank comes to where they meet. The processes of a run share one clock.

const (
	mostlyLast = 0.75 // of the steps, that a straggler enters last
	partOfStep = 0.05 // of a step, that it is behind all others
)

// gates are where ranks wait for each other, in the order of a step.
var gates = []mem.Quantity{mem.SeriesEnteredForward, mem.SeriesEnteredCollective, mem.SeriesEnteredBackward}

// moments are when each of several ranks came to something, by step.
type moments map[uint64][]int64

// entered says of each rank how late it comes to where ranks meet, and how long it waits there, where that was seen
// of all.
func (in *Input) entered(all []*rank) {
	behind, waiting := make([][]int64, len(all)), make([][]int64, len(all))
	margins, last := make([][]int64, len(all)), make([]int, len(all))
	for _, at := range in.meetings(all) {
		first, latest, second := slices.Min(at), slices.Max(at), secondLargest(at)
		for i, moment := range at {
			behind[i], waiting[i] = append(behind[i], moment-first), append(waiting[i], latest-moment)
			ahead := latest // of all the others
			if moment == latest {
				ahead = second
				last[i]++
			}
			margins[i] = append(margins[i], moment-ahead)
		}
	}
	for i, k := range all {
		if len(behind[i]) < leastObserved {
			return
		}
		k.behind, k.waiting = mem.Some(median(behind[i])), mem.Some(median(waiting[i]))
		k.last, k.margin = float64(last[i])/float64(len(behind[i])), median(margins[i])
	}
}

// meetings are, of each step in which all ranks were seen to meet, when each came: at the gate at which they were
// furthest apart, as those before have them leave together.
func (in *Input) meetings(all []*rank) (meetings [][]int64) {
	apart := map[uint64][]int64{}
	for _, gate := range gates {
		steps := moments{}
		for i, k := range all {
			s := in.Find(k.ID, gate)
			if s == nil {
				break
			}
			for n, at := range s.Times {
				if step := uint64(s.Values[n]); len(steps[step]) == i {
					steps[step] = append(steps[step], at)
				}
			}
		}
		for step, at := range steps {
			if step == 0 || len(at) < len(all) { // in the first everything is done for the first time
				continue
			}
			if known := apart[step]; known == nil || spread(at) > spread(known) {
				apart[step] = at
			}
		}
	}
	for _, at := range apart {
		meetings = append(meetings, at)
	}
	return meetings
}

func spread(at []int64) int64 { return slices.Max(at) - slices.Min(at) }

// secondLargest is the largest but one.
func secondLargest(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)-2]
}

func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// lateRank tells of a rank that the others wait for; false where it was not seen when ranks come to where they meet.
func (in *Input) lateRank(r *report.Part, all []*rank) bool {
	late := all[0]
	for _, k := range all {
		if !k.behind.Known() {
			return false
		}
		if k.margin > late.margin {
			late = k
		}
	}
	if late.last < mostlyLast || late.margin < int64(leastBehind) ||
		float64(late.margin) < partOfStep*float64(late.step.Or(0)) {
		return true
	}
	title := fmt.Sprintf("Rank %d is the straggler", late.number)
	others, waits := "The other ranks wait", int64(0)
	if len(all) == 2 {
		others = fmt.Sprintf("Rank %d waits", all[0].number+all[1].number-late.number)
	}
	var waiting []int64
	for _, k := range all {
		if k != late {
			waiting = append(waiting, k.waiting.Or(0))
		}
	}
	waits = median(waiting)
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindRanks, Aspect: report.AspectWork, Severity: report.Info, Process: late.ID, Label: mem.Measured,
		Title: title,
		Text: fmt.Sprintf("%s: in %.0f %% of the steps it is the last to come to where ranks wait for each other, %s "+
			"behind all others (measured, median). %s for it, %s of a step of %s (median).%s",
			title, 100*late.last, report.Duration(late.margin), others, report.Duration(waits),
			report.Duration(late.step.Or(0)), in.whereLate(late, all)),
	})
	return true
}

// whereLate says in which part of a step a rank takes longer than the median of the others, where that was observed.
func (in *Input) whereLate(late *rank, all []*rank) string {
	took := func(k *rank) map[mem.Phase]int64 { return in.phaseTimes(k.ID) }
	own := took(late)
	if own == nil {
		return ""
	}
	best, most := mem.Phase(""), late.margin/2
	for phase, time := range own {
		var others []int64
		for _, k := range all {
			if k != late {
				if of := took(k); of != nil {
					others = append(others, of[phase])
				}
			}
		}
		if len(others) == 0 {
			return ""
		}
		if more := time - median(others); more > most || more == most && phase < best {
			best, most = phase, more
		}
	}
	switch best {
	case "":
		return ""
	case mem.PhaseStep:
		return fmt.Sprintf(" It spends %s more of a step outside of data, forward, backward and optimizer: in the "+
			"program's own lines between them.", report.Duration(most))
	}
	return fmt.Sprintf(" It spends %s more of a step in %s.", report.Duration(most), best)
}

// phaseTimes are what a rank takes in each phase of a step, the median of those that were observed, and under
// PhaseStep what it takes outside of all; nil where too few were. Backward is left out, as ranks may wait for each
// other in it.
func (in *Input) phaseTimes(process uint32) map[mem.Phase]int64 {
	parts := []mem.Phase{mem.PhaseData, mem.PhaseForward, mem.PhaseOptimizer}
	byStep := map[uint64]map[mem.Phase]int64{}
	for s := range in.Run.Spans.All() {
		if s.Process != process || s.Step == 0 {
			continue
		}
		if byStep[s.Step] == nil {
			byStep[s.Step] = map[mem.Phase]int64{}
		}
		byStep[s.Step][s.Phase] += s.End - s.Start
	}
	all := map[mem.Phase][]int64{}
	for _, of := range byStep {
		whole := of[mem.PhaseStep]
		if whole == 0 {
			continue
		}
		for _, part := range parts {
			all[part] = append(all[part], of[part])
			whole -= of[part]
		}
		all[mem.PhaseStep] = append(all[mem.PhaseStep], max(whole-of[mem.PhaseBackward], 0))
	}
	if len(all[mem.PhaseStep]) < 5 {
		return nil
	}
	times := map[mem.Phase]int64{}
	for phase, values := range all {
		times[phase] = median(values)
	}
	return times
}

const (
	leastLoad      = 256 * mem.MiB         // of host memory that a rank had before its first step and gave back
	leastApart     = 256 * mem.MiB         // that ranks' peaks differ by
	leastBehind    = 5 * time.Millisecond  // a step, that a straggler works longer
	slower, larger = 1.2, 1.15             // than the median rank
	together       = 50 * time.Millisecond // failures closer than that have no order
	leastObserved  = 20                    // steps of a rank, to compare its work
)

// rank is what a run tells of one process of a distributed program.
type rank struct {
	*mem.Process
	number           int64
	step, work       mem.Optional // ns: a step, and what of it no other rank is waited for in
	workHalf         mem.Optional // half its 95 % interval
	behind, waiting  mem.Optional // ns a step: after the first rank to enter, for the last one
	last             float64      // share of the steps in which it entered last
	margin           int64        // ns by which it was behind all others, the median; negative: it was not
	host, load, rest mem.Optional // bytes of RSS: its peak; up to the end of the first step; at the ends of the later half
	device           mem.Optional
	failed           mem.Optional // when it failed first
}
