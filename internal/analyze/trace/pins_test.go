package trace

import (
	"strconv"
	"strings"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func TestPinsAreTheBlocksOfMostlyEmptySegments(t *testing.T) {
	s := &mem.AllocatorSnapshot{}
	segment := func(address uint64, expandable bool, sizes ...mem.Bytes) { // in use, cached, in use, …
		of := mem.Segment{Address: address, Expandable: expandable}
		for i, size := range sizes {
			block := mem.Block{Address: address + uint64(of.Size), Size: size}
			if i%2 == 0 {
				block.State = mem.BlockAllocated
			}
			of.Blocks = append(of.Blocks, block)
			of.Size += size
		}
		s.Segments = append(s.Segments, of)
	}
	segment(1<<30, false, mem.MiB, 19*mem.MiB)                       // pinned
	segment(2<<30, false, mem.MiB, 5*mem.MiB, 2*mem.MiB, 12*mem.MiB) // pinned, by the larger
	segment(3<<30, false, 10*mem.MiB, 10*mem.MiB)                    // half in use
	segment(4<<30, true, mem.MiB, 19*mem.MiB)                        // gives back its pages
	segment(5<<30, false, 0, 20*mem.MiB)                             // empty: empty_cache returns it
	a, err := OfDevice(s, 0, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := a.Pins
	if len(got) != 1 || got[0].Blocks != 2 || got[0].Bytes != 3*mem.MiB || got[0].Pinned != 36*mem.MiB {
		t.Errorf("%+v", got)
	}
}

var torch29 = mem.Version{Major: 2, Minor: 9}

// TestFragmentationIsOfTheMomentExplained: expandable segments give back what lies free between their blocks, so less
// of it is stuck. What is stuck is told of the moment that is explained, not of the end.
func TestFragmentationIsOfTheMomentExplained(t *testing.T) {
	record := func(settings allocator.Settings, free bool) *mem.AllocatorSnapshot {
		trace := mem.Trace{}
		n := allocator.NewNative(settings, allocator.RulesOf(torch29), 0, &allocator.Device{})
		n.Observe = func(e allocator.Event) {
			trace.Action, trace.Address, trace.Size = append(trace.Action, e.Action), append(trace.Address, e.Address),
				append(trace.Size, e.Size)
			trace.Stream, trace.Stack = append(trace.Stream, e.Stream), append(trace.Stack, 0)
		}
		var all []allocator.Handle
		for range 20 {
			all = append(all, n.Malloc(allocator.Request{Size: 60 * mem.MiB}))
		}
		for _, h := range all {
			n.Free(h)
		}
		all = all[:0]
		for range 20 { // in each segment that is free by now a piece, of which half goes again
			all = append(all, n.Malloc(allocator.Request{Size: 15 * mem.MiB}), n.Malloc(allocator.Request{Size: 41 * mem.MiB}))
		}
		for i := 1; i < len(all); i += 2 {
			n.Free(all[i])
		}
		for i := 0; free && i < len(all); i += 2 {
			n.Free(all[i])
		}
		return &mem.AllocatorSnapshot{Segments: n.State(), Traces: []mem.Trace{trace}, Versions: mem.Versions{First: torch29, Last: torch29},
			Settings: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": settings.String()}}
	}
	last := record(allocator.Settings{}, false).Traces[0].Len() - 1
	for name, c := range map[string]struct {
		settings  allocator.Settings
		free      bool
		at, title string
	}{
		"segments": {allocator.Settings{}, false, "end", "are cached beside blocks in use, at the end"},
		"empty at the end": {allocator.Settings{}, true, "event " + strconv.Itoa(last),
			"are cached beside blocks in use, after event"},
		"empty, and explained": {allocator.Settings{}, true, "end", ""},
		// of 900 that lie between blocks: the rest are whole pages
		"expandable": {allocator.Settings{Expandable: true}, false, "end",
			"340 MiB of device 0 are cached beside blocks in use"},
		// the last two pages are free,
		"pages of 64 MiB": {allocator.Settings{Expandable: true, LargeSegment: 64 * mem.MiB}, false, "end",
			"788 MiB of device 0 are cached beside blocks in use"},
		"nothing is stuck there": {allocator.Settings{}, false, "peak", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, record(c.settings, c.free), "made.pickle", Options{At: c.at})
			title := ""
			for _, f := range r.Findings {
				if f.Kind == report.KindFragmentation {
					title = f.Title + " " + f.Text
				}
			}
			if !strings.Contains(title, c.title) || c.title == "" && title != "" {
				t.Errorf("said %q", title)
			}
		})
	}
}
