package explore

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

// random is a trace of some blocks at random addresses, with frees that another stream holds up, and holes at its
// beginning.
func random(r *rand.Rand, live, events int) *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Format: "torch-pickle"}
	for n := range 40 {
		s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/train.py", Line: n + 1, Function: "step"}),
			s.Stacks.Location(mem.Location{File: "/home/me/main.py", Line: 3, Function: "main"})})
	}
	t := mem.Trace{}
	type block struct {
		address uint64
		size    mem.Bytes
		pending bool
	}
	var held []block
	next := uint64(1 << 40)
	add := func(action mem.Action, b block) {
		t.Action, t.Address, t.Size = append(t.Action, action), append(t.Address, b.address), append(t.Size, b.size)
		t.Stream, t.Stack, t.Time = append(t.Stream, uint64(r.IntN(2))), append(t.Stack, uint32(r.IntN(41))),
			append(t.Time, int64(t.Len())*1000)
	}
	for range live / 10 { // there before
		next += 1 << 30
		held = append(held, block{next, mem.Bytes(r.IntN(1 << 22)), false})
	}
	for t.Len() < events {
		if len(held) < live && r.IntN(100) < 55 {
			next += 1 << 30
			b := block{next, mem.Bytes(1 + r.IntN(1<<r.IntN(26))), false}
			add(mem.ActionAlloc, b)
			held = append(held, b)
			continue
		}
		if len(held) == 0 {
			continue
		}
		i := r.IntN(len(held))
		if r.IntN(4) > 0 { // the young go first
			i = len(held) - 1 - r.IntN(min(len(held), 8))
		}
		if !held[i].pending {
			add(mem.ActionFreeRequested, held[i])
			held[i].pending = true
			if r.IntN(5) == 0 {
				continue
			}
		}
		add(mem.ActionFreeCompleted, held[i])
		held = slices.Delete(held, i, i+1)
	}
	for _, b := range held {
		if b.pending {
			continue
		}
		s.Segments = append(s.Segments, mem.Segment{Address: b.address, Size: b.size,
			Blocks: []mem.Block{{Address: b.address, Size: b.size, Requested: b.size, State: mem.BlockAllocated}}})
	}
	s.Traces = []mem.Trace{t}
	return s
}

func explorerOf(s *mem.AllocatorSnapshot) *Explorer { return New(usage.FromTrace(s, 0, usage.Whole)) }

// layout is what a tile must say, found the slow way: of each block allocated at a point, where it lies.
func layout(e *Explorer, point int) (offsets map[int32]mem.Bytes, total mem.Bytes) {
	offsets = map[int32]mem.Bytes{}
	for n := range e.Len() {
		if e.HeldAt(n, point-1) {
			offsets[int32(n)] = total
			total += e.Bytes[n]
		}
	}
	return offsets, total
}

// TestTile holds tiles of any window and zoom against the slow way: totals are exact, and each block lies where it
// should, within half a pixel.
func TestTile(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 60 {
		e := explorerOf(random(r, 1+r.IntN(60), 1+r.IntN(3000)))
		for range 8 {
			checkTile(t, e, randomWindow(r, e))
		}
	}
}

func randomWindow(r *rand.Rand, e *Explorer) Window {
	w := Window{Width: 1 + r.IntN(300), Height: 1 + r.IntN(400), Most: 1 + r.IntN(100)}
	w.From = r.IntN(e.Points())
	w.To = w.From + 1 + r.IntN(e.Points())
	if r.IntN(2) == 0 {
		w.Low = mem.Bytes(r.Int64N(int64(e.Peak.Bytes) + 1))
		w.High = w.Low + 1 + mem.Bytes(r.Int64N(int64(e.Peak.Bytes)+1))
	}
	return w
}

