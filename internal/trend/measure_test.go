package trend

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestTrendOfEachFigure: each figure has a trend of its own, with what it says of runs that lack it.
func TestTrendOfEachFigure(t *testing.T) {
	runs := []store.Run{run(1, "a", 100e6), run(2, "a", 101e6), run(3, "b", 100e6), run(4, "b", 101e6)}
	figure := func(bytes, off int64) mem.Figure {
		return mem.Figure{Bytes: bytes, Error: off, What: "growth of host memory a step", Source: mem.SeriesRSS, Label: mem.Estimated}
	}
	for i := range runs {
		r, b := &runs[i], int64(i/2)
		r.Label, r.Allocated, r.Reserved = mem.Measured, mem.Some(50e6+b*10e6), mem.Some(80e6)
		r.Figures = map[string]mem.Figure{"growth": figure(b*5000+int64(i%2), 10)}
		r.Held = figure(b*7e6+int64(i%2), 1000)
	}
	for of, want := range map[Measure]int64{"": 0, Peak: 0, Allocated: 10e6, Reserved: 0, Growth: 5000, "train.py:step": 7e6} {
		got := Of(runs, of)
		if len(got.Commits) != 2 || got.Commits[1].Change != mem.Some(want) || (got.Commits[1].Verdict == Changed) != (want > 0) {
			t.Errorf("%s: %+v", of, got)
		}
	}
	bare := Of(runs, Fragmentation)
	if len(bare.Commits) != 0 || !slices.Equal(bare.Left, []string{"4 runs without a known fragmentation"}) {
		t.Errorf("%+v", bare)
	}
	for i := range runs {
		runs[i].Held = mem.Figure{Error: 1 << 20, What: "what train.py:step held"}
	}
	if got := Of(runs, "train.py:step"); got.Note == "" ||
		got.Commits[1].Text(0) != "≤ 1.00 MiB" || got.Commits[1].Verdict != Noise {
		t.Errorf("%+v", got)
	}
	runs[0].Figures = nil
	if got := Of(runs, Growth); got.Commits[0].Runs != 1 || !strings.Contains(strings.Join(got.Left, ""), "reindex --findings") {
		t.Errorf("%+v", got)
	}
	runs[2].Figures["growth"] = figure(5000, 1e6) // an error that hides the change
	if got := Of(runs, Growth).Commits[1].Verdict; got != Noise {
		t.Error(got)
	}
}

// TestImaginedRuns: those that fit, tightly or on a condition too, are held against each other. One that does not has no peak.
func TestImaginedRuns(t *testing.T) {
	var runs []store.Run
	for i, kind := range []mem.EndKind{mem.EndFits, mem.EndTight, mem.EndConditional, mem.EndFits, mem.EndOOM, mem.EndNoVerdict} {
		r := run(i, string(rune('a'+i/2)), float64(100+i/2))
		r.Ended.Kind, r.Figure.Label = kind, mem.Imagined
		runs = append(runs, r)
	}
	got := Of(runs, Peak)
	if len(got.Commits) != 2 || got.Label != "imagined" || got.Commits[1].Verdict != Changed || len(got.Left) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestParseMeasure: what is asked for by name or by place, and what is refused.
func TestParseMeasure(t *testing.T) {
	for text, want := range map[string]Measure{"": Peak, "peak": Peak, "growth": Growth, "train.py:12": "train.py:12",
		"./models/net.py:Net.forward": "models/net.py:Net.forward", "a.py:<module>": "a.py:<module>"} {
		if got, err := ParseMeasure(text); err != nil || got != want {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, wrong := range []string{"Peak", "speed", "train.py", "train.py:", "train.py:0", ":step", "train.py:-1", "a.py:b c",
		strings.Repeat("a", 501) + ":1"} {
		if got, err := ParseMeasure(wrong); err == nil {
			t.Errorf("%q is taken for %q", wrong, got)
		}
	}
}

// TestCommentOnGrowth: a comment says which figure it is about, and names no lines of the peak.
func TestCommentOnGrowth(t *testing.T) {
	runs := []store.Run{runOf("a1", "aaaaaaaaaaaa", 1, 100), runOf("a2", "aaaaaaaaaaaa", 2, 100), runOf("b1", "bbbbbbbbbbbb", 3, 100),
		runOf("b2", "bbbbbbbbbbbb", 4, 100)}
	for i := range runs {
		runs[i].Figures = map[string]mem.Figure{"growth": {Bytes: int64(i/2) << 20, What: "growth of host memory a step",
			Source: mem.SeriesRSS, Label: mem.Estimated}}
	}
	all := Of(runs, Growth)
	text, err := told(&all, runs, "", "")
	if err != nil || !strings.HasPrefix(text, "**Growth: +1.00 MiB** with `bbbbbbbbbb`, to 1.00 MiB (growth of host memory a step, "+
		"estimated, of 2 runs)") || strings.Contains(text, "train.py") || !strings.Contains(text, "/trend?of=growth&tag=") {
		t.Error(text, err)
	}
}
