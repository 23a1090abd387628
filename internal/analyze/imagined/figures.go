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
	v.Rising = rising(facts.Unreached)
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
	if v.Conditions[frameworks.Torch] != "" { // these two are of it alone
		set("allocator setting", cmp.Or(v.Conditions["allocator setting"], s.AllocConf)) // the program's own, if it made one
		set("data-dependent sizes", s.Sizes)
	}
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
		{"CUDA graphs", p.Graphs}, {"workspaces", p.Workspaces}, {"results", p.Results}, {"other", p.Other}} {
		if bytes, ok := part.bytes.Get(); ok {
			all = append(all, report.Category{Name: part.name, Bytes: mem.Bytes(bytes)})
			sum += mem.Bytes(bytes)
		}
	}
	if sum < most {
		return
	}
	v.Categories, v.ByStack, v.CategoryBasis, v.CategoriesShort = all, p.ByStack, p.Device, p.Short
	v.GraphPools = p.GraphPools
	v.LinesHeld, v.LinesAsked = 0, 0
	if unasked, ok := p.Unasked.Get(); ok {
		v.LinesHeld, v.LinesAsked = sum, sum-mem.Bytes(unasked)
	}
	if process := run.Process(p.Process); process != nil && process.Rank.Known() {
		v.CategoryBasis = process.RankName() + " " + p.Device
	}
}

// graphNodes is what the driver keeps for the nodes of CUDA graphs, of the process that has most, and by how much that may
// be otherwise. What is open of it and of the context leaves a fit with less room than both tight.
func graphNodes(run *mem.Run, v *report.Imagined) {
	s := &run.Imagined.Setup
	var most mem.Bytes
	for _, rank := range v.Ranks {
		most = max(most, rank.Parts["graphs"])
	}
	if most == 0 || s.GraphNode == 0 {
		return
	}
	v.GraphNodes = mem.Some(int64(most))
	v.GraphNodesRange = &mem.Range{Low: most / s.GraphNode * s.GraphNodes.Low, High: most / s.GraphNode * s.GraphNodes.High}
	v.Tight = max(v.Tight, max(0, s.Contexts.High-s.Context)+v.GraphNodesRange.High-most)
	if v.Serving == nil {
		return
	}
	if all, ok := v.Serving.Graphs.Get(); ok && mem.Bytes(all) >= most {
		rest := mem.Bytes(all) - most
		v.Serving.GraphRange = &mem.Range{Low: rest + v.GraphNodesRange.Low, High: rest + v.GraphNodesRange.High}
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
		rank.Allocated, rank.Reserved = peakOf(run, use.Process, named(run, use.Process, use.Index))
		if _, told := use.Parts["allocated"]; told && rank.Allocated.Known() && !rank.Reserved.Known() { // by the device, then
			rank.Reserved = mem.Some(int64(use.Parts["allocated"]))
		}
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
	rank, world = p.Number(frameworks.NumberFakeRank).Or(-1), p.Number(frameworks.NumberFakeWorld).Or(0)
	return rank, world, 0 <= rank && rank < world
}

// cuda is what PyTorch calls a device.
func cuda(index int) string { return fmt.Sprintf("cuda:%d", index) }

// named is what a process calls a device. One that sees a single device (CUDA_VISIBLE_DEVICES) calls that its first.
func named(run *mem.Run, process uint32, index int) string {
	name, said, uses := cuda(index), []string{}, 0
	for _, p := range run.Imagined.Peaks {
		if p.Process == process {
			said = append(said, p.Device)
		}
	}
	for _, use := range run.Imagined.Uses {
		if use.Process == process && use.Used > 0 {
			uses++
		}
	}
	if uses == 1 && len(said) == 1 {
		return said[0]
	}
	return name
}

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
	device := named(run, process, index)
	for _, p := range run.Imagined.Peaks {
		limit, limited := p.Limit.Get()
		if p.Process != process || p.Device != device || !limited {
			continue
		}
		allocated, reserved := p.Allocated.Or(0), reservedBy(v, process, index)
		v.Limit, v.Needed = p.Limit, mem.Some(v.Used.Or(0)-reserved+allocated)
		v.Headroom = mem.Some(min(limit-allocated, int64(v.Total)-v.Needed.Or(0)))
		v.LimitBy = frameworks.Of(p.Framework).Title
	}
}

// reservedBy is what the allocator of a process took of a device.
func reservedBy(v *report.Imagined, process uint32, index int) int64 {
	for _, rank := range v.Ranks {
		if rank.Process == process && rank.Index == index {
			return rank.Reserved.Or(0)
		}
	}
	return 0
}

// peakMoment is when the fullest process had its peak, as it said itself.
func peakMoment(run *mem.Run, v *report.Imagined) {
	process, index := Fullest(v)
	device := named(run, process, index)
	for _, p := range run.Imagined.Peaks {
		if p.Process == process && p.Device == device && v.Serving == nil { // a server has no steps and no phases
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

// Raise raises high-water marks to those that the devices' tables tell, where samples are lower: a peak between two
// samples is no less one.
func Raise(v *report.Imagined, peak *report.Peak) {
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
}

// Place has the verdict say in which phase the peak was, as the samples do, where the tables do not.
func Place(v *report.Imagined, peak report.Peak) {
	if v.PeakPhase == "" {
		v.PeakPhase, v.PeakStep = peak.Phase, peak.Step
	}
}