func checkTile(t *testing.T, e *Explorer, w Window) {
	t.Helper()
	tile := e.Tile(w)
	if len(tile.Blocks.N) > w.Most || !slices.IsSorted(tile.Blocks.N) {
		t.Fatalf("%d blocks of at most %d, in order: %v", len(tile.Blocks.N), w.Most, tile.Blocks.N)
	}
	if len(tile.At) > w.Width+1 {
		t.Fatalf("%d columns in %d pixels", len(tile.At), w.Width)
	}
	half := (tile.High - tile.Low) / mem.Bytes(2*w.Height)
	drawn := stepsByBlock(tile)
	for c := range tile.At {
		first := tile.From + c*tile.Step
		offsets, total := layout(e, first)
		if total != tile.At[c] {
			t.Fatalf("column %d: %d allocated, want %d", c, tile.At[c], total)
		}
		most := mem.Bytes(0)
		for p := first; p < min(first+tile.Step, e.Points()); p++ {
			_, sum := layout(e, p)
			most = max(most, sum)
		}
		if most != tile.Allocated[c] {
			t.Fatalf("column %d of %d points: highest %d, want %d", c, tile.Step, tile.Allocated[c], most)
		}
		for n, offset := range drawn[c] {
			want, held := offsets[n]
			if !held {
				continue // it ended before
			}
			if off := want - (tile.Low + offset*tile.Unit); off < -half-tile.Unit || off > half+tile.Unit {
				t.Fatalf("column %d: block %d lies %d from where it should, half a pixel is %d", c, n, off, half)
			}
		}
	}
}

// stepsByBlock is where each drawn block lies in each column from its first on.
func stepsByBlock(tile Tile) []map[int32]mem.Bytes {
	out := make([]map[int32]mem.Bytes, len(tile.At))
	for c := range out {
		out[c] = map[int32]mem.Bytes{}
	}
	steps := tile.Blocks.Steps
	for _, n := range tile.Blocks.N {
		count := int(steps[0])
		steps = steps[1:]
		column, offset := 0, mem.Bytes(0)
		for range count {
			column, offset = column+int(steps[0]), offset+mem.Bytes(steps[1])
			steps = steps[2:]
			for c := column; c < len(out); c++ {
				out[c][n] = offset
			}
		}
	}
	return out
}

// TestTileIsWhole: where there is room, each block that is high enough is drawn.
func TestTileIsWhole(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/mosaic-synthetic.pickle"))
	tile := e.Tile(Window{Width: mostWidth, Height: mostHeight, Most: mostDrawn})
	if tile.Step != 1 {
		t.Skip("more events than columns")
	}
	drawn := map[int32]bool{}
	for _, n := range tile.Blocks.N {
		drawn[n] = true
	}
	for n := range e.Len() {
		if e.Bytes[n] >= (tile.High-tile.Low)/(2*mostHeight) && !drawn[int32(n)] {
			t.Errorf("block %d of %v is not drawn", n, e.Bytes[n])
		}
	}
}

// TestAnswersAreSmall: no tile and no moment is above 300 KB.
func TestAnswersAreSmall(t *testing.T) {
	for _, name := range []string{"real/h100-lm-ctx128-train-step.pickle", "real/h100-lm-ctx256-forward-bf16.pickle", ""} {
		s := random(rand.New(rand.NewPCG(1, 1)), 20_000, 300_000)
		if name != "" {
			s = testkit.Snapshot(t, name)
		}
		e := explorerOf(s)
		for _, w := range []Window{{}, {Width: mostWidth, Height: mostHeight, Most: mostDrawn},
			{From: e.Points() / 2, To: e.Points()/2 + 4000, Width: mostWidth, Height: mostHeight, Most: mostDrawn}} {
			small(t, name, struct {
				Tile
				Labels
			}{e.Tile(w), e.LabelsFrom(0, 0, 0)})
		}
		small(t, name, moment(e, e.Peak.Moment+1, 50_000))
		small(t, name, search(t, e, "."))
	}
}

func small(t *testing.T, name string, answer any) {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 300_000 {
		t.Errorf("%s: %T takes %d bytes", name, answer, len(text))
	}
}

// TestMoment holds the segments at random points against what package usage says of them.
func TestMoment(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	r := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		point := r.IntN(e.Points())
		m, want := moment(e, point, 1<<40), e.SegmentsAfter(point-1)
		if len(m.Segments) != len(want) {
			t.Fatalf("point %d: %d segments, want %d", point, len(m.Segments), len(want))
		}
		for i, s := range m.Segments {
			if s.Address != address(want[i].Address) || s.Size != want[i].Size || len(s.Parts) != len(want[i].Spans) {
				t.Fatalf("point %d: segment %+v, want %+v", point, s, want[i])
			}
			for k, part := range s.Parts {
				if int(part[2]) != want[i].Spans[k] || part[0] != int64(e.AddressOf(int(part[2]))-want[i].Address) {
					t.Fatalf("point %d: part %v, want block %d", point, part, want[i].Spans[k])
				}
			}
		}
		levels := e.LevelsAt(point - 1)
		if m.Allocated != levels.Allocated || m.Reserved != levels.Reserved || m.Requested != levels.Requested ||
			m.Allocated+m.Waiting != levels.Active {
			t.Fatalf("point %d: %+v, want %+v", point, m, levels)
		}
	}
}

