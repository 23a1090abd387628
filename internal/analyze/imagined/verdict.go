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
	peaks(run, v)
	peakMoment(run, v)
	judge(run, v)
	judgeUsers(&run.Imagined.Setup, v)
	unless(v)
	withoutKernels(run, v)
	if v.Fits() {
		v.Basis = basis(run, v)
	}
	return v
}

// takeIn copies what needs no reckoning, and adds up what several processes did at one line.
func takeIn(run *mem.Run, v *report.Imagined) {
	facts := &run.Imagined
	for _, d := range facts.Devices {
		if d.Total > 0 {
			v.Devices = append(v.Devices, d)
		}
	}
	for _, c := range facts.Calls {
		v.Calls[c.Name] += c.Count
		if c.Refused {
			v.Refused = append(v.Refused, c.Name)
		}
	}
	v.FakeWeights = facts.Weights
	for _, u := range facts.Unreached {
		v.NotReached = append(v.NotReached, report.Unreached{What: u.What, Text: u.Text, Perhaps: u.Perhaps, File: u.File,
			Line: u.Line})
	}
	for _, r := range facts.Redirected {
		v.Redirected = append(v.Redirected, r.Path)
	}
	for _, t := range facts.Trials {
		switch t.Set {
		case mem.TrialTry:
			v.Tries = append(v.Tries, t.Try)
		case mem.TrialVariation:
			v.Variations = append(v.Variations, t.Try)
		case mem.TrialCatalogue:
			v.All = append(v.All, t.GPUVerdict)
		case mem.TrialValues:
			v.Other = &t.Try
		}
	}
	for _, p := range facts.Parts {
		categories(run, v, &p)
	}
	for _, e := range run.Events {
		switch e.Kind {
		case "stop":
			if v.StoppedFor != mem.StopCancelled {
				v.StoppedFor = e.Text
			}
		case mem.EventDeviceUnread:
			v.Broken = e.Text
		}
	}
	v.Policies = policies(facts.Sizes)
	v.ReadBacks = readBacks(facts.Reads)
	for _, read := range v.ReadBacks {
		v.ReadBack += read.Bytes
	}
	v.Undecided = undecided(facts.Reads)
}

// policies are the sizes that depend on data, those of several processes at one line added up.
func policies(sizes []mem.DataSize) []report.Policy {
	var all mem.Tally[report.Policy, report.Policy]
	for _, s := range sizes {
		at := report.Policy{Op: s.Op, File: s.File, Line: s.Line}
		p := all.At(at)
		at.Policy, at.Count, at.Elements = cmp.Or(p.Policy, s.Policy), p.Count+max(s.Count, 1), max(p.Elements, s.Elements)
		*p = at
	}
	slices.SortStableFunc(all.All, func(a, b report.Policy) int {
		return cmp.Or(cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line))
	})
	return all.All
}

// readBacks are the reads that the device counted, added up by line: those that decide nothing.
func readBacks(reads []mem.ReadBack) []report.ReadBack {
	var all mem.Tally[mem.Location, report.ReadBack]
	for _, r := range reads {
		if !r.Agent {
			sum := all.At(mem.Location{File: r.File, Line: r.Line})
			*sum = report.ReadBack{File: r.File, Line: r.Line, Function: cmp.Or(sum.Function, r.Function), Count: sum.Count +
				max(r.Count, 1), Bytes: sum.Bytes + r.Bytes}
		}
	}
	for _, r := range reads {
		if r.Agent && r.Use == mem.UseCheck {
			all.At(mem.Location{File: r.File, Line: r.Line}).Check = r.UseLine
		}
	}
	read := slices.DeleteFunc(all.All, func(b report.ReadBack) bool { return b.Count == 0 })
	slices.SortStableFunc(read, func(a, b report.ReadBack) int { return cmp.Compare(b.Count, a.Count) })
	return read
}

