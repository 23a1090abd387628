package replay

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

func TestWhatIf(t *testing.T) {
	files, _ := filepath.Glob("../../testdata/real/h100-*.pickle")
	if len(files) < 2 {
		t.Fatalf("found %v", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			snapshot := testkit.Snapshot(t, "real/"+filepath.Base(file))
			w, err := NewWhatIf(snapshot, -1)
			if err != nil {
				t.Fatal(err)
			}
			same := try(t, w, Trial{})
			if !same.Exact || same.Label != mem.Replayed || same.Line != "" || same.Recorded.Reserved != same.Replayed.Reserved {
				t.Errorf("nothing changed: %+v", same)
			}
			checkSide(t, "recorded", &same.Recorded)
			if begin := reservedFirst(snapshot, same.Device); same.Recorded.Curve.Reserved[0] < begin {
				t.Errorf("the curve begins at %v reserved, the trace at %v", same.Recorded.Curve.Reserved[0], begin)
			}
			if m := same.Recorded.Moment; m.Reserved != same.Recorded.Reserved {
				t.Errorf("at the peak %v is reserved, not %v", m.Reserved, same.Recorded.Reserved)
			}

			expandable := "expandable_segments:True"
			with := try(t, w, Trial{Settings: &expandable, Spread: true})
			p := w.trace.program
			setup := w.trace.setup()
			setup.Settings.Expandable = true
			if want := allocator.Run(p, setup); with.Replayed.Reserved != want.Usage.PeakReserved ||
				with.Line != "PYTORCH_CUDA_ALLOC_CONF="+expandable {
				t.Errorf("%v reserved (%s), a run says %v", with.Replayed.Reserved, with.Line, want.Usage.PeakReserved)
			}
			checkSide(t, "expandable", &with.Replayed)
			if with.Spread == nil || with.Spread[0] > with.Replayed.Reserved || with.Spread[1] < with.Replayed.Reserved {
				t.Errorf("spread %v around %v", with.Spread, with.Replayed.Reserved)
			}

			half := (same.Recorded.Allocated / 2).String()
			oom := try(t, w, Trial{Memory: half})
			if oom.Replayed.OOM == nil || oom.Replayed.Moment.Event != *oom.Replayed.OOM ||
				oom.Replayed.Moment.Reserved > oom.Capacity {
				t.Errorf("in %s: %+v", half, oom.Replayed.Figures)
			}
			checkSide(t, "out of memory", &oom.Replayed)

			if again := try(t, w, Trial{Settings: &expandable}); again.Replayed.Moment.Event != with.Replayed.Moment.Event ||
				again.Replayed.Moment.Reserved != with.Replayed.Reserved {
				t.Errorf("after another trial the peak is at event %d, before at %d", again.Replayed.Moment.Event,
					with.Replayed.Moment.Event)
			}

			at := same.Events / 2
			then := try(t, w, Trial{Event: &at})
			if then.Recorded.Moment.Event > at || then.Recorded.Moment.Reserved > same.Recorded.Reserved {
				t.Errorf("after event %d: %+v", at, then.Recorded.Moment)
			}
			checkSide(t, "a moment", &then.Recorded)
		})
	}
}

// TestWhatIfLacksMemory: a request that failed fails again where nothing is changed, and its peak is the one that was
// recorded.
func TestWhatIfLacksMemory(t *testing.T) {
	snapshot := testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle")
	w, err := NewWhatIf(snapshot, 0)
	if err != nil {
		t.Fatal(err)
	}
	device := usage.FromTrace(snapshot, 0, usage.Whole)
	same := try(t, w, Trial{})
	if most := device.Most.Reserved; same.Recorded.Reserved != most || same.Replayed.Reserved != most ||
		same.Recorded.Moment.Reserved != most || same.Replayed.OOM != nil {
		t.Errorf("%v and %v reserved, %v at the peak; recorded were %v; %s", same.Recorded.Reserved, same.Replayed.Reserved,
			same.Recorded.Moment.Reserved, most, same.Sentence)
	}
	if larger := try(t, w, Trial{Memory: "80GiB"}); larger.Replayed.Reserved <= same.Recorded.Reserved || larger.Recorded.Reserved != same.Recorded.Reserved {
		t.Errorf("with 80 GiB %v reserved, recorded %v", larger.Replayed.Reserved, larger.Recorded.Reserved)
	}
}