// TestJoinedParts: parts too small to be seen are joined, and none of their bytes is lost.
func TestJoinedParts(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	exact, coarse := moment(e, e.Peak.Moment+1, 1<<40), moment(e, e.Peak.Moment+1, 300)
	count := func(m Moment) (blocks, parts int) {
		for _, s := range m.Segments {
			for _, p := range s.Parts {
				parts++
				blocks++
				if p[2] < 0 {
					blocks += int(-p[2]) - 2
				}
			}
		}
		return blocks, parts
	}
	blocks, parts := count(exact)
	joined, fewer := count(coarse)
	if joined != blocks || fewer >= parts {
		t.Errorf("%d blocks in %d parts, joined %d in %d", blocks, parts, joined, fewer)
	}
}

// TestFind: what lies at an offset is the block whose own offset is just below.
func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	e := explorerOf(random(r, 50, 2000))
	for range 200 {
		point := r.IntN(e.Points())
		offsets, total := layout(e, point)
		at := mem.Bytes(r.Int64N(int64(total) + 100))
		n, ok := e.Find(point, at)
		if ok != (at < total) {
			t.Fatalf("point %d offset %d of %d: found %v", point, at, total, ok)
		}
		if !ok {
			continue
		}
		if low := offsets[int32(n)]; at < low || at >= low+e.Bytes[n] {
			t.Fatalf("block %d lies from %d to %d, not at %d", n, low, low+e.Bytes[n], at)
		}
		if b := e.BlockAt(n, point); b.Offset != offsets[int32(n)] || b.Size != e.Bytes[n] {
			t.Fatalf("facts %+v, want offset %d", b, offsets[int32(n)])
		}
	}
}

// moment is one with all blocks.
func moment(e *Explorer, point, pixels int) Moment {
	m, _ := e.Moment(point, pixels, "", Filter{})
	return m
}