// conditions are what the answer rests on: versions, settings, and what the agent saw.
func conditions(run *mem.Run, v *report.Imagined) {
	set := func(name, value string) {
		if value != "" {
			v.Conditions[name] = value
		}
	}
	for _, c := range run.Imagined.Conditions {
		v.Conditions[c.Name] = c.Value
	}
	for _, s := range run.Imagined.Switches {
		text := s.Text
		if s.Applied {
			text = strings.TrimSpace("applied " + text)
		}
		v.Conditions["switch "+s.Name] = text
	}
	for _, p := range run.Processes {
		for name, version := range p.Frameworks {
			set(name, version)
		}
		set("python", p.Python)
		set("CUDA of torch", p.Facts[frameworks.FactCUDA])
		set("amp", p.Facts["amp"])
		if p.Frameworks[frameworks.Torch] != "" {
			set("interpreter", p.Facts["executable"])
		}
	}
	s := &run.Imagined.Setup
	if v.Conditions["allocator setting"] == "" { // the program did not make one
		set("allocator setting", s.AllocConf)
	}
	set("data-dependent sizes", s.Sizes)
	set("values read back", s.ReadValue)
}

// categories of the process and device that had most allocated.
func categories(run *mem.Run, v *report.Imagined, p *mem.PeakParts) {
	var sum, most mem.Bytes
	for _, c := range v.Categories {
		most += c.Bytes
	}
	var all []report.Category
	for _, part := range []struct { // in the order people read them
		name  string
		bytes mem.Optional
	}{{"parameters", p.Parameters}, {"gradients", p.Gradients}, {"optimizer", p.Optimizer},
		{"state", p.State}, {"buffers", p.Buffers},
		{"inputs", p.Inputs},
		{"activations", p.Activations}, {"KV cache", p.KVCache}, {"temporaries", p.Temporaries},
		{"workspaces", p.Workspaces}, {"results", p.Results}, {"other", p.Other}} {
		if bytes, ok := part.bytes.Get(); ok {
			all = append(all, report.Category{Name: part.name, Bytes: mem.Bytes(bytes)})
			sum += mem.Bytes(bytes)
		}
	}
	if sum < most {
		return
	}
	v.Categories, v.ByStack, v.CategoryBasis, v.CategoriesShort = all, p.ByStack, p.Device, p.Short
	if process := run.Process(p.Process); process != nil && process.Rank.Known() {
		v.CategoryBasis = process.RankName() + " " + p.Device
	}
}

// ranks lists each process that used a device.
func ranks(run *mem.Run, v *report.Imagined) {
	for _, use := range run.Imagined.Uses {
		if use.Used <= 0 {
			continue
		}
		rank := report.RankUse{Process: use.Process, Device: use.Device, Index: use.Index, Used: use.Used, Parts: use.Parts,
			Played: use.Played}
		if p := run.Process(use.Process); p != nil {
			rank.Rank, rank.World, rank.Name = p.Rank, p.WorldSize, p.Facts[mem.FactRankName]
			if own, world, ok := fakeRank(p); ok {
				rank.Rank, rank.World = mem.Some(own), mem.Some(world)
			}
		}
		rank.Allocated, rank.Reserved = peakOf(run, use.Process, cuda(use.Index))
		v.Ranks = append(v.Ranks, rank)
	}
	slices.SortStableFunc(v.Ranks, func(a, b report.RankUse) int {
		return cmp.Or(cmp.Compare(a.Rank.Or(-1), b.Rank.Or(-1)), cmp.Compare(a.Process, b.Process),
			cmp.Compare(a.Device, b.Device))
	})
}

// fakeRank is which rank of how many a process is whose program made a world of PyTorch's fake backend: nobody else
// is there.
func fakeRank(p *mem.Process) (rank, world int64, ok bool) {
	n, err := fmt.Sscanf(p.Facts[frameworks.FactFakeRanks], "%d/%d", &rank, &world)
	return rank, world, err == nil && n == 2 && 0 <= rank && rank < world
}

// cuda is what PyTorch calls a device.
func cuda(index int) string { return fmt.Sprintf("cuda:%d", index) }

// peakOf is the allocator's high-water mark of a process on a device: what it said itself, else the
// highest sample.
func peakOf(run *mem.Run, process uint32, device string) (allocated, reserved mem.Optional) {
	for _, s := range run.Series {
		if s.Process == process && s.Device == device && len(s.Values) > 0 {
			switch s.Name {
			case mem.SeriesAllocated:
				allocated.Raise(mem.Some(s.Values[s.Peak()]))
			case mem.SeriesReserved:
				reserved.Raise(mem.Some(s.Values[s.Peak()]))
			}
		}
	}
	for _, p := range run.Imagined.Peaks {
		if p.Process == process && p.Device == device {
			allocated.Raise(p.Allocated)
			reserved.Raise(p.Reserved)
		}
	}
	return allocated, reserved
}

