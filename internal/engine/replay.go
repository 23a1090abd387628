package engine

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"hightide/internal/allocator"
	"hightide/internal/analyze"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// ReplayOptions of Replay. The zero value replays the fullest device under the default settings.
type ReplayOptions struct {
	Device    int    // -1: the one with the longest history
	AllocConf string // as PYTORCH_ALLOC_CONF
	GPU       string // whose memory is the limit
	Catalogue []string
	Memory    string // that limit in bytes instead
	Torch     string // version that the allocator follows, "2.6"; "": what the file tells
	Verify    bool   // hold every address against the record
	Search    bool   // try many settings
}

// ReplayResult is what `replay --json` prints; docs/formats/json.md documents it.
type ReplayResult struct {
	Version  int             `json:"version"`
	Label    mem.Label       `json:"label"`
	File     string          `json:"file"`
	Device   int             `json:"device"`
	Torch    string          `json:"torch"`
	Capacity mem.Bytes       `json:"capacity_bytes,omitempty"`
	Verified *ReplayVerified `json:"verified,omitempty"`
	Recorded ReplayFigures   `json:"recorded"`
	ReplayFigures
	Spread [2]mem.Bytes    `json:"peak_reserved_spread_bytes"` // ascending and descending addresses
	Search []ReplayFigures `json:"search,omitempty"`           // best first
	Notes  []string        `json:"notes"`
}

// ReplayVerified counts what landed where the record has it.
type ReplayVerified struct {
	Addresses      int `json:"addresses_total"`
	AddressesExact int `json:"addresses_exact"`
	Segments       int `json:"segments_total"`
	SegmentsExact  int `json:"segments_exact"`
}

// Exact says that nothing differs.
func (v *ReplayVerified) Exact() bool {
	return v.AddressesExact == v.Addresses && v.SegmentsExact == v.Segments
}

// ReplayFigures are the peaks under one setting.
type ReplayFigures struct {
	AllocConf    string    `json:"alloc_conf"`
	Reserved     mem.Bytes `json:"peak_reserved_bytes"`
	Allocated    mem.Bytes `json:"peak_allocated_bytes"`
	SegmentCalls int64     `json:"segment_calls"`
	OOM          *int      `json:"oom"` // the event that found no memory; null: none
	OOMBytes     mem.Bytes `json:"oom_bytes,omitempty"`
}

func figures(conf string, o allocator.Outcome) ReplayFigures {
	f := ReplayFigures{AllocConf: conf, Reserved: o.PeakReserved, Allocated: o.PeakAllocated, SegmentCalls: o.DeviceAllocs + o.DeviceFrees}
	if o.OOM >= 0 {
		f.OOM, f.OOMBytes = &o.OOM, o.OOMSize
	}
	return f
}

// Replay runs a recorded trace of allocations again under other settings or on a smaller device.
func (e *Engine) Replay(ref string, o ReplayOptions, stdin io.Reader) (*ReplayResult, error) {
	named, _, err := e.snapshotsOf(ref, stdin)
	if err != nil {
		return nil, err
	}
	if len(named) == 0 {
		return nil, InputError("hightide run --snapshot-on exit records one", "%s holds no allocator snapshot", ref)
	}
	s := named[len(named)-1].snapshot
	if o.Device < 0 {
		o.Device = longestTrace(s)
	}
	result := &ReplayResult{Version: 1, Label: mem.Replayed, File: ref, Device: o.Device, Notes: []string{}}
	if result.Capacity, err = o.capacity(); err != nil {
		return nil, err
	}
	major, minor := o.torch(s)
	result.Torch = fmt.Sprintf("%d.%d", major, minor)
	rules := allocator.RulesOf(major, minor)
	settings, err := rules.Parse(o.AllocConf)
	if err != nil {
		return nil, UsageError("as in --alloc-conf expandable_segments:True,max_split_size_mb:128", "%w", err)
	}
	r, err := allocator.NewReplay(s, o.Device)
	if err != nil {
		return nil, InputError("record with torch.cuda.memory._record_memory_history, and without expandable segments", "%s cannot be replayed: %w", ref, err)
	}
	recorded := r.Verify(allocator.Settings{}, rules)
	result.Recorded = figures("", recorded)
	v := &ReplayVerified{recorded.Addresses, recorded.AddressesExact, recorded.Segments, recorded.SegmentsExact}
	result.Verified = v
	if !v.Exact() && !o.Verify {
		result.Notes = append(result.Notes, fmt.Sprintf("%d of %d addresses are as recorded: it was recorded under other settings or another version, so what follows is an estimate.", v.AddressesExact, v.Addresses))
		result.Label = mem.Estimated
	}
	if rules.OldestFirst {
		result.Notes = append(result.Notes, "From torch 2.11 on, blocks of one size go by the age of their segments, which a trace that begins midway does not hold.")
	}
	up, down := r.Run(settings, rules, result.Capacity, false), r.Run(settings, rules, result.Capacity, true)
	result.ReplayFigures = figures(o.AllocConf, up)
	result.Spread = [2]mem.Bytes{up.PeakReserved, down.PeakReserved}
	if o.Search {
		result.Search = searchSettings(r, rules, result.Capacity)
	}
	return result, nil
}

