package mem

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

// TestView: a view stays as it was while frames are added, and may be read meanwhile (by the race detector).
func TestView(t *testing.T) {
	run := NewRun()
	add := func(i int) {
		n := int64(i)
		for _, f := range []Frame{
			Process{ID: uint32(i%3 + 1), PID: i, Facts: map[string]string{"i": fmt.Sprint(i)}},
			SeriesDef{ID: uint32(i%3 + 1), Error: n},
			Samples{Series: 1, Times: []int64{n}, Values: []int64{n}}, Spans{{Start: n}},
			PhaseStats{Phase: PhaseForward, Count: uint64(i)},
			Steps{{Number: uint64(i)}}, StepTotal{Process: 1, Steps: uint64(i)},
			StackDef{ID: uint32(i%5 + 1), Locations: []Location{{File: fmt.Sprint(i)}}},
			HeapUse{Process: 1, Time: n, Sites: []SiteUse{{Stack: 1, Live: Bytes(i)}}},
			HeapUse{Process: 1, Time: n, Peak: true}, HeapAges{Process: 1, Time: n, Peak: true},
			Module{Name: "m", Parameters: Bytes(i)}, Event{Time: n}, Snapshot{Name: "s", Piece: []byte{byte(i)}},
			Drop{Place: "disk", Records: uint64(i)},
			Condition{Process: 1, Name: fmt.Sprint(i % 4)},
		} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(r *Run) string {
		var frames []any
		for _, s := range r.Series {
			frames = append(frames, *s)
		}
		for _, p := range r.Processes {
			frames = append(frames, *p, *r.Process(p.ID))
		}
		for _, s := range r.Snapshots {
			frames = append(frames, *s)
		}
		r.Stacks.Each(func(id uint32, places []Location) bool { frames = append(frames, id, places); return true })
		out, err := json.Marshal(append(frames, collect(r.Spans.All()), r.Phases, r.Steps, r.Totals, r.Heap, r.Modules,
			r.Events, r.Drops, r.Imagined))
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	for i := range 200 {
		add(i)
		if i%20 != 0 {
			continue
		}
		view := run.View()
		before := text(view)
		var reading sync.WaitGroup
		reading.Go(func() { _ = text(view) })
		add(i + 1000)
		reading.Wait()
		if after := text(view); after != before {
			t.Fatalf("after more was added it is\n%s\nand was\n%s", after, before)
		}
	}
}
