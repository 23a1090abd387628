package analyze

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Imagined is the verdict on a run on imaginary GPUs. Its JSON form is documented in
// docs/formats/json.md.
//
//	events of the agent and the books (imagineevents.go) ──▶ Imagined ──▶ verdict, tables (imaginetext.go)
type Imagined struct {
	GPUVerdict
	GPUs          int               `json:"gpu_count"`
	PeakPhase     mem.Phase         `json:"peak_phase,omitempty"`
	PeakStep      mem.Optional      `json:"peak_step,omitzero"` // completed before it
	Tight         mem.Bytes         `json:"tight_below_bytes"`
	FailedStep    mem.Optional      `json:"first_failed_step,omitzero"`
	Broken        string            `json:"problem,omitempty"`    // why there is no verdict, where that is not the program's own doing
	How           string            `json:"failure,omitempty"`    // verdicts failed and unused: how it ended
	Asked         mem.Optional      `json:"asked_bytes,omitzero"` // by the request that failed last
	StoppedFor    string            `json:"stopped,omitempty"`    // steady, steps, duration: ended before the program would
	Categories    []Category        `json:"categories,omitempty"`
	CategoryBasis string            `json:"categories_device,omitempty"`
	ByStack       mem.Bytes         `json:"categories_by_stack_bytes,omitempty"` // of Categories: told by no more than the stack
	Lines         []HeldLine        `json:"peak_lines,omitempty"`
	Devices       []ImaginedDevice  `json:"devices,omitempty"`
	Ranks         []RankUse         `json:"ranks,omitempty"`
	ReadBack      mem.Bytes         `json:"read_back_bytes_unmodelled"`
	ReadBacks     []ReadBack        `json:"read_backs,omitempty"`
	Calls         map[string]uint64 `json:"unmodelled_calls"`
	Refused       []string          `json:"refused_calls,omitempty"` // of those, the ones that failed by name
	Policies      []Policy          `json:"policies,omitempty"`
	NotReached    []Unreached       `json:"not_reached,omitempty"`
	FakeWeights   []FakeWeights     `json:"fake_weights,omitempty"`
	Redirected    []string          `json:"redirected_writes,omitempty"`
	Conditions    map[string]string `json:"conditions,omitempty"`
	Tries         []Try             `json:"tries,omitempty"`
	Variations    []Try             `json:"variations,omitempty"`
	All           []GPUVerdict      `json:"gpus,omitempty"`
}

// Verdicts.
const (
	VerdictFits   = "fits"
	VerdictTight  = "tight"  // fits, with less room than the figures are sure of
	VerdictOOM    = "oom"    // out of memory
	VerdictFailed = "failed" // the program failed for a reason of its own
	VerdictUnused = "unused" // it touched no GPU
	VerdictNone   = "none"   // what the program or its framework cannot use: a GPU, a kernel
)

// StoppedForDuration: --duration ended a program that came to no step at which it could be asked to end.
const StoppedForDuration = "duration"

// GPUVerdict is whether a program fits on one model of GPU.
type GPUVerdict struct {
	GPU       string       `json:"gpu"`
	GPUName   string       `json:"gpu_name"`
	Compute   string       `json:"compute_capability,omitempty"`
	SMs       int          `json:"multiprocessors,omitempty"`
	Verdict   string       `json:"verdict"`
	Total     mem.Bytes    `json:"total_bytes"`
	Context   mem.Bytes    `json:"context_overhead_bytes"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"` // of the fullest device
	Reserved  mem.Optional `json:"peak_reserved_bytes,omitzero"`
	Used      mem.Optional `json:"peak_device_used_bytes,omitzero"`
	Headroom  mem.Optional `json:"headroom_bytes,omitzero"` // total less used; negative: what lacks, where it is known
	Price     float64      `json:"price_usd_per_hour,omitempty"`
	Label     mem.Label    `json:"label"`
	Note      string       `json:"note,omitempty"`
}

// Fits says whether the program ran.
func (v *GPUVerdict) Fits() bool { return v.Verdict == VerdictFits || v.Verdict == VerdictTight }

// Category is a part of the peak.
type Category struct {
	Name  string    `json:"name"`
	Bytes mem.Bytes `json:"bytes"`
}

// HeldLine is what a line of the program held at the peak.
type HeldLine struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Bytes    mem.Bytes `json:"bytes"`
	Blocks   int64     `json:"blocks"`
}

// ImaginedDevice is one imaginary GPU at the end.
type ImaginedDevice struct {
	Book    string    `json:"book,omitempty"` // of played ranks: whose
	Index   int       `json:"index"`
	GPU     string    `json:"gpu"`
	Total   mem.Bytes `json:"total_bytes"`
	Used    mem.Bytes `json:"peak_used_bytes"`
	Context mem.Bytes `json:"context_overhead_bytes"`
	Failed  uint64    `json:"failed_requests"`
}

