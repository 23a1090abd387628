package mem

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func collect(from iter.Seq[*Span]) (spans []Span) {
	for s := range from {
		spans = append(spans, *s)
	}
	return spans
}

func all(log *SpanLog) (spans []Span) {
	for some := range log.Chunks(100) {
		spans = append(spans, some...)
	}
	return spans
}

// TestSpanLog: what comes out is what went in, whatever it was, over several pieces, and a stretch at a time.
func TestSpanLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, random.Int64N(1 << 40)}[random.IntN(6)]
	}
	optional := func() Optional {
		if random.IntN(2) == 0 {
			return Optional{}
		}
		return Some(number())
	}
	var log SpanLog
	var want []Span
	for range 20 * pieceSpans {
		s := Span{
			Process: random.Uint32(), Thread: random.Uint32(), Phase: Phases[random.IntN(len(Phases))],
			Name: []string{"", "encoder"}[random.IntN(2)],
			Step: random.Uint64(), Start: number(), End: number(), RSSStart: optional(), RSSEnd: optional(), RSSPeak: optional(),
			DeviceStart: optional(), DeviceEnd: optional(),
		}
		log.Append(s)
		want = append(want, s)
	}
	if got := all(&log); !slices.Equal(got, want) || log.Len() != len(want) || len(log.pieces) < 2 {
		t.Errorf("%d spans in %d pieces came back as %d others", len(want), len(log.pieces), len(got))
	}
	var got []Span
	for some := range log.Chunks(777) {
		got = append(got, some...)
	}
	if !slices.Equal(got, want) {
		t.Error("in stretches they are others")
	}
	for _, at := range []int64{0, 1, math.MaxInt64, 1 << 39} {
		if got, want := collect(log.Around(at)), slices.DeleteFunc(slices.Clone(want),
			func(s Span) bool { return s.Start > at || s.End < at }); !slices.Equal(got, want) {
			t.Errorf("around %d are %d spans, want %d", at, len(got), len(want))
		}
	}
	if got, want := collect(log.User()), slices.DeleteFunc(slices.Clone(want),
		func(s Span) bool { return s.Phase != PhaseUser }); !slices.Equal(got, want) {
		t.Errorf("%d named spans, want %d", len(got), len(want))
	}
	view := log.view()
	view.Append(want[0])
	log.Append(want[1])
	if got := all(&view); !slices.Equal(got, append(slices.Clone(want), want[0])) {
		t.Error("a view that was added to is not what it was with what was added")
	}
}

// TestSpanLogOfEqual: spans that differ in nothing are as many as they were.
func TestSpanLogOfEqual(t *testing.T) {
	var log SpanLog
	for range 2 * pieceSpans {
		log.Append(Span{Process: 3, Phase: PhaseData})
	}
	if got := all(&log); len(got) != 2*pieceSpans || got[0] != got[pieceSpans+1] || got[7].Process != 3 {
		t.Errorf("%d spans, the first %+v", len(got), got[0])
	}
}

// TestSpanLogIsSmall: the spans of a training take a sixth of what they would as they are.
func TestSpanLogIsSmall(t *testing.T) {
	var log SpanLog
	for i := range int64(10000) {
		at, rss := i*20_000_000+i%7*1e5, 800<<20+4096*(i%100)
		log.Append(Span{Process: 1, Thread: 1234, Phase: PhaseForward, Step: uint64(i), Start: at, End: at + 9_000_000,
			RSSStart: Some(rss), RSSEnd: Some(rss)})
	}
	size := 0
	for _, piece := range log.pieces {
		size += len(piece.rows)
	}
	if size > log.Len()*24 {
		t.Errorf("%d bytes a span", size/log.Len())
	}
}

// TestSharedTimes: series of a process that are read at the same moments have their times in one place until they part.
func TestSharedTimes(t *testing.T) {
	run := NewRun()
	add := func(f Frame) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	want := map[uint32][]int64{}
	for id := uint32(1); id <= 4; id++ {
		add(SeriesDef{ID: id, Process: 1 + id/4})
	}
	for i := int64(0); i < 30000; i += 10 {
		for id := uint32(1); id <= 4; id++ {
			var times []int64
			for k := range int64(10) {
				if id != 3 || i < 20000 || k > 0 { // the third leaves readings out, later on
					times = append(times, i+k)
				}
			}
			want[id] = append(want[id], times...)
			add(Samples{Series: id, Times: times, Values: times})
		}
	}
	for _, s := range run.Series {
		if !slices.Equal(s.Times, want[s.ID]) || !slices.Equal(s.Values, want[s.ID]) {
			t.Errorf("series %d has other readings", s.ID)
		}
	}
	times := func(i int) *int64 { return &run.Series[i].Times[0] }
	if times(0) != times(1) || times(0) == times(2) || times(0) == times(3) {
		t.Error("the first two share their times, the third parted, the fourth is of another process")
	}
}
