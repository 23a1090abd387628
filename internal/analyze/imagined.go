package analyze

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// imagined makes the verdict of a run on imaginary GPUs; other runs it leaves alone.
func imagined(in *Input, r *report.Report) {
	if in.label() != mem.Imagined || in.Run.Info.Verb != "imagine" {
		return
	}
	r.Imagined = in.imagined()
	in.peakLines(r.Imagined)
	in.imaginedTables(r, r.Imagined)
}

// Judge is the verdict alone.
func Judge(run *mem.Run) *report.Imagined { return newInput(run, Options{}).imagined() }

func (in *Input) imagined() *report.Imagined {
	v := &report.Imagined{Calls: map[string]uint64{}, Conditions: map[string]string{}}
	in.imaginedGPU(v)
	in.imaginedEvents(v)
	in.imaginedRanks(v)
	in.imaginedPeak(v)
	in.peakMoment(v)
	in.judge(v)
	return v
}

// imaginedGPU is the GPU as the run was told.
func (in *Input) imaginedGPU(v *report.Imagined) {
	o := in.Run.Info.Options
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(o[key], 10, 64)
		return n
	}
	v.GPU, v.GPUName, v.Compute, v.SMs, v.GPUs = o["gpu"], o["gpu_name"], o["compute_capability"], int(number("multiprocessors")), int(number("gpus"))
	v.Total, v.Context, v.Tight = mem.Bytes(number("total_bytes")), mem.Bytes(number("context_overhead_bytes")), mem.Bytes(number("tight_below_bytes"))
	v.Price, _ = strconv.ParseFloat(o["price_usd_per_hour"], 64)
	v.Label = mem.Imagined
}

// imaginedPeak takes the figures of the fullest device, of the process that had most of it.
func (in *Input) imaginedPeak(v *report.Imagined) {
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
	if len(v.Ranks) == 0 {
		v.Allocated, v.Reserved = in.largestPeak(mem.SeriesAllocated), in.largestPeak(mem.SeriesReserved)
	}
}

// peakMoment is when the fullest process had its peak, as it said itself.
func (in *Input) peakMoment(v *report.Imagined) {
	process, index := in.fullest(v)
	for _, e := range in.Run.Events {
		if e.Kind == KindImaginedPeak && e.Process == process && e.Facts["device"] == "cuda:"+itoa(int64(index)) {
			if phase := mem.Phase(e.Facts["phase"]); slices.Contains(mem.Phases, phase) {
				v.PeakPhase = phase
			}
			v.PeakStep = fact(e, "step")
		}
	}
}

// largestPeak is the highest value of all series of a name.
func (in *Input) largestPeak(name mem.Quantity) (high mem.Optional) {
	for _, s := range in.Run.Series {
		if s.Name == name && len(s.Values) > 0 {
			high.Raise(mem.Some(s.Values[s.Peak()]))
		}
	}
	return high
}

// judge says whether it fits. A program that caught its errors and went on to its end fits, with
// what it changed; one that failed without lack of memory has no verdict.
func (in *Input) judge(v *report.Imagined) {
	code, ended := int64(0), in.Run.End != nil
	switch {
	case ended && in.Run.End.Reason == "stopped" && in.Run.End.Signal.Known(): // by us: nobody in it listened
		v.StoppedFor = cmp.Or(v.StoppedFor, report.StoppedForDuration)
	case ended:
		code = in.Run.End.ExitCode.Or(255)
	}
	oom := in.deviceOOM(v)
	switch {
	case v.Broken != "" && !v.Used.Known():
		v.Verdict = report.VerdictFailed
	case ended && code == 0 && !v.Used.Known():
		v.Verdict = report.VerdictUnused
		switch {
		case v.StoppedFor == report.StoppedForDuration:
			v.How = "was stopped by --duration before it touched a GPU"
		case !in.usedTorch():
			v.How = "imported no PyTorch, so it touched no GPU"
		}
	case ended && code == 0 && v.Headroom.Or(0) < int64(v.Tight):
		v.Verdict = report.VerdictTight
	case ended && code == 0:
		v.Verdict = report.VerdictFits
	case oom:
		v.Verdict = report.VerdictOOM
		v.Headroom = mem.Optional{}
	default:
		v.Verdict, v.How = report.VerdictFailed, in.failure()
		v.Headroom = mem.Optional{}
	}
}

// deviceOOM says whether a device ran out, and notes the first step that failed.
func (in *Input) deviceOOM(v *report.Imagined) bool {
	found := false
	for _, e := range in.Run.Events {
		switch {
		case e.Kind == "oom" && e.Facts["device"] != "" && e.Facts["device"] != "cpu":
			if step, ok := e.Step.Get(); ok && !v.FailedStep.Known() {
				v.FailedStep = mem.Some(step)
			}
			if e.Bytes.Known() {
				v.Asked = e.Bytes
			}
			found = true
		case e.Kind == "exception":
			text := strings.ToLower(e.Text + " " + e.Facts["class"])
			found = found || strings.Contains(text, "out of memory") || strings.Contains(text, "outofmemory") || strings.Contains(text, "alloc_failed")
		}
	}
	return found
}

// imaginedRanks lists each process that used a device.
func (in *Input) imaginedRanks(v *report.Imagined) {
	for _, e := range in.Run.Events {
		if e.Kind != KindDeviceProcess {
			continue
		}
		var use DeviceProcessFacts
		if json.Unmarshal([]byte(e.Facts["json"]), &use) != nil || use.Used <= 0 {
			continue
		}
		rank := report.RankUse{Process: e.Process, Device: use.Device, Used: mem.Bytes(use.Used), Parts: use.Parts, Played: use.Played}
		if p := in.Run.Process(e.Process); p != nil {
			rank.Rank, rank.World = p.Rank, p.WorldSize
		}
		rank.Allocated, rank.Reserved = in.peakOf(e.Process, use.Index)
		v.Ranks = append(v.Ranks, rank)
	}
	slices.SortStableFunc(v.Ranks, func(a, b report.RankUse) int {
		return cmp.Or(cmp.Compare(a.Rank.Or(-1), b.Rank.Or(-1)), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Device, b.Device))
	})
}

// peakOf is the allocator's high-water mark of a process on a device: what it said itself, else the
// highest sample.
func (in *Input) peakOf(process uint32, index int) (allocated, reserved mem.Optional) {
	device := "cuda:" + itoa(int64(index))
	for _, s := range in.Run.Series {
		if s.Process == process && s.Device == device && len(s.Values) > 0 {
			switch s.Name {
			case mem.SeriesAllocated:
				allocated.Raise(mem.Some(s.Values[s.Peak()]))
			case mem.SeriesReserved:
				reserved.Raise(mem.Some(s.Values[s.Peak()]))
			}
		}
	}
	for _, e := range in.Run.Events {
		if e.Kind == KindImaginedPeak && e.Process == process && e.Facts["device"] == device {
			allocated.Raise(fact(e, "allocated_bytes"))
			reserved.Raise(fact(e, "reserved_bytes"))
		}
	}
	return allocated, reserved
}

// fact is a number among an event's facts.
func fact(e mem.Event, key string) mem.Optional {
	n, err := strconv.ParseInt(e.Facts[key], 10, 64)
	if err != nil {
		return mem.Optional{}
	}
	return mem.Some(n)
}
