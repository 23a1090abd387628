package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Options of an analysis. The zero value is useful.
type Options struct {
	// Source returns the text of a line of the observed program, "" where it is not known, so that
	// a finding can quote it. Analyses read no files themselves; nil: lines are not quoted.
	Source func(file string, line int) string

	// Snapshots are the decoded allocator snapshots of the run, by the name in mem.Run.Snapshots;
	// one that could not be decoded is absent.
	Snapshots map[string]*mem.AllocatorSnapshot
}

// Analysis is one way to look at a run: it adds what it finds to the report.
type Analysis struct {
	Name string
	What string // the question it answers
	Run  func(*Input, *Report)
}

// All lists the analyses in the order people read them. Add yours here.
var All = []Analysis{
	{"imagined", "whether a run on imaginary GPUs fits, and what that rests on", imagined},
	{"peak", "how high memory rose, when, and who held it", peak},
	{"growth", "what only ever grows, and which line keeps it", growth},
	{"sites", "which lines of the program held the heap at its highest", sites},
	{"stacks", "which call stacks held it", stacks},
	{"phases", "which part of a step takes the memory", phases},
	{"modules", "which part of the model takes the memory", modules},
	{"processes", "how it is spread over the processes", processes},
	{"faults", "page faults and swap: what the memory costs in time", faults},
	{"devices", "what the devices say against what the allocator says", devices},
	{"oom", "where and why memory ran out", outOfMemory},
	{"snapshots", "who held a device's memory when a snapshot was taken", snapshots},
	{"alerts", "limits that were passed", alerts},
	{"drops", "what the recording does not have, and why", drops},
	{"timeline", "the picture: curves, phases, steps, marks", timeline},
}

// Analyze runs all analyses on a recording. It changes nothing in it, and the same recording gives
// the same report.
func Analyze(run *mem.Run, opts Options) *Report {
	in := newInput(run, opts)
	report := &Report{
		Version: ReportVersion, Run: run.Info, Processes: []mem.Process{}, Findings: []Finding{}, Tables: []Table{},
		Series: []Series{}, Phases: []PhaseBar{}, Steps: []StepPoint{}, Marks: []Mark{}, Stacks: []StackSet{}, Notes: []string{},
	}
	if report.Run.Command == nil {
		report.Run.Command = []string{}
	}
	for _, p := range run.Processes {
		report.Processes = append(report.Processes, *p)
	}
	for _, a := range All {
		a.Run(in, report)
	}
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(b.BytesPerStep.Or(0), a.BytesPerStep.Or(0)), cmp.Compare(b.Bytes.Or(0), a.Bytes.Or(0)))
	})
	headline(in, report)
	return report
}

// Severities, worst first.
const (
	Critical = "critical" // memory ran out, or will
	Warning  = "warning"  // it costs something worth an hour of work
	Info     = "info"
)

func severityRank(s string) int {
	return slices.Index([]string{Critical, Warning, Info}, s)
}