// peaks takes the figures of the fullest device, of the process that had most of it.
func peaks(run *mem.Run, v *report.Imagined) {
	fullest, most := -1, -1.0
	for i, d := range v.Devices {
		if share := float64(d.Used) / float64(d.Total); share > most {
			fullest, most = i, share
		}
	}
	if fullest >= 0 {
		d := v.Devices[fullest]
		v.Used, v.Total, v.Context = mem.Some(int64(d.Used)), d.Total, d.Context
		v.Headroom = mem.Some(int64(d.Total - d.Used))
	}
	for _, rank := range v.Ranks {
		v.Allocated.Raise(rank.Allocated)
		v.Reserved.Raise(rank.Reserved)
	}
	needed(run, v)
	if len(v.Ranks) == 0 {
		v.Allocated, v.Reserved = largestPeak(run, mem.SeriesAllocated), largestPeak(run, mem.SeriesReserved)
	}
}

// needed tells what the program needs from what its framework takes, where that takes memory ahead of need and sets a
// limit of its own: what is to spare is what the limit leaves.
func needed(run *mem.Run, v *report.Imagined) {
	process, index := Fullest(v)
	for _, p := range run.Imagined.Peaks {
		limit, limited := p.Limit.Get()
		if p.Process != process || p.Device != cuda(index) || !limited {
			continue
		}
		allocated, reserved := p.Allocated.Or(0), p.Reserved.Or(0)
		v.Limit, v.Needed = p.Limit, mem.Some(v.Used.Or(0)-reserved+allocated)
		v.Headroom = mem.Some(min(limit-allocated, int64(v.Total)-v.Needed.Or(0)))
		v.LimitBy = limiting(run.Process(process))
	}
}

// limiting is the framework of a process that takes most of a device as it starts.
func limiting(p *mem.Process) string {
	for _, f := range frameworks.All() {
		if p != nil && p.Frameworks[f.Name] != "" && f.Preallocates != "" {
			return f.Title
		}
	}
	return ""
}

// peakMoment is when the fullest process had its peak, as it said itself.
func peakMoment(run *mem.Run, v *report.Imagined) {
	process, index := Fullest(v)
	for _, p := range run.Imagined.Peaks {
		if p.Process == process && p.Device == cuda(index) && v.Serving == nil { // a server has no steps and no phases
			v.PeakStep = p.Step
			if slices.Contains(mem.Phases, p.Phase) {
				v.PeakPhase = p.Phase
			}
		}
	}
}

// Fullest is the process that had most of a device, and the index of that device.
func Fullest(v *report.Imagined) (process uint32, device int) {
	var most mem.Bytes = -1
	for _, rank := range v.Ranks {
		if rank.Used > most {
			most, process, device = rank.Used, rank.Process, rank.Index
		}
	}
	return process, device
}

// largestPeak is the highest value of all series of a name.
func largestPeak(run *mem.Run, name mem.Quantity) (high mem.Optional) {
	for _, s := range run.Series {
		if s.Name == name && len(s.Values) > 0 {
			high.Raise(mem.Some(s.Values[s.Peak()]))
		}
	}
	return high
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
		v.How = "a call failed, and the program ended without reading what came of it"
		if oom {
			v.Verdict, v.How = mem.VerdictOOM, "the program ended without reading what came of it, so it saw no error"
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
		case u.What == "steady peak":
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

// Exact raises high-water marks to those that the devices' tables tell, where samples are lower: a peak between two
// samples is no less one. Where the verdict does not say in which phase the peak was, the samples do.
func Exact(v *report.Imagined, peak *report.Peak) {
	var allocated, reserved, used mem.Optional
	for _, rank := range v.Ranks {
		allocated, reserved = allocated.Plus(rank.Allocated), reserved.Plus(rank.Reserved)
	}
	for _, d := range v.Devices {
		used = used.Plus(mem.Some(int64(d.Used)))
	}
	peak.Allocated.Raise(allocated)
	peak.Reserved.Raise(reserved)
	peak.DeviceUsed.Raise(used)
	if v.PeakPhase == "" {
		v.PeakPhase, v.PeakStep = peak.Phase, peak.Step
	}
}
