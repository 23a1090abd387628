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

// Kinds of the events that the engine adds to an imagined recording after the run; their fact "json"
// holds the type named.
const (
	KindImaginedPeak   = "imagine.peak"      // the agent's: see docs/formats/imagined.md
	KindImaginedDevice = "imagine.device"    // ImaginedDevice
	KindDeviceProcess  = "imagine.process"   // DeviceProcessFacts
	KindImaginedCall   = "imagine.call"      // CallFacts
	KindImaginedTry    = "imagine.try"       // Try
	KindImaginedVary   = "imagine.variation" // Try
	KindImaginedGPU    = "imagine.gpu"       // GPUVerdict
	KindImaginedRead   = "imagine.read"      // ReadBack, as the device saw it
	KindImaginedBroken = "imagine.broken"    // the books cannot be read: the text says why
)

// DeviceProcessFacts is what the books say of a process on a device.
type DeviceProcessFacts struct {
	Device string           `json:"device"` // "nvidia:0", of a played rank "rank 127 nvidia:7"
	Index  int              `json:"index"`
	Used   int64            `json:"peak_used_bytes"`
	Parts  map[string]int64 `json:"parts_bytes"` // at its peak, by shm.DeviceKindNames
	Played bool             `json:"played"`
}

// CallFacts counts calls of a library function that is not modelled.
type CallFacts struct {
	Name    string `json:"name"`
	Count   uint64 `json:"count"`
	Refused bool   `json:"refused"`
}

// EngineEvent wraps what the engine found out into an event.
func EngineEvent(kind string, time int64, process uint32, text string, value any) mem.Event {
	data, err := json.Marshal(value)
	if err != nil {
		data = []byte("{}") // plain values: it cannot fail
	}
	return mem.Event{Kind: kind, Time: time, Process: process, Text: text, Facts: map[string]string{"json": string(data)}}
}

// imaginedEvents takes in what agent, books and engine said. Of records with one key the last stands.
func (in *Input) imaginedEvents(v *report.Imagined) {
	policies, reads, agentReads := newLatest[report.Policy](), newLatest[report.ReadBack](), newLatest[report.ReadBack]()
	missing, fakes, redirected := newLatest[report.Unreached](), newLatest[report.FakeWeights](), newLatest[string]()
	gpus := newLatest[report.GPUVerdict]()
	for _, e := range in.Run.Events {
		where := mem.Location{}
		if e.Where != nil {
			where = *e.Where
		}
		process := itoa(int64(e.Process))
		at := process + " " + where.File + ":" + strconv.Itoa(where.Line)
		switch e.Kind {
		case "imagine.policy":
			policies.put(at+e.Facts["op"], report.Policy{Op: e.Facts["op"], Policy: e.Facts["policy"], File: where.File, Line: where.Line, Count: fact(e, "count").Or(1), Elements: fact(e, "elements").Or(0)})
		case "imagine.readback":
			agentReads.put(at, report.ReadBack{File: where.File, Line: where.Line, Function: where.Function, Count: fact(e, "count").Or(1), Bytes: mem.Bytes(fact(e, "bytes").Or(0))})
		case "imagine.not_reached":
			missing.put(e.Facts["what"], report.Unreached{What: e.Facts["what"], Text: e.Text, File: where.File, Line: where.Line})
		case "imagine.fake":
			fakes.put(e.Facts["what"]+e.Facts["name"], report.FakeWeights{What: e.Facts["what"], Name: e.Facts["name"], Bytes: mem.Bytes(fact(e, "bytes").Or(0))})
		case "imagine.redirected":
			redirected.put(e.Facts["path"], e.Facts["path"])
		case "imagine.condition":
			v.Conditions[e.Facts["name"]] = e.Facts["value"]
		case "imagine.switch":
			v.Conditions["switch "+e.Facts["name"]] = strings.TrimSpace(map[string]string{"true": "applied"}[e.Facts["applied"]] + " " + e.Text)
		case "imagine.categories":
			in.categories(v, e)
		case "stop":
			v.StoppedFor = e.Text
		case KindImaginedBroken:
			v.Broken = e.Text
		case KindImaginedRead:
			var read report.ReadBack
			if json.Unmarshal([]byte(e.Facts["json"]), &read) == nil {
				reads.put(process+" "+read.File+":"+strconv.Itoa(read.Line), read)
			}
		case KindImaginedDevice:
			var device report.ImaginedDevice
			if json.Unmarshal([]byte(e.Facts["json"]), &device) == nil && device.Total > 0 {
				v.Devices = append(v.Devices, device)
			}
		case KindImaginedCall:
			var call CallFacts
			if json.Unmarshal([]byte(e.Facts["json"]), &call) == nil {
				v.Calls[call.Name] += call.Count
				if call.Refused && !slices.Contains(v.Refused, call.Name) {
					v.Refused = append(v.Refused, call.Name)
				}
			}
		case KindImaginedTry, KindImaginedVary:
			var try report.Try
			if json.Unmarshal([]byte(e.Facts["json"]), &try) == nil {
				if e.Kind == KindImaginedTry {
					v.Tries = append(v.Tries, try)
				} else {
					v.Variations = append(v.Variations, try)
				}
			}
		case KindImaginedGPU:
			var gpu report.GPUVerdict
			if json.Unmarshal([]byte(e.Facts["json"]), &gpu) == nil {
				gpus.put(gpu.GPU, gpu)
			}
		}
	}
	v.Policies, v.NotReached, v.FakeWeights, v.Redirected = mergePolicies(policies.all()), missing.all(), fakes.all(), redirected.all()
	v.All = gpus.all()
	v.ReadBacks = mergeReads(reads.all())
	if len(v.ReadBacks) == 0 {
		v.ReadBacks = mergeReads(agentReads.all())
	}
	for _, read := range v.ReadBacks {
		v.ReadBack += read.Bytes
	}
	in.frameworkConditions(v)
}