// RankUse is the memory of one process on its device.
type RankUse struct {
	Rank      mem.Optional     `json:"rank,omitzero"`
	World     mem.Optional     `json:"world_size,omitzero"`
	Process   uint32           `json:"process"`
	Device    string           `json:"device"`
	Allocated mem.Optional     `json:"peak_allocated_bytes,omitzero"`
	Reserved  mem.Optional     `json:"peak_reserved_bytes,omitzero"`
	Used      mem.Bytes        `json:"peak_used_bytes"` // of the process
	Parts     map[string]int64 `json:"parts_bytes,omitempty"`
	Played    bool             `json:"played,omitempty"` // alone, without the other ranks
}

// ReadBack counts reads by the host of what a kernel would have computed.
type ReadBack struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Count    int64     `json:"count"`
	Bytes    mem.Bytes `json:"bytes"`
}

// Policy is a size that depends on data, and how it was chosen.
type Policy struct {
	Op       string `json:"op"`
	Policy   string `json:"policy"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Count    int64  `json:"count"`
	Elements int64  `json:"elements,omitempty"`
}

// Unreached is what an early stop left out.
type Unreached struct {
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// FakeWeights are weights that were made up.
type FakeWeights struct {
	What  string    `json:"what"`
	Name  string    `json:"name"`
	Bytes mem.Bytes `json:"bytes,omitempty"`
}

// TryMemory is the kind of the try that has all the memory it wants: what the program needs.
const TryMemory = "memory"

// Try is another imagined run of the same program, with one thing changed.
type Try struct {
	Kind    string `json:"kind"` // allocator, gpu, batch, bf16, checkpointing, memory …
	What    string `json:"what"` // for people: "expandable segments"
	Command string `json:"command,omitempty"`
	GPUVerdict
}

// imagined makes the verdict of a run on imaginary GPUs; other runs it leaves alone.
func imagined(in *Input, r *Report) {
	if in.label() != mem.Imagined || in.Run.Info.Verb != "imagine" {
		return
	}
	r.Imagined = in.imagined()
	in.peakLines(r.Imagined)
	in.imaginedTables(r, r.Imagined)
}

// Judge is the verdict alone.
func Judge(run *mem.Run) *Imagined { return newInput(run, Options{}).imagined() }

func (in *Input) imagined() *Imagined {
	v := &Imagined{Calls: map[string]uint64{}, Conditions: map[string]string{}}
	in.imaginedGPU(v)
	in.imaginedEvents(v)
	in.imaginedRanks(v)
	in.imaginedPeak(v)
	in.peakMoment(v)
	in.judge(v)
	return v
}

// imaginedGPU is the GPU as the run was told.
func (in *Input) imaginedGPU(v *Imagined) {
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
func (in *Input) imaginedPeak(v *Imagined) {
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
func (in *Input) peakMoment(v *Imagined) {
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
func (in *Input) judge(v *Imagined) {
	code, ended := int64(0), in.Run.End != nil
	switch {
	case ended && in.Run.End.Reason == "stopped" && in.Run.End.Signal.Known(): // by us: nobody in it listened
		v.StoppedFor = cmp.Or(v.StoppedFor, StoppedForDuration)
	case ended:
		code = in.Run.End.ExitCode.Or(255)
	}
	oom := in.deviceOOM(v)
	switch {
	case v.Broken != "" && !v.Used.Known():
		v.Verdict = VerdictFailed
	case ended && code == 0 && !v.Used.Known():
		v.Verdict = VerdictUnused
		switch {
		case v.StoppedFor == StoppedForDuration:
			v.How = "was stopped by --duration before it touched a GPU"
		case !in.usedTorch():
			v.How = "imported no PyTorch, so it touched no GPU"
		}
	case ended && code == 0 && v.Headroom.Or(0) < int64(v.Tight):
		v.Verdict = VerdictTight
	case ended && code == 0:
		v.Verdict = VerdictFits
	case oom:
		v.Verdict = VerdictOOM
		v.Headroom = mem.Optional{}
	default:
		v.Verdict, v.How = VerdictFailed, in.failure()
		v.Headroom = mem.Optional{}
	}
}

// deviceOOM says whether a device ran out, and notes the first step that failed.
func (in *Input) deviceOOM(v *Imagined) bool {
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
func (in *Input) imaginedRanks(v *Imagined) {
	for _, e := range in.Run.Events {
		if e.Kind != KindDeviceProcess {
			continue
		}
		var use DeviceProcessFacts
		if json.Unmarshal([]byte(e.Facts["json"]), &use) != nil || use.Used <= 0 {
			continue
		}
		rank := RankUse{Process: e.Process, Device: use.Device, Used: mem.Bytes(use.Used), Parts: use.Parts, Played: use.Played}
		if p := in.Run.Process(e.Process); p != nil {
			rank.Rank, rank.World = p.Rank, p.WorldSize
		}
		rank.Allocated, rank.Reserved = in.peakOf(e.Process, use.Index)
		v.Ranks = append(v.Ranks, rank)
	}
	slices.SortStableFunc(v.Ranks, func(a, b RankUse) int {
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
