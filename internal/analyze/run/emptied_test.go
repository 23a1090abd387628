package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// outputs is a list of the outputs of an epoch, as it was seen at a moment.
func outputs(second int64, items int64, perStep float64, falls, highest int64) mem.Holder {
	h := mem.Holder{Time: second * 1e9, Kind: "list", Name: "outputs", Where: mem.Location{File: "/p/train.py", Line: 12},
		Items: items, PerStep: perStep, Contains: "Tensor", Tensors: mem.Some(items * int64(mem.MiB)), Falls: falls}
	if falls > 0 {
		h.Highest = mem.Some(highest)
	}
	return h
}

func bounded(r *report.Report) (found []report.Finding) {
	for _, f := range r.Findings {
		if f.Kind == report.KindBounded {
			found = append(found, f)
		}
	}
	return found
}

// TestEmptied: a container that is emptied at the end of each epoch is no leak, but named with what it has when it is
// fullest: as many as it was seen with, also where it never was seen to grow steadily.
func TestEmptied(t *testing.T) {
	steady := []source{{stack: userLine(40), step: leakOf(0, mem.KiB)}}
	for name, test := range map[string]struct {
		seen []mem.Holder
		by   string
		says []string
	}{
		"grew, then fell": {[]mem.Holder{outputs(1, 40, 1, 0, 0), outputs(2, 70, 1, 0, 0), outputs(3, 5, 0, 1, 70)}, "",
			[]string{"70 items (70.0 MiB, estimated)", "once", "gains 1 item per step"}},
		"fell between looks": {[]mem.Holder{outputs(2, 9, 0, 2, 16), outputs(3, 5, 0, 3, 18)}, "train.py:20",
			[]string{"18 items (18.0 MiB, estimated)", "3 times", "train.py:20 empties it"}},
		"at the very end": {[]mem.Holder{outputs(1, 40, 1, 0, 0), outputs(2, 70, 1, 0, 0)}, "train.py:20",
			[]string{"70 items", "was not seen with fewer; train.py:20 empties it."}},
	} {
		s := training(3, steady...)
		for _, h := range test.seen {
			h.EmptiedBy = test.by
			s.holders = append(s.holders, h)
		}
		r := Analyze(s.run(), Options{})
		found := bounded(r)
		if len(found) != 1 || len(leaks(r)) != 0 {
			t.Fatalf("%s: %+v", name, r.Findings)
		}
		for _, words := range test.says {
			if !strings.Contains(found[0].Text, words) {
				t.Errorf("%s: no %q in %s", name, words, found[0].Text)
			}
		}
	}
	s := training(3, steady...)
	s.holders = []mem.Holder{outputs(1, 40, 1, 0, 0), outputs(2, 70, 1, 0, 0)}
	if found := bounded(Analyze(s.run(), Options{})); len(found) != 0 {
		t.Errorf("nothing says that it is emptied: %+v", found)
	}
}

// TestUntilEmptied: of a growth whose lines are not known, what a container takes until it is emptied is told.
func TestUntilEmptied(t *testing.T) {
	s := training(3, source{stack: userLine(40), step: leakOf(0, mem.KiB)})
	s.kinds = map[mem.Quantity]func(int) mem.Bytes{
		mem.SeriesRSSShared: func(step int) mem.Bytes { return mem.Bytes(step) * 3 * mem.MiB }}
	full := outputs(2, 70, 1, 0, 0)
	full.EmptiedBy = "train.py:20"
	s.holders = []mem.Holder{full}
	f := only(t, s.run())
	if !strings.Contains(f.Text, "`outputs` takes 1.00 MiB per step of it (estimated) until it is emptied") {
		t.Errorf("%s", f.Text)
	}
}

// TestNotYetEmptied: a leak whose container a line would empty says so, as the end of an epoch may only be far.
func TestNotYetEmptied(t *testing.T) {
	s := training(4, growsAt(40, 1*mem.MiB))
	h := holds("outputs", 12, 1*mem.MiB)
	h.EmptiedBy = "train.py:20"
	s.holders = []mem.Holder{h}
	if f := only(t, s.run()); !strings.Contains(f.Text, "train.py:20 would empty it, and was not seen to") {
		t.Errorf("%s", f.Text)
	}
}