func longestTrace(s *mem.AllocatorSnapshot) int {
	device, most := 0, -1
	for i := range s.Traces {
		if n := s.Traces[i].Len(); n > most {
			device, most = s.Traces[i].Device, n
		}
	}
	return device
}

// capacity is what the allocator may take: the GPU's memory less a process's context.
func (o *ReplayOptions) capacity() (mem.Bytes, error) {
	switch {
	case o.GPU != "" && o.Memory != "":
		return 0, UsageError("one of them", "both --gpu and --memory")
	case o.Memory != "":
		bytes, err := gpus.ParseSize(o.Memory)
		if err != nil || bytes <= 0 {
			return 0, UsageError("as in --memory 24GiB", "--memory %s is no size", o.Memory)
		}
		return bytes, nil
	case o.GPU == "":
		return 0, nil
	}
	c, err := Catalogue(o.Catalogue...)
	if err != nil {
		return 0, err
	}
	g, err := FindGPU(c, o.GPU)
	if err != nil {
		return 0, err
	}
	return g.Total - g.Overhead, nil
}

// torch is the version to follow: the one given, else the first that the file's fields allow, else 2.10,
// the last before ties went by age.
func (o *ReplayOptions) torch(s *mem.AllocatorSnapshot) (major, minor int) {
	for _, text := range []string{o.Torch, s.Versions} {
		if n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); n == 2 {
			return major, minor
		}
	}
	return 2, 10
}

// searchSettings tries a grid of settings on all cores and gives them best first: those that run to
// the end by what they reserve, then by calls of the driver.
func searchSettings(r *allocator.Replay, rules allocator.Rules, capacity mem.Bytes) []ReplayFigures {
	confs := settingsGrid()
	found := make([]ReplayFigures, len(confs))
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, conf := range confs {
		settings, err := rules.Parse(conf)
		if err != nil {
			continue // a setting that this version has not
		}
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }()
			found[i] = figures(conf, r.Run(settings, rules, capacity, false))
		}()
	}
	group.Wait()
	found = slices.DeleteFunc(found, func(f ReplayFigures) bool { return f.SegmentCalls == 0 })
	slices.SortStableFunc(found, func(a, b ReplayFigures) int {
		if (a.OOM == nil) != (b.OOM == nil) {
			if a.OOM == nil {
				return -1
			}
			return 1
		}
		if a.Reserved != b.Reserved {
			return int(a.Reserved>>10 - b.Reserved>>10)
		}
		return int(a.SegmentCalls - b.SegmentCalls)
	})
	return found
}

func settingsGrid() []string {
	confs := []string{""}
	for _, expandable := range []string{"", "expandable_segments:True"} {
		for _, split := range []string{"", "max_split_size_mb:32", "max_split_size_mb:64", "max_split_size_mb:128", "max_split_size_mb:256", "max_split_size_mb:512", "max_split_size_mb:1024"} {
			for _, round := range []string{"", "roundup_power2_divisions:1", "roundup_power2_divisions:2", "roundup_power2_divisions:4", "roundup_power2_divisions:8"} {
				conf := strings.Join(slices.DeleteFunc([]string{expandable, split, round}, func(s string) bool { return s == "" }), ",")
				if conf != "" {
					confs = append(confs, conf)
				}
			}
		}
	}
	return confs
}

// ErrNotExact says that a verification found differences.
var ErrNotExact = errors.New("the replay differs from the record")

// Table compares the record with the replay, or lists the best of a search.
func (r *ReplayResult) Table() *analyze.Table {
	bytes := func(name, title string) analyze.Column {
		return analyze.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &analyze.Table{Name: "replay", Title: "The same requests under other settings",
		Columns: []analyze.Column{{Name: "settings", Title: "Settings"}, bytes("reserved", "Peak reserved"), bytes("allocated", "Peak allocated"),
			bytes("waste", "Beside it"), {Name: "calls", Title: "Segment calls", Unit: mem.UnitCount, Label: r.Label}, {Name: "end", Title: "End"}}}
	row := func(name string, f ReplayFigures) {
		end := "runs to the end"
		if f.OOM != nil {
			end = fmt.Sprintf("out of memory at event %d, %v asked for", *f.OOM, f.OOMBytes)
		}
		t.Rows = append(t.Rows, []analyze.Cell{name, int64(f.Reserved), int64(f.Allocated), int64(f.Reserved - f.Allocated), f.SegmentCalls, end})
	}
	row("as recorded", r.Recorded)
	name := r.AllocConf
	if name == "" {
		name = "default"
	}
	if r.Capacity > 0 {
		name += fmt.Sprintf(" on %v", r.Capacity)
	}
	row(name, r.ReplayFigures)
	for _, f := range r.Search[:min(len(r.Search), 8)] {
		if f.AllocConf == "" {
			f.AllocConf = "default"
		}
		row(f.AllocConf, f)
	}
	return t
}