// reservedFirst is what a device had reserved before its trace.
func reservedFirst(s *mem.AllocatorSnapshot, device int) (reserved mem.Bytes) {
	for _, g := range s.Segments {
		if g.Device == device {
			reserved += g.Size
		}
	}
	trace := allocator.TraceOf(s, device)
	for i, action := range trace.Action {
		switch action {
		case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
			reserved -= trace.Size[i]
		case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
			reserved += trace.Size[i]
		}
	}
	return reserved
}

func try(t *testing.T, w *WhatIf, trial Trial) *Tried {
	t.Helper()
	out, err := w.Try(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	if out.Sentence == "" {
		t.Errorf("nothing is said of %+v", trial)
	}
	return out
}

// checkSide: segments add up to what is reserved, their blocks to them, and blocks in use know the event that made
// them.
func checkSide(t *testing.T, what string, s *Side) {
	t.Helper()
	var size, active mem.Bytes
	made := 0
	for _, g := range s.Moment.Segments {
		var blocks, used mem.Bytes
		for _, b := range g.Blocks {
			blocks += mem.Bytes(b[0])
			if b[1] != 0 {
				used += mem.Bytes(b[0])
				if b[2] >= 0 {
					made++
				}
				if int(b[2]) > s.Moment.Event {
					t.Errorf("%s: a block at event %d was made by event %d", what, s.Moment.Event, b[2])
				}
			}
		}
		if blocks != g.Size {
			t.Errorf("%s: blocks of %v in a segment of %v", what, blocks, g.Size)
		}
		size, active = size+g.Size, active+used
	}
	if size != s.Moment.Reserved || active != s.Moment.Active || made == 0 {
		t.Errorf("%s: segments of %v, %v active, reserved %v, %v active; %d blocks know who made them", what, size, active,
			s.Moment.Reserved, s.Moment.Active, made)
	}
	c := &s.Curve
	if len(c.Event) == 0 || len(c.Event) != len(c.Reserved) || len(c.Event) != len(c.Active) ||
		len(c.Event) > trialPoints {
		t.Errorf("%s: curve of %d, %d, %d", what, len(c.Event), len(c.Reserved), len(c.Active))
	}
}

func TestWhatIfRefuses(t *testing.T) {
	w, err := NewWhatIf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"), 0)
	if err != nil {
		t.Fatal(err)
	}
	wrong, async := "max_split_size_mb:3", "backend:cudaMallocAsync"
	for name, trial := range map[string]Trial{"a setting that cannot be": {Settings: &wrong},
		"the driver's pool": {Settings: &async}, "no such GPU": {GPU: "nothing"}, "no size": {Memory: "much"}} {
		if _, err := w.Try(t.Context(), trial); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Try(ctx, Trial{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := NewWhatIf(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"), 7); err == nil {
		t.Error("a device without a history")
	}
}

// BenchmarkWhatIf is an answer on a trace of 100,000 events, with what it is written as.
func BenchmarkWhatIf(b *testing.B) {
	s := testkit.Snapshot(b, "real/h100-lm-ctx128-train-step.pickle")
	w, err := NewWhatIf(s, 0)
	if err != nil {
		b.Fatal(err)
	}
	p := w.trace.program // the same step over and over, until it is 100,000 requests long
	ops := p.Ops
	for len(p.Ops) < 100_000 {
		p.Ops = append(p.Ops, ops...)
	}
	settings := "expandable_segments:True"
	for b.Loop() {
		out, err := w.Try(b.Context(), Trial{Settings: &settings})
		if err != nil {
			b.Fatal(err)
		}
		text, err := json.Marshal(out)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(text)), "bytes")
	}
}

// TestWhatIfSearch: it finds what `replay --search` finds, and tells how far it is.
func TestWhatIfSearch(t *testing.T) {
	snapshot := testkit.Snapshot(t, "real/h100-lm-ctx256-forward-bf16.pickle")
	w, err := NewWhatIf(snapshot, 0)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	found, err := w.Search(t.Context(), Trial{}, 2, func(done, all int) {
		if done != told+1 || done > all {
			t.Errorf("told %d of %d after %d", done, all, told)
		}
		told = done
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Run(t.Context(), []Source{{"x", snapshot}}, Options{Search: true, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if told == 0 || told != found.Searched.Settings || found.Best == nil || want.Best == nil ||
		found.Best.AllocConf != want.Best.AllocConf || found.Best.Gain != want.Best.Gain {
		t.Errorf("told %d of %d; best %+v, want %+v", told, found.Searched.Settings, found.Best, want.Best)
	}
}
