// Package run turns a recording into a report.Report: what the memory was, who held it, what grows, and what to change.
// Package trace beside it does so with files.
//
//	mem.Run ──▶ facts ──▶ growth ──▶ Analysis, one file each, in All ──┐
//	                                                                   ├──▶ report.Report ──▶ terminal, HTML, JSON, CI
//	snapshots, profiles, mappings ──▶ trace ───────────────────────────┘
//
// Analyses are pure functions and know nothing of each other; each returns findings, tables, series. What several of
// them tell of is made once, in newInput. To add one: a file with a func(*Input) report.Part, and a line in All.
//
// Runs and files share what stands on usage.History. That is who held the peak by line, what grows (History.Growing
// decides; growth/heap.go and trace/growth.go say where the readings of each lie), flame graphs (graph), and why memory
// ran out (trace.Shortage). What is told twice has a reason:
//   - The peak of a run is the highest reading of a series (peak.go), as RSS and devices have no stacks. That of a
//     trace is the highest moment of its history.
//   - Lines of a heap have a table with errors (sites.go), groups of blocks one with categories
//     (trace/explaintables.go): a sample has the one and not the other.
//   - Phases of a run are measured at their edges, in RSS and time (phases.go). Those of a trace are inferred from
//     stacks, and hold blocks.
//   - The timeline of a run is curves (timeline.go), that of a trace is blocks by category (trace/groups.go).
//   - Only an allocator knows segments, rounding and turnover, so those tables have no counterpart.
package run

import (
	"cmp"
	"slices"

	"hightide/internal/analyze/facts"
	"hightide/internal/analyze/growth"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Options of an analysis. The zero value is useful.
type Options struct {
	// Source returns the text of a line of the observed program, "" where it is not known, so that
	// a finding can quote it. Analyses read no files themselves; nil: lines are not quoted.
	Source func(file string, line int) string

	// Snapshots are the decoded allocator snapshots of the run, by the name in mem.Run.Snapshots;
	// one that could not be decoded is absent.
	Snapshots map[string]*mem.AllocatorSnapshot

	// Profiles are those of them that are not snapshots but memory by line, as JAX writes it.
	Profiles map[string]*mem.Profile
}

func newInput(run *mem.Run, opts Options) *Input {
	in := &Input{Facts: facts.Of(run, opts.Source)}
	in.taken = readSnapshots(run, opts.Snapshots)
	in.profiled = readProfiles(in.Facts, opts.Profiles)
	if in.Verdict != nil {
		heldAtPeak(run, in.Verdict, opts.Snapshots, opts.Profiles)
	}
	in.grown = growth.Find(in.Facts)
	in.ending, in.first = in.deadlines()
	in.scored = in.score()
	return in
}

// All are the analyses in the order people read them. Each looks at a run and returns what it has to say. Add yours
// here.
var All = []func(*Input) report.Part{
	imaginedRun, // whether a run on imaginary GPUs fits, and what that rests on
	rescued,     // whether steps were done again in micro-batches
	planned,     // whether a plan of levers was applied, and the peak was as it says
	confined,    // whether it ran in the host memory that it was allowed
	peak,        // how high memory rose, when, and who held it
	grows,       // what only ever grows, and which line or cycle keeps it; of whole devices too
	copies,      // what forked workers copy of their parent's memory, and why
	addUp,       // processes that are started again and again, and do not end
	limits,      // what else than memory the program runs out of, and what of all ends it first
	sharedLeft,  // what of /dev/shm was left behind that nobody uses
	shapes,      // what each curve does as a whole: steady, a saw-tooth, a staircase, and when it changed
	sites,       // which lines of the program held the heap at its highest
	stacks,      // which call stacks held it
	phases,      // which part of a step takes the memory
	userSpans,   // what the parts took that the program named
	modules,     // which part of the model takes the memory
	holes,       // how much of it is free memory that malloc keeps
	processes,   // how it is spread over the processes
	attached,    // what is not known of a process that ran before its recording
	ranks,       // which rank works longest, takes most, failed first, and what loading took
	efficiency,  // how well the run uses the memory that it needs to have
	faults,      // page faults and swap: what the memory costs in time
	devices,     // what the devices say against what the allocator says
	snapshots,   // who held a device's memory when a snapshot was taken
	arrays,      // which lines made the arrays that were alive when a framework wrote a profile
	graphs,      // forward passes that saved for a backward pass that never came
	programs,    // what each compiled function needs, and what it could do without
	traced,      // which functions are traced or compiled again and again
	outOfMemory, // where and why memory ran out
	alerts,      // limits that were passed
	drops,       // what the recording does not have, and why
	timeline,    // the picture: curves, phases, steps, marks
}

// Analyze runs all analyses on a recording. It changes nothing in it, and the same recording gives
// the same report.
func Analyze(run *mem.Run, opts Options) *report.Report {
	in, r := newInput(run, opts), report.New()
	r.Run, r.Headline.Complete = run.Info, false
	if r.Run.Command == nil {
		r.Run.Command = []string{}
	}
	for _, p := range run.Processes {
		r.Processes = append(r.Processes, *p)
	}
	for _, analysis := range All {
		r.Add(analysis(in))
	}
	slices.SortStableFunc(r.Findings, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(a.Rank(), b.Rank()),
			cmp.Compare(b.BytesPerStep.Or(0), a.BytesPerStep.Or(0)), cmp.Compare(b.Bytes.Or(0), a.Bytes.Or(0)))
	})
	headline(in, r)
	r.SayNothing()
	return r
}

// grows is what grew, and what came to rest.
func grows(in *Input) report.Part { return in.grown.Said }