func search(t *testing.T, e *Explorer, pattern string) Found {
	t.Helper()
	f, err := e.Search(Filter{Pattern: regexp.MustCompile(pattern)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSearchOfBlocks(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"))
	all, none := search(t, e, ".*"), search(t, e, "no such function")
	if all.Blocks != e.Len() || all.AtPeak != e.Peak.Bytes || none.Blocks != 0 || len(none.Sites) != 0 {
		t.Fatalf("all: %d blocks of %d, %v of %v at the peak; none: %d", all.Blocks, e.Len(), all.AtPeak, e.Peak.Bytes,
			none.Blocks)
	}
	if len(all.Largest) != mostFound || !slices.IsSortedFunc(all.Largest,
		func(a, b FoundOne) int { return int(b.Size - a.Size) }) || all.Largest[0].Size != slices.Max(e.Bytes) {
		t.Fatalf("largest: %+v", all.Largest[:3])
	}
	some := search(t, e, "^gradients$")
	want := 0
	for n := range e.Len() {
		if e.categories.Of(n) == "gradients" {
			want++
		}
	}
	if some.Blocks != want {
		t.Fatalf("%d gradients, want %d", some.Blocks, want)
	}
	first, err := e.Wants(Filter{Pattern: regexp.MustCompile("^gradients$")})
	if err != nil {
		t.Fatal(err)
	}
	tile := e.Tile(Window{First: first})
	for _, k := range tile.Blocks.First {
		if e.labels.Categories[tile.Blocks.Category[k]] != "gradients" {
			t.Fatalf("block %d is none", tile.Blocks.N[k])
		}
	}
	if want > 0 && len(tile.Blocks.First) == 0 {
		t.Error("no gradient is drawn")
	}

	last := e.Len() - 1
	inside := func(at uint64) int {
		n := 0
		for k := range e.Len() {
			if begin := e.AddressOf(k); begin <= at && at < begin+uint64(e.Bytes[k]) {
				n++
			}
		}
		return n
	}
	for _, at := range []uint64{e.AddressOf(last), e.AddressOf(last) + uint64(e.Bytes[last]) - 1, 1} {
		if found := search(t, e, "(?i)"+address(at)); found.Blocks != inside(at) {
			t.Errorf("%d blocks had %s, want %d", found.Blocks, address(at), inside(at))
		}
	}
}

// TestSearchOfTexts: what a program attached to its allocations is found as it stands in the facts of their blocks.
func TestSearchOfTexts(t *testing.T) {
	e := explorerOf(testkit.Snapshot(t, "real/mosaic-synthetic.pickle"))
	with := map[string]int{}
	for n := range e.Len() {
		for _, text := range e.BlockAt(n, 0).Texts {
			with[text]++
		}
	}
	if len(with) == 0 {
		t.Fatal("the file has no attached text")
	}
	for text, blocks := range with {
		if found := search(t, e, regexp.QuoteMeta(text)); found.Blocks < blocks || found.Blocks == e.Len() {
			t.Errorf("%q: %d blocks, want %d", text, found.Blocks, blocks)
		}
	}
}

// TestNothing: traces without events and snapshots without memory are answered too.
func TestNothing(t *testing.T) {
	for _, s := range []*mem.AllocatorSnapshot{{}, random(rand.New(rand.NewPCG(1, 1)), 10, 0),
		random(rand.New(rand.NewPCG(1, 1)), 1, 1)} {
		e := explorerOf(s)
		tile := e.Tile(Window{})
		if len(tile.At) == 0 || moment(e, 5, 100).Point > e.Moments {
			t.Errorf("%+v", tile)
		}
		search(t, e, "x")
	}
}

// The benchmarks ask a trace of so many events, of 3,000 blocks at a time.
func BenchmarkNew1M(b *testing.B)  { benchmarkNew(b, 1_000_000) }
func BenchmarkNew10M(b *testing.B) { benchmarkNew(b, 10_000_000) }

func benchmarkNew(b *testing.B, events int) {
	d := usage.FromTrace(random(rand.New(rand.NewPCG(1, 2)), 3000, events), 0, usage.Whole)
	b.ResetTimer()
	for range b.N {
		New(d)
	}
}

func BenchmarkTile1M(b *testing.B)  { benchmarkTile(b, 1_000_000) }
func BenchmarkTile10M(b *testing.B) { benchmarkTile(b, 10_000_000) }

func benchmarkTile(b *testing.B, events int) {
	e := explorerOf(random(rand.New(rand.NewPCG(1, 2)), 3000, events))
	for _, part := range []struct {
		name  string
		share int
	}{{"whole", 1}, {"tenth", 10}, {"thousandth", 1000}} {
		b.Run(part.name, func(b *testing.B) {
			for i := range b.N {
				from := (e.Points() - e.Points()/part.share) * (i % 7) / 7
				e.Tile(Window{From: from, To: from + e.Points()/part.share})
			}
		})
	}
	b.Run("moment", func(b *testing.B) {
		for i := range b.N {
			moment(e, e.Points()*(i%7+1)/8, 20_000)
		}
	})
	b.Run("search", func(b *testing.B) {
		pattern := regexp.MustCompile("train.py:1")
		for range b.N {
			if _, err := e.Search(Filter{Pattern: pattern}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzWindow: no window makes a tile fail, or too large.
func FuzzWindow(f *testing.F) {
	e := explorerOf(random(rand.New(rand.NewPCG(8, 8)), 300, 5000))
	f.Add(0, 0, int64(0), int64(0), 0, 0, 0)
	f.Add(-5, 1<<60, int64(-1), int64(1)<<62, 1<<40, 1<<40, 1<<40)
	f.Add(4999, 5000, int64(1)<<62, int64(1), 1, 1, 1)
	f.Fuzz(func(t *testing.T, from, to int, low, high int64, width, height, most int) {
		tile := e.Tile(Window{from, to, mem.Bytes(low), mem.Bytes(high), width, height, most, nil})
		if len(tile.At) == 0 || len(tile.At) > mostWidth+1 || len(tile.Blocks.N) > mostDrawn {
			t.Fatalf("%d columns, %d blocks", len(tile.At), len(tile.Blocks.N))
		}
	})
}
