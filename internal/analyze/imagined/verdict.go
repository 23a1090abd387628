// Package imagined is the analysis of a run on imaginary GPUs: whether the program fits, and what that rests on.
//
//	mem.Run (frames of mem/imagined.go) ──▶ Judge ──▶ report.Imagined ──▶ Tell: tables and notes, Sentence: the headline
//
// Start reading at Judge.
package imagined

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Judge is the verdict on a run. Which lines held the peak is not in it: that takes a snapshot.
func Judge(run *mem.Run) *report.Imagined {
	v := &report.Imagined{Calls: map[string]uint64{}, Conditions: map[string]string{}}
	s := &run.Imagined.Setup
	v.GPU, v.GPUName, v.Compute, v.SMs, v.GPUs = s.GPU, s.Name, s.Compute, s.SMs, s.Count
	v.Total, v.Context, v.Tight, v.Price, v.TotalLabel = s.Total, s.Context, s.Tight, s.Price,
		cmp.Or(s.TotalLabel, mem.Measured)
	v.Label = mem.Imagined
	takeIn(run, v)
	conditions(run, v)
	if v.Serving = serving(run); v.Serving != nil && v.Serving.Ready {
		v.KVTokens = v.Serving.KVTokens
	}
	for i := range v.Categories {
		if v.Serving != nil && v.Categories[i].Name == "parameters" {
			v.Categories[i].Name = "weights"
		}
	}
	ranks(run, v)
	graphNodes(run, v)
	peaks(run, v)
	peakMoment(run, v)
	judge(run, v)
	judgeUsers(&run.Imagined.Setup, v)
	unless(v)
	runsOut(run, v)
	withoutKernels(run, v)
	if v.Fits() {
		v.Basis = basis(run, v)
	}
	return v
}

// judge says whether it fits. A program that caught its errors and went on to its end fits, with
// what it changed; one that failed without lack of memory has no verdict.
func judge(run *mem.Run, v *report.Imagined) {
	code, ended := int64(0), run.End != nil
	switch {
	case ended && run.End.Reason == "stopped" && run.End.ExitCode != mem.Some(0) && !failedBefore(run): // by us: nobody in it listened
		v.StoppedFor = cmp.Or(v.StoppedFor, report.StoppedForDuration)
	case ended:
		code = run.End.ExitCode.Or(255)
	}
	oom := deviceOOM(run, v)
	switch {
	case v.StoppedFor == mem.StopCancelled && !oom: // its peak may have been to come
		v.Verdict, v.How, v.Headroom = mem.VerdictFailed, cancelled(run, v), mem.Optional{}
	case v.Broken != "" && !oom: // what was not read may have used more
		v.Verdict, v.Headroom = mem.VerdictFailed, mem.Optional{}
	case ended && code == 0 && !v.Used.Known() && unwritten(run) > 0: // it may have used a GPU: the disk was full
		v.Verdict, v.How = mem.VerdictFailed, fmt.Sprintf("what it used was not recorded: %s could not be written",
			report.Counted(int64(unwritten(run)), "record"))
	case ended && code == 0 && !v.Used.Known():
		v.Verdict = mem.VerdictUnused
		switch {
		case v.StoppedFor == report.StoppedForDuration:
			v.How = "was stopped by --duration before it touched a GPU"
			if nobodyAsked(run, v) {
				v.How += ", and no requests of --load were played: no server was seen that it knows how to ask"
			}
		case v.Serving != nil && v.Serving.LoadRefused != "":
			v.How = "touched no GPU (" + report.FirstLine(v.Serving.LoadRefused, 300) + ")"
		case !usedServed(run):
			v.How = "imported nothing that imaginary GPUs serve (" + frameworks.Served() + "), so it touched no GPU"
		}
	case ended && code == 0 && v.Serving != nil && !v.Serving.Ready && !oom:
		v.Verdict, v.Headroom = mem.VerdictFailed, mem.Optional{}
		v.How = unready(v)
	case ended && code == 0 && v.Serving != nil && v.Serving.LoadRefused != "" && !oom:
		v.Verdict, v.Headroom, v.KVTokens = mem.VerdictFailed, mem.Optional{}, mem.Optional{}
		v.How = unanswered(run, v.Serving)
	case ended && code == 0 && untrained(v) && oom:
		v.Verdict, v.Headroom = mem.VerdictOOM, mem.Optional{}
		v.How = "the program caught it and took no step"
	case ended && code == 0 && unread(run):
		v.Verdict, v.Headroom = mem.VerdictFailed, mem.Optional{}
		v.How = "the program ended without an error: it read nothing that came of it, or caught what it read"
		if oom {
			v.Verdict = mem.VerdictOOM
		} else {
			v.How = "a call failed, and " + v.How
		}
	case ended && code == 0 && untrained(v):
		v.Verdict, v.Headroom = mem.VerdictFailed, mem.Optional{}
		v.How = "its training never began: an optimizer was built and took no step"
	case ended && code == 0 && v.Headroom.Or(0) < int64(v.Tight):
		v.Verdict = mem.VerdictTight
	case ended && code == 0:
		v.Verdict = mem.VerdictFits
	case oom && !failedOtherwise(run, v) || short(v.Serving) > 0:
		v.Verdict = mem.VerdictOOM
		v.Headroom = mem.Optional{}
	default:
		v.Verdict, v.How = mem.VerdictFailed, failure(run)
		if v.Serving != nil && !v.Serving.Ready {
			v.How += ", " + while[v.Serving.Step]
		}
		v.Headroom = mem.Optional{}
	}
}

