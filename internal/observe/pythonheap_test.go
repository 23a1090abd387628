package observe

import (
	"testing"

	"hightide/internal/mem"
)

// TestTracedHeap: each look is the whole picture of what Python holds, to the byte.
func TestTracedHeap(t *testing.T) {
	run, _ := told(t,
		`{"type":"hello","pid":100,"argv":["train.py"],"python":"3.11.7"}`,
		`{"type":"python_heap","files":["/a/train.py","/a/lib.py"],"sites":[[1000000,3,1,7,0,12],[500000,1,0,20]],`+
			`"rest":[1000,9],"peak_bytes":1600000,"own_bytes":777,"looks_ns":50,"longest_ns":50}`,
		`{"type":"python_heap","files":["/a/train.py"],"sites":[[400000,1,0,20]],"rest":[0,0],"peak_bytes":1600000,`+
			`"own_bytes":700,"looks_ns":70,"longest_ns":50}`,
		`{"type":"python_heap","files":["/a/train.py"],"sites":[[400000,1,1,20]],"rest":[0,0]}`, // no such file
		`{"type":"python_heap","files":["/a/train.py"],"sites":[[-1,1,0,20]],"rest":[0,0]}`,
		`{"type":"python_heap","files":["/a/train.py"],"sites":[[5,1,0]],"rest":[0,0]}`,
		`{"type":"python_heap","files":[],"sites":[],"rest":[0,-7]}`,
	)
	p := run.Processes[0]
	if !p.HeapTraced() || p.Numbers[mem.NumberTracedPeak] != 1600000 || p.Numbers[mem.NumberTracedOwn] != 777 ||
		p.Numbers[mem.NumberTracedLooks] != 70 {
		t.Errorf("facts %v, numbers %v", p.Facts, p.Numbers)
	}
	if len(run.Drops) != 1 || run.Drops[0].Records != 4 {
		t.Errorf("drops %+v: want the four that are no look", run.Drops)
	}
	heap := run.Heap[p.ID]
	var live []mem.Bytes
	for _, at := range heap.History {
		if live = append(live, at.Live); at.Variance != 0 {
			t.Errorf("%+v: what was counted has no error", at)
		}
	}
	if len(live) < 3 || live[0] != 0 || live[1] != 1501000 || live[2] != 400000 {
		t.Errorf("looks %v", live)
	}
	if heap.Peak == nil || heap.Peak.Live != 1501000 || len(heap.Peak.Sites) != 3 {
		t.Fatalf("peak %+v", heap.Peak)
	}
	most := heap.Peak.Sites[0]
	if frames := run.Stacks.Frames(most.Stack); most.Live != 1000000 || most.Count != 3 || len(frames) != 2 ||
		frames[0] != (mem.Location{File: "/a/lib.py", Line: 7}) || frames[1].Line != 12 {
		t.Errorf("%+v at %+v", most, frames)
	}
	if points := heap.Sites[most.Stack]; points[len(points)-1].Live != 0 {
		t.Errorf("%+v: it was freed", points)
	}
	if len(heap.Ages) != 0 {
		t.Error("ages: when a block was allocated is not known")
	}
	if s := run.Find(p.ID, mem.SeriesHeapLive); s == nil || len(s.Values) != 2 || s.Label != mem.Measured {
		t.Errorf("series %+v", s)
	}
}

// TestTracedBesideSampled: where the heap sampler is loaded, its figures stand.
func TestTracedBesideSampled(t *testing.T) {
	_, r := told(t)
	p := r.order[0]
	p.heap = newLiveHeap(p.ID)
	r.tracedHeap(p, []byte(`{"files":["a.py"],"sites":[[10,1,0,1]],"rest":[0,0]}`), 60)
	if p.heap.traced || p.heap.live != 0 || p.facts[mem.FactHeap] != "" {
		t.Errorf("heap of %v, facts %v", p.heap.live, p.facts)
	}
}
