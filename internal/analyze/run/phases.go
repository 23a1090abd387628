package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const phasesNote = "RSS of the process, read at the edges of each phase and by sampling within it. A rise is from " +
	"the " +
	"phase's beginning to its highest point; net is what a pass left behind, on average of all. The share is of the " +
	"time in phases; a step holds the others."

const deviceNote = " Device memory is what was allocated at edges alone: within a phase it may have been more."

// phases shows each phase of a step: how long, how high, what it leaves behind.
func phases(in *Input) (r report.Part) {
	t := report.Table{
		Name: "phases", Title: "Phases",
		Note: phasesNote + in.observedSteps(),
		Columns: append([]report.Column{report.TextColumn("phase", "phase"), report.TextColumn("process", "process"),
			report.ShareColumn("share", "share"), report.CountColumn("process_id", "")}, stayColumns(in.Label())...),
	}
	ofDevice, several := "", in.severalSteppers()
	shared := []mem.Phase{mem.PhaseData, mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer}
	if in.observedSteps() == "" { // else what lies between steps would be counted whole, and steps in part
		shared = append(shared, mem.PhaseEvaluation, mem.PhaseCheckpoint)
	}
	whole := map[uint32]int64{} // time in phases, by process
	for _, s := range in.Run.Phases {
		if slices.Contains(shared, s.Phase) {
			whole[s.Process] += s.Total
		}
	}
	for _, s := range in.sortedStats(func(s *mem.PhaseStats) bool {
		return s.Phase != mem.PhaseModule &&
			s.Phase != mem.PhaseUser
	}) {
		name := string(s.Phase)
		if s.Name != "" {
			name += " " + s.Name
		}
		if s.DevicePeak.Known() {
			ofDevice = deviceNote
		}
		share := mem.Optional{}
		if slices.Contains(shared, s.Phase) && whole[s.Process] > 0 {
			share = mem.Some(int64(math.Round(float64(s.Total) * 1000 / float64(whole[s.Process]))))
		}
		t.Add(append([]any{name, in.Whose(s.Process, several), share, s.Process}, stayCells(s)...)...)
		if len(t.Rows) == 40 {
			break
		}
	}
	t.Note += ofDevice
	r.AddTable(t)
	return r
}

// shortStep is about what a step takes at most where only every nth is told of, so that telling takes none of its time.
const shortStep = int64(100 * time.Millisecond)

// observedSteps says how many of the steps the phases were told of. Empty where all were.
func (in *Input) observedSteps() string {
	var observed, all uint64
	for _, s := range in.Run.Phases {
		if total := in.Run.Totals[s.Process].Steps; s.Phase == mem.PhaseStep && total > all {
			observed, all = s.Count, total
		}
	}
	if observed == 0 || observed >= all {
		return ""
	}
	text := fmt.Sprintf(" %s of the %s steps were observed in full: \"observed\" and \"time\" count those alone.",
		report.Count(int64(observed)), report.Count(int64(all)))
	if took, ok := in.StepTime(in.Leader).Get(); ok && took <= shortStep {
		text += " They are an even selection, as steps are short here."
	}
	return text
}

// stayColumns: device is the label of what is told of the device, and of times, which follow from what it does.
func stayColumns(device mem.Label) []report.Column {
	return []report.Column{report.CountColumn("count", "observed"), timeColumn("total", "time", device),
		timeColumn("mean", "mean", device), timeColumn("max", "longest", device),
		report.BytesColumn("rss_peak", "peak RSS", mem.Measured), report.BytesColumn("rss_rise", "rise", mem.Measured),
		report.BytesColumn("rss_net", "net a pass", mem.Measured), report.BytesColumn("device_peak", "device, edges", device),
		report.BytesColumn("device_net", "net device a pass", device)}
}

func timeColumn(name, title string, label mem.Label) report.Column {
	c := report.TimeColumn(name, title)
	c.Label = label
	return c
}

func stayCells(s *mem.PhaseStats) []any {
	mean := int64(0)
	if s.Count > 0 {
		mean = s.Total / int64(s.Count)
	}
	return []any{s.Count, s.Total, mean, s.Max, s.RSSPeak, s.RSSMaxRise, aPass(s.RSSNet, s.Count), s.DevicePeak,
		aPass(s.DeviceNet, s.Count)}
}

// aPass is a sum over passes as that of one, on average: a phase that takes what another gives back has a large sum
// and keeps nothing.
func aPass(sum mem.Optional, count uint64) mem.Optional {
	bytes, ok := sum.Get()
	if !ok || count == 0 {
		return mem.Optional{}
	}
	return mem.Some(int64(math.Round(float64(bytes) / float64(count))))
}

// sortedStats is the sums of the spans that the test lets through: by process, then as a step runs.
func (in *Input) sortedStats(want func(*mem.PhaseStats) bool) []*mem.PhaseStats {
	var all []*mem.PhaseStats
	for i := range in.Run.Phases {
		if want(&in.Run.Phases[i]) {
			all = append(all, &in.Run.Phases[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *mem.PhaseStats) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(slices.Index(mem.Phases, a.Phase),
			slices.Index(mem.Phases, b.Phase)))
	})
	return all
}

// severalSteppers says whether more than one process has phases of its own.
func (in *Input) severalSteppers() bool {
	first := uint32(0)
	for _, s := range in.Run.Phases {
		if first != 0 && s.Process != first {
			return true
		}
		first = s.Process
	}
	return false
}

// modules shows the root module's children: their parameters, and what memory does while each runs.
func modules(in *Input) (r report.Part) {
	t := report.Table{
		Name: "modules", Title: "Modules",
		Note: "The root module's direct children, during their forward pass." + in.observedSteps(),
		Columns: append([]report.Column{report.TextColumn("module", "module"), report.TextColumn("class", "class"),
			report.TextColumn("process", "process"),
			report.BytesColumn("parameters", "parameters", in.Label()), report.BytesColumn("buffers", "buffers", in.Label()),
			report.CountColumn("process_id", "")}, stayColumns(in.Label())...),
	}
	type key struct {
		process uint32
		name    string
	}
	stats, several := map[key]*mem.PhaseStats{}, in.severalSteppers()
	for i := range in.Run.Phases {
		if s := &in.Run.Phases[i]; s.Phase == mem.PhaseModule {
			stats[key{s.Process, s.Name}] = s
		}
	}
	for _, m := range in.Run.Modules {
		row := []any{cmp.Or(m.Name, "(root)"), m.Class, in.Whose(m.Process, several), m.Parameters, m.Buffers, m.Process}
		if s := stats[key{m.Process, m.Name}]; s != nil {
			row = append(row, stayCells(s)...)
		}
		t.Add(row...)
		if len(t.Rows) == 60 {
			break
		}
	}
	r.AddTable(t)
	return r
}