// nobodyAsked says whether requests were to be played, and no engine of a server was seen.
func nobodyAsked(run *mem.Run, v *report.Imagined) bool {
	return run.Imagined.Setup.Load != "" && v.Serving == nil
}

// failedBefore says whether an exception that nobody caught came before the program was told to end: it was on its way
// out, as a server is that still waits for its processes.
func failedBefore(run *mem.Run) bool {
	at := slices.IndexFunc(run.Events, func(e mem.Event) bool { return e.Kind == "stop" && e.Text == mem.StopDuration })
	e, ok := run.Uncaught()
	return at >= 0 && ok && e.Time < run.Events[at].Time
}

// unwritten is how many records of a run could not be written.
func unwritten(run *mem.Run) (n uint64) {
	for _, d := range run.Drops {
		if d.Place == "disk" {
			n += d.Records
		}
	}
	return n
}

// unread says whether a call failed and its error was never raised.
func unread(run *mem.Run) bool {
	return slices.ContainsFunc(run.Processes, func(p *mem.Process) bool { return p.Facts[frameworks.FactUnread] != "" })
}

// untrained says whether the program built an optimizer and ended without a step.
func untrained(v *report.Imagined) bool {
	return slices.ContainsFunc(v.NotReached, func(u report.Unreached) bool { return u.What == "training" })
}

