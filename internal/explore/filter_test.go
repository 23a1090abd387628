package explore

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

// TestFilter: what blocks are told apart by parts them, whichever it is: each block has one value, and those of all
// values are all.
func TestFilter(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	all := search(t, e, "")
	for _, by := range []By{BySite, ByCategory, ByModule, ByStream, BySize, ByAge} {
		var sum Found
		for _, value := range valuesOf(e, by) {
			f, err := e.Search(Filter{By: by, Value: value})
			if err != nil || f.Blocks == 0 {
				t.Fatalf("%s %q: %d blocks, %v", by, value, f.Blocks, err)
			}
			sum.Blocks, sum.Bytes, sum.AtPeak = sum.Blocks+f.Blocks, sum.Bytes+f.Bytes, sum.AtPeak+f.AtPeak
		}
		if sum.Blocks != all.Blocks || sum.Bytes != all.Bytes || sum.AtPeak != all.AtPeak {
			t.Errorf("by %s: %d blocks of %v, want %d of %v", by, sum.Blocks, sum.Bytes, all.Blocks, all.Bytes)
		}
	}
	both, err := e.Search(Filter{By: ByCategory, Value: "gradients", Pattern: regexp.MustCompile("parameters")})
	if err != nil || both.Blocks != 0 {
		t.Errorf("%d blocks are gradients and parameters, %v", both.Blocks, err)
	}
	site := valuesOf(e, BySite)[0]
	of, _ := e.Search(Filter{By: BySite, Value: site})
	if same, err := e.Search(Filter{Site: site}); err != nil || same.Blocks != of.Blocks {
		t.Errorf("%s has %d blocks, %v, want %d", site, same.Blocks, err, of.Blocks)
	}
	rest := 0
	for _, category := range valuesOf(e, ByCategory) {
		f, err := e.Search(Filter{Site: site, Category: category})
		byAlso, _ := e.Search(Filter{Site: site, By: ByCategory, Value: category})
		if rest += f.Blocks; err != nil || f.Blocks != byAlso.Blocks {
			t.Errorf("%s of %s: %d blocks, %v, want %d", category, site, f.Blocks, err, byAlso.Blocks)
		}
	}
	if rest != of.Blocks {
		t.Errorf("%s has %d blocks of all categories, want %d", site, rest, of.Blocks)
	}
	if before, err := e.Search(Filter{Site: usage.BeforeTrace}); err != nil || before.AtPeak == 0 || len(before.Sites) != 1 || before.Sites[0].Name != usage.NoFrames {
		t.Errorf("before the trace: %+v, %v", before.Sites, err)
	}
	for _, f := range []Filter{{By: "colour"}, {By: BySize, Value: "12"}, {By: BySize, Value: "a-b"},
		{By: ByAge, Value: "1-x"}} {
		if _, err := e.Wants(f); err == nil {
			t.Errorf("%+v is not a filter", f)
		}
	}
}

func valuesOf(e *Explorer, by By) (values []string) {
	switch by {
	case BySize, ByAge:
		return []string{"0-1000", "1000-1048576", "1048576-"}[:map[By]int{BySize: 3, ByAge: 2}[by]]
	}
	seen := map[string]bool{}
	for n := range e.Len() {
		k := e.valueOf(by, n)
		name := map[By]func() string{BySite: func() string { return e.labels.Sites[k].Name },
			ByCategory: func() string { return e.labels.Categories[k] },
			ByModule:   func() string { return e.labels.Modules[k] },
			ByStream:   func() string { return laneName(e.Lanes[k]) }}[by]()
		if !seen[name] {
			seen[name] = true
			values = append(values, name)
		}
	}
	return values
}

