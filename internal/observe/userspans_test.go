package observe

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// stay is an edge of a span that the program named.
func stay(at int64, number, name uint16, leaves bool, rss int64) *shm.Edge {
	return &shm.Edge{Time: shm.Time(at), Phase: mem.PhaseUser, Leave: leaves, Module: name, Stay: number, Thread: 1,
		RSS: mem.Some(rss)}
}

// TestUserSpansOverlap: tasks of one thread, of one name, that end in the order in which they began, around and
// inside phases.
func TestUserSpansOverlap(t *testing.T) {
	b := newOpenSpans(1)
	b.user.names[1], b.user.names[2] = "task", "other"
	b.edge(stay(100, 1, 1, false, 10))
	b.edge(enter(110, mem.PhaseForward, 0, 10))
	b.edge(stay(120, 2, 1, false, 20))
	b.edge(stay(130, 3, 2, false, 20))
	b.sample(140, 90)
	b.edge(stay(150, 1, 1, true, 30))
	b.edge(leave(160, mem.PhaseForward, 0, 10))
	b.edge(stay(500, 2, 1, true, 40))
	b.edge(stay(510, 3, 1, true, 40)) // of another name: not that span's end
	b.edge(stay(520, 9, 1, true, 40)) // entered before we looked
	spans, stats := b.takeChanges()
	if len(spans) != 3 || spans[0].Start != 100 || spans[0].End != 150 || spans[2].Start != 120 || spans[2].End != 500 {
		t.Fatalf("spans %+v", spans)
	}
	if spans[0].RSSPeak.Or(0) != 90 || spans[1].Phase != mem.PhaseForward || spans[1].RSSPeak.Or(0) != 90 {
		t.Errorf("peaks %+v", spans)
	}
	if got := stats[0]; got.Name != "task" || got.Count != 2 || got.Total != 430 || got.Max != 380 ||
		got.RSSNet.Or(0) != 40 {
		t.Errorf("sums %+v", stats)
	}
	if b.phase() != mem.PhaseNone {
		t.Errorf("in phase %q after all phases", b.phase())
	}
}

// TestUserSpansOnlyCounted add to the sums of those that were told of one by one.
func TestUserSpansOnlyCounted(t *testing.T) {
	b := newOpenSpans(1)
	b.user.names[1] = "tight"
	b.edge(stay(100, 1, 1, false, 10))
	b.edge(stay(300, 1, 1, true, 15))
	b.counted([]spanMessage{{ID: 1, Count: 1000, Total: 5000, Max: 70}})
	_, stats := b.takeChanges()
	if len(stats) != 1 || stats[0].Count != 1001 || stats[0].Total != 5200 || stats[0].Max != 200 ||
		stats[0].RSSNet.Or(0) != 5 {
		t.Errorf("sums %+v", stats)
	}
}

// TestUserSpansLeftOpen are closed at the end of their process, counted, and told of.
func TestUserSpansLeftOpen(t *testing.T) {
	r, run := alerting(t)
	p := r.process(procKey{10, 1})
	p.spans.user.names[1], p.spans.user.names[2] = "serve", "train"
	p.spans.edge(stay(100, 1, 1, false, 10))
	p.spans.edge(stay(100, 2, 1, false, 10))
	p.spans.edge(stay(200, 3, 2, false, 10))
	r.spansLeft(p, 900)
	spans, stats := p.spans.takeChanges()
	if len(spans) != 3 || spans[2].End != 900 || spans[2].RSSEnd.Known() || len(stats) != 2 || stats[0].Count != 2 {
		t.Errorf("spans %+v, sums %+v", spans, stats)
	}
	if len(run.Events) != 1 || !strings.HasSuffix(run.Events[0].Text, `"serve" (2 times), "train"`) {
		t.Errorf("events %+v", run.Events)
	}
}

// TestUserSpansStayFew: of a million of one name an even selection is kept, of a rare one all.
func TestUserSpansStayFew(t *testing.T) {
	b := newOpenSpans(1)
	b.user.names[1], b.user.names[2] = "often", "rare"
	kept := map[string]int{}
	const n = 1_000_000
	for i := range int64(n) {
		b.edge(stay(i*1_000_000, 1, 1, false, 1))
		b.edge(stay(i*1_000_000+900_000, 1, 1, true, 1))
		if i%10_000 == 0 {
			b.edge(stay(i*1_000_000, 2, 2, false, 1))
			b.edge(stay(i*1_000_000+1, 2, 2, true, 1))
			spans, _ := b.takeChanges()
			for _, s := range spans {
				kept[s.Name]++
			}
		}
	}
	if kept["rare"] != n/10_000 || kept["often"] < 2000 || kept["often"] > 10_000 {
		t.Errorf("kept %v", kept)
	}
}

// TestNamedByItself: a program names its run and tags it, where the command line did not.
func TestNamedByItself(t *testing.T) {
	run, r := told(t, `{"type":"run","name":" mine\u001b ","tags":{"model":"bert","by":"program"}}`)
	if run.Info.Name != "mine" || run.Info.Tags["model"] != "bert" {
		t.Errorf("run %+v", run.Info)
	}
	r.named("other", map[string]string{"model": "gpt", "more": "1"})
	if run.Info.Name != "mine" || run.Info.Tags["model"] != "bert" || run.Info.Tags["more"] != "1" {
		t.Errorf("run %+v: what was given first stands", run.Info)
	}
	r.named("last", nil)
}

// TestHeapWithinASpan: what a span took and gave back between two visits of the engine is written at its highest,
// once for many blocks, and not where no span is open.
func TestHeapWithinASpan(t *testing.T) {
	r, run := alerting(t)
	p := r.process(procKey{10, 1})
	p.heap = newLiveHeap(p.ID)
	p.spans.user.names[1] = "encode"
	c := &channel{}
	const size = 8 << 20
	highest := func() (most mem.Bytes, uses int) {
		r.flush(false)
		if run.Heap[p.ID] == nil {
			return 0, 0
		}
		for _, use := range run.Heap[p.ID].History {
			most, uses = max(most, use.Live), uses+1
		}
		return most, uses
	}
	takeAndFree := func(from int64) {
		for i := range int64(4) {
			p.heap.alloc(&shm.Alloc{Time: shm.Time(from + i), Address: uint64(i+1) << 32, Size: size, Weight: size}, 1)
		}
		for i := range int64(4) {
			r.takeRecord(p, c, &shm.Free{Time: shm.Time(from + 10 + i), Address: uint64(i+1) << 32})
		}
	}
	takeAndFree(100)
	if most, uses := highest(); most != 0 || uses > 1 {
		t.Errorf("without a span %v in %d frames", most, uses)
	}
	r.takeRecord(p, c, stay(200, 1, 1, false, 10))
	takeAndFree(300)
	r.takeRecord(p, c, stay(400, 1, 1, true, 10))
	if most, uses := highest(); most != 4*size || uses > 5 {
		t.Errorf("within a span %v in %d frames", most, uses)
	}
}