// basis is what a fit rests on: "judged over 4 steps, without its evaluation"; "" where that is all that the program
// does.
func basis(run *mem.Run, v *report.Imagined) string {
	var parts, without, perhaps []string
	if steps := run.StepCount(); steps > 0 {
		parts = append(parts, "over "+report.Counted(int64(steps), "step"))
	}
	if v.Shortages > 0 && v.Headroom.Known() { // else it ended by the last of them
		parts = append(parts, "after "+report.Counted(v.Shortages, "out-of-memory error")+" that it caught")
	}
	for _, u := range v.NotReached {
		switch {
		case u.What == steadyPeak && v.Rising != nil && v.Verdict == mem.VerdictConditional && len(v.Undecided) == 0:
			// the verdict says it
		case u.What == steadyPeak && v.Rising != nil && v.Rising.Kept:
			parts = append(parts, fmt.Sprintf("each of which kept %v more than the one before", v.Rising.PerStep))
		case u.What == steadyPeak && v.Rising != nil:
			parts = append(parts, fmt.Sprintf("at whose end its peak still rose by %v a step", v.Rising.PerStep))
		case u.What == steadyPeak:
			parts = append(parts, "at whose end its peak still rose")
		case u.Perhaps || u.What == "longest batch":
			perhaps = append(perhaps, "its "+u.What)
		default:
			without = append(without, "its "+u.What)
		}
	}
	if v.Conditions["longest first"] != "" {
		parts = append(parts, "with its longest batch first")
	}
	if cut := v.Conditions["cut short"]; cut != "" {
		parts = append(parts, "with "+cut)
	}
	switch left := unplayed(v.Ranks); {
	case left > 0 && fullest(v) != "":
		parts = append(parts, fmt.Sprintf("on ranks that take different amounts, %d more were not played", left))
	case left > 0 && len(v.Ranks) == 1: // as of experts or of a pipeline, it may be the emptiest
		parts = append(parts, fmt.Sprintf("on one rank alone, and the %d that were not played may take more", left))
	case left > 0:
		parts = append(parts, fmt.Sprintf("on ranks that took the same, %d more were not played", left))
	}
	if nobodyAsked(run, v) {
		without = append(without, "the requests of --load, as no server was seen that it knows how to ask")
	}
	if slices.ContainsFunc(run.Processes, func(p *mem.Process) bool { _, _, fake := fakeRank(p); return fake }) {
		without = append(without, "the buffers of NCCL, as its process group is fake")
	}
	if len(without) > 0 {
		parts = append(parts, "without "+strings.Join(without, " and "))
	}
	if len(perhaps) > 0 {
		parts = append(parts, "perhaps without "+strings.Join(perhaps, " and "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "judged " + strings.Join(parts, ", ")
}

// unplayed is how many ranks of the world did not run.
func unplayed(ranks []report.RankUse) int64 {
	there, world := map[int64]bool{}, int64(0)
	for _, r := range ranks {
		if r.Played {
			there[r.Rank.Or(-1)] = true
			world = max(world, r.World.Or(0))
		}
	}
	return world - int64(len(there))
}

// deviceOOM says whether a device ran out, and notes the first step that failed.
func deviceOOM(run *mem.Run, v *report.Imagined) bool {
	found := false
	for _, e := range run.Events {
		switch {
		case e.Kind == "oom" && e.Facts["device"] != "" && e.Facts["device"] != "cpu":
			if step, ok := e.Step.Get(); ok && !v.FailedStep.Known() {
				v.FailedStep = mem.Some(step)
			}
			v.Short = shortCall(&e)
			if e.Bytes.Known() || v.Short != nil {
				v.Asked = e.Bytes
			}
			if limit := e.Number(mem.NumberOwnLimit); limit.Known() {
				v.OwnLimit = limit
			}
			v.Shortages++
			found = true
		case e.Kind == "exception":
			found = found || e.Shortage()
		}
	}
	return found
}

// shortCall is the call that found no memory; nil: no compiled function's, or the framework does not tell.
func shortCall(e *mem.Event) *report.ShortCall {
	if e.Facts["program"] == "" {
		return nil
	}
	size := func(name string) mem.Bytes { return mem.Bytes(e.Numbers[name]) }
	call := &report.ShortCall{Function: e.Facts["program"], File: e.Facts["program_file"],
		Line: int(e.Numbers["program_line"]), Used: e.Number("used_bytes"), Arguments: size("argument_bytes"),
		Outputs: size("output_bytes"), Donated: size("alias_bytes"), Temporaries: size("temp_bytes")}
	if e.Where != nil {
		call.CalledFile, call.CalledLine = e.Where.File, e.Where.Line
	}
	return call
}

// failedOtherwise says whether the only process caught its errors of memory, and was ended by another exception.
func failedOtherwise(run *mem.Run, v *report.Imagined) bool {
	last, ok := run.Uncaught()
	return ok && len(v.Ranks) == 1 && isMain(run, last.Process) && !last.Shortage() && !mem.TellsOfChild(last)
}