// TestMomentBy: parts say of their block what was asked for.
func TestMomentBy(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	for _, by := range []By{"", BySite, ByModule, ByStream, BySize, ByAge} {
		parts := 0
		m, err := e.Moment(e.Peak.Moment+1, 1<<40, by, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Segments {
			for _, p := range s.Parts {
				parts++
				if want := e.valueOf(by, int(p[2])); p[3] != want {
					t.Fatalf("block %d by %q: %d, want %d", p[2], by, p[3], want)
				}
			}
		}
		if parts == 0 {
			t.Errorf("no parts by %q", by)
		}
	}
}

// TestMomentFilter: what a filter leaves out is marked, and nothing else.
func TestMomentFilter(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	m, err := e.Moment(e.Peak.Moment+1, 1<<40, BySize, Filter{Pattern: regexp.MustCompile("^gradients$")})
	if err != nil {
		t.Fatal(err)
	}
	has, out := 0, 0
	for _, s := range m.Segments {
		for _, p := range s.Parts {
			if want := e.categories.Of(int(p[2])) == "gradients"; want != (p[3] != LeftOut) || want && p[3] != int64(e.Bytes[p[2]]) {
				t.Fatalf("block %d, %s: %d", p[2], e.categories.Of(int(p[2])), p[3])
			} else if want {
				has++
			} else {
				out++
			}
		}
	}
	if has == 0 || out == 0 {
		t.Errorf("%d gradients, %d others", has, out)
	}
	if _, err := e.Moment(1, 1, "", Filter{By: BySize, Value: "x"}); err == nil {
		t.Error("x is not a range of sizes")
	}
}

// TestFlames: what is held, allocated and freed, against the blocks one by one.
func TestFlames(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	peak, err := e.FlameAt(e.Peak.Moment+1, Filter{})
	if err != nil || peak.Total != e.Peak.Bytes || len(peak.Stacks) == 0 || len(peak.Numbers) != len(peak.Frames) {
		t.Fatalf("a flame graph of %v in %d stacks, want %v; %v", peak.Total, len(peak.Stacks), e.Peak.Bytes, err)
	}
	for i, number := range peak.Numbers {
		if number < 0 {
			if f := peak.Frames[i].Function; f != usage.BeforeTrace && f != usage.NoFrames {
				t.Fatalf("%s has no place", f)
			}
			continue
		}
		if e.Stacks.Locations[number] != peak.Frames[i].Location {
			t.Fatalf("frame %d has the place %d", i, number)
		}
	}
	whole, err := e.FlameIn(0, 0, Held, Filter{})
	if err != nil || whole.Total != e.Peak.Bytes || whole.Point != e.Peak.Moment+1 {
		t.Errorf("most is held at point %d, %v; %v", whole.Point, whole.Total, err)
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range 30 {
		from := r.IntN(e.Points() - 1)
		to := from + 1 + r.IntN(e.Points()-from-1)
		var made, gone mem.Bytes
		for n := range e.Len() {
			if p := int(e.From[n]) + 1; p >= max(from, 1) && p < to {
				made += e.Bytes[n]
			}
			if p := int(e.To[n]) + 1; p >= from && p < to && int(e.To[n]) < e.Moments {
				gone += e.Bytes[n]
			}
		}
		for of, want := range map[Of]mem.Bytes{Allocated: made, Freed: gone} {
			if f, err := e.FlameIn(from, to, of, Filter{}); err != nil || f.Total != want || f.Point != -1 {
				t.Errorf("%s from %d to %d: %v, want %v; %v", of, from, to, f.Total, want, err)
			}
		}
	}
	if f, err := e.FlameAt(e.Peak.Moment+1, Filter{By: ByCategory, Value: "parameters"}); err != nil || f.Total == 0 || f.Total >= e.Peak.Bytes {
		t.Errorf("parameters hold %v, %v", f.Total, err)
	}
}

// TestList: events as the trace has them, and the next of each kind.
func TestList(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	l, _ := e.List(e.Moments-3, 10, Filter{})
	if l.From != e.Moments-3 || len(l.Events) != 3 || l.All != e.Moments {
		t.Fatalf("%d events from %d of %d", len(l.Events), l.From, l.All)
	}
	for i := range e.Moments {
		if n := e.MadeBy(i); (n >= 0) != (e.Trace.Action[i] == mem.ActionAlloc) || n >= 0 && int(e.From[n]) != i {
			t.Fatalf("event %d, %s, made block %d", i, mem.ActionNames[e.Trace.Action[i]], n)
		}
	}
	var first, last int
	for _, action := range mem.ActionNames {
		seen := 0
		for at := -1; ; seen++ {
			next, err := e.Next(action, at, false)
			if err != nil {
				t.Fatal(err)
			}
			if next < 0 {
				break
			}
			back, err := e.Next(action, next, true)
			if err != nil || back != at {
				t.Fatalf("%s: before %d comes %d, want %d; %v", action, next, back, at, err)
			}
			if mem.ActionNames[e.Trace.Action[next]] != action {
				t.Fatalf("event %d is no %s", next, action)
			}
			at = next
		}
		if seen > 0 {
			first++
		}
		last += seen
	}
	if first < 4 || last != e.Moments {
		t.Errorf("%d events of %d kinds, want %d", last, first, e.Moments)
	}
	if _, err := e.Next("jump", 0, false); err == nil {
		t.Error("no event is called jump")
	}
}

// TestListOther: the list leaves out what the filter does: events of its blocks, and those of no block by their calls.
func TestListOther(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	for _, f := range []Filter{{Category: "gradients"}, {Pattern: regexp.MustCompile("transformer.py")},
		{Site: "transformer.py:22"}} {
		wants, err := e.Wants(f)
		if err != nil {
			t.Fatal(err)
		}
		mine, others := 0, 0
		for from := 0; from < e.Moments; from += mostListed {
			l, err := e.List(from, mostListed, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range l.Events {
				if event.Block >= 0 && event.Other == wants(event.Block) {
					t.Fatalf("event %d is about block %d, other: %v", event.Number, event.Block, event.Other)
				}
				if event.Other {
					others++
				} else {
					mine++
				}
			}
		}
		if mine == 0 || others == 0 {
			t.Errorf("%+v: %d events are its own, %d are not", f, mine, others)
		}
	}
	if l, err := e.List(0, mostListed, Filter{}); err != nil || l.Events[0].Other {
		t.Errorf("without a filter nothing is left out, %v", err)
	}
	if _, err := e.List(0, 1, Filter{By: "colour"}); err == nil {
		t.Error("colour is not a filter")
	}
}