// frameworkConditions are those that the process itself told.
func (in *Input) frameworkConditions(v *report.Imagined) {
	for _, p := range in.Run.Processes {
		for name, version := range p.Frameworks {
			if version != "" {
				v.Conditions[name] = version
			}
		}
		if p.Python != "" {
			v.Conditions["python"] = p.Python
		}
		for key, name := range map[string]string{"torch.cuda": "CUDA of torch", "amp": "amp", "executable": "interpreter"} {
			if value := p.Facts[key]; value != "" && (key != "executable" || p.Frameworks["torch"] != "") {
				v.Conditions[name] = value
			}
		}
	}
	for key, name := range map[string]string{"alloc_conf": "allocator setting", "sizes": "data-dependent sizes", "read_value": "values read back"} {
		if value := in.Run.Info.Options[key]; value != "" {
			v.Conditions[name] = value
		}
	}
}

// categoryNames in the order people read them.
var categoryNames = []string{"parameters", "gradients", "optimizer", "buffers", "inputs", "activations", "temporaries", "workspaces", "other"}

// categories of the process and device that had most allocated.
func (in *Input) categories(v *report.Imagined, e mem.Event) {
	var sum, most mem.Bytes
	for _, c := range v.Categories {
		most += c.Bytes
	}
	var all []report.Category
	for _, name := range categoryNames {
		if bytes, ok := fact(e, name).Get(); ok {
			all = append(all, report.Category{Name: name, Bytes: mem.Bytes(bytes)})
			sum += mem.Bytes(bytes)
		}
	}
	if sum < most {
		return
	}
	v.Categories, v.ByStack = all, mem.Bytes(fact(e, "by_stack_bytes").Or(0))
	v.CategoryBasis = strings.TrimSpace(e.Facts["device"])
	if p := in.Run.Process(e.Process); p != nil && p.Rank.Known() {
		v.CategoryBasis = in.processName(e.Process) + " " + v.CategoryBasis
	}
}

// mergePolicies adds up those of several processes at one line.
func mergePolicies(all []report.Policy) []report.Policy {
	var merged []report.Policy
	for _, p := range all {
		i := slices.IndexFunc(merged, func(m report.Policy) bool { return m.Op == p.Op && m.File == p.File && m.Line == p.Line })
		if i < 0 {
			merged = append(merged, p)
			continue
		}
		merged[i].Count += p.Count
		merged[i].Elements = max(merged[i].Elements, p.Elements)
	}
	slices.SortStableFunc(merged, func(a, b report.Policy) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return merged
}

func mergeReads(all []report.ReadBack) []report.ReadBack {
	var merged []report.ReadBack
	for _, r := range all {
		i := slices.IndexFunc(merged, func(m report.ReadBack) bool { return m.File == r.File && m.Line == r.Line })
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		merged[i].Count += r.Count
		merged[i].Bytes += r.Bytes
	}
	slices.SortStableFunc(merged, func(a, b report.ReadBack) int { return cmp.Compare(b.Count, a.Count) })
	return merged
}

// latest keeps the last value of each key, in the order of first sight.
type latest[T any] struct {
	index map[string]int
	list  []T
}

func newLatest[T any]() *latest[T] { return &latest[T]{index: map[string]int{}} }

func (l *latest[T]) put(key string, value T) {
	if i, ok := l.index[key]; ok {
		l.list[i] = value
		return
	}
	l.index[key] = len(l.list)
	l.list = append(l.list, value)
}

func (l *latest[T]) all() []T { return l.list }
