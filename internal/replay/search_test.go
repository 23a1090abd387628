package replay

import (
	"strings"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/pytorch"
	"hightide/internal/report"
)

// record is the snapshot of what do asks of PyTorch's allocator on a device of so much memory.
func record(capacity mem.Bytes, keep int, do func(ask func(mem.Bytes) allocator.Handle,
	n *allocator.Native)) *mem.AllocatorSnapshot {
	t, device := mem.Trace{}, &allocator.Device{Capacity: capacity}
	n := allocator.NewNative(allocator.Settings{}, allocator.RulesOf(pytorch.Newest), capacity, device)
	n.Observe = func(e allocator.Event) {
		if e.Action == mem.ActionOOM {
			e.Address = uint64(capacity - device.Held)
		}
		t.Action, t.Address, t.Size = append(t.Action, e.Action), append(t.Address, e.Address), append(t.Size, e.Size)
		t.Stream, t.Stack = append(t.Stream, e.Stream), append(t.Stack, 0)
	}
	do(func(size mem.Bytes) allocator.Handle { return n.Malloc(allocator.Request{Size: size}) }, n)
	from := max(0, t.Len()-keep)
	t.Action, t.Address, t.Size, t.Stream, t.Stack = t.Action[from:], t.Address[from:], t.Size[from:], t.Stream[from:],
		t.Stack[from:]
	return &mem.AllocatorSnapshot{Versions: mem.Versions{First: pytorch.Newest}, Segments: n.State(), Traces: []mem.Trace{t},
		Settings: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": ""}}
}

func searched(t *testing.T, s *mem.AllocatorSnapshot, o Options) *Result {
	t.Helper()
	o.Search, o.Device, o.Workers = true, -1, 2
	r, err := Run(t.Context(), []Source{{"made.pickle", s}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(strings.Join(r.SearchText(false), "\n"))
	return r
}

const everything = 1 << 30

var expandable = "expandable_segments:True"

// TestSearchKeepsToTheDevice: a program that truly needs more than there is gets no setting called best that would
// take more than the device has, as the request that failed tells.
func TestSearchKeepsToTheDevice(t *testing.T) {
	capacity := 8 * mem.GiB
	s := record(capacity, everything, func(ask func(mem.Bytes) allocator.Handle, _ *allocator.Native) {
		for range 7 {
			ask(mem.GiB)
		}
		ask(3 * mem.GiB)
	})
	r := searched(t, s, Options{})
	if r.Searched.Capacity != capacity || r.Best == nil || r.Best.Reserved > r.Recorded.Reserved ||
		r.Best.AllocConf != "" || r.Best.Refused != 1 {
		t.Errorf("%+v of %+v", r.Best, r.Searched)
	}
	for _, f := range r.Search {
		if f.Reserved > capacity {
			t.Errorf("%s reserves %v of %v", f.AllocConf, f.Reserved, capacity)
		}
	}
}

// leavePieces leaves ten free blocks of 30 MiB, each between two that are in use.
func leavePieces(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
	var all []allocator.Handle
	for range 10 {
		all = append(all, ask(90*mem.MiB), ask(4*mem.MiB))
	}
	for i := 0; i < len(all); i += 2 {
		n.Free(all[i])
	}
	for range 10 { // a piece of each block that is free
		ask(60 * mem.MiB)
	}
}

// TestSearchServesWhatWasRefused: of memory in pieces, within the device.
func TestSearchServesWhatWasRefused(t *testing.T) {
	capacity := mem.GiB
	s := record(capacity, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		leavePieces(ask, n)
		ask(300 * mem.MiB)
	})
	r := searched(t, s, Options{})
	if r.Recorded.Refused != 1 || r.Best == nil || r.Best.Refused != 0 || r.Best.Spread[1] > capacity {
		t.Errorf("recorded %+v, best %+v", r.Recorded, r.Best)
	}
}

// TestSearchKeepsToWhatMadeItEmptyItsCache: a program that went on after the allocator had given its cache back
// lacked memory too.
func TestSearchKeepsToWhatMadeItEmptyItsCache(t *testing.T) {
	s := record(mem.GiB, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		n.Free(ask(600 * mem.MiB))
		n.Free(ask(300 * mem.MiB))
		ask(700 * mem.MiB)
		ask(200 * mem.MiB)
	})
	if r := searched(t, s, Options{}); r.Searched.Capacity != 900*mem.MiB || r.Best == nil ||
		r.Best.Reserved > 900*mem.MiB {
		t.Errorf("recorded %+v, best %+v", r.Recorded, r.Best)
	}
}

// TestDevices: what was recorded is held against all devices with a history, and a what-if says which it is of.
func TestDevices(t *testing.T) {
	do := func(ask func(mem.Bytes) allocator.Handle, _ *allocator.Native) { ask(30 * mem.MiB) }
	s := record(0, everything, do)
	second := record(0, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		do(ask, n)
		ask(50 * mem.MiB)
	})
	second.Traces[0].Device = 1
	for i := range second.Segments {
		second.Segments[i].Device = 1
	}
	s.Traces, s.Segments = append(s.Traces, second.Traces...), append(s.Segments, second.Segments...)
	source := []Source{{"two.pickle", s}}
	r, err := Run(t.Context(), source, Options{Device: -1, Verify: true})
	if err != nil || len(r.Files) != 2 || r.Files[1].Trace() != "two.pickle, device 1" || r.Addresses != 3 ||
		!r.Verified.Exact() {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = Run(t.Context(), source, Options{Device: -1})
	if err != nil || r.Device != 1 || !strings.Contains(strings.Join(r.Notes, " "),
		"device 1 is replayed, which has the longest history of 2") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSearchIsAgainstAFreshStart: what was cached before the trace began is not a gain of a setting, nor is a search
// beyond a limit that was given.
func TestSearchIsAgainstAFreshStart(t *testing.T) {
	do := func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		n.Free(ask(972 * mem.MiB))
		ask(100 * mem.MiB)
		ask(200 * mem.MiB)
	}
	r := searched(t, record(0, 1, do), Options{})
	if b := r.Best; b == nil || b.AllocConf != r.Recorded.AllocConf || b.GainFresh != 0 || b.Gain <= 0 {
		t.Errorf("of a ring with one event: recorded %+v, best %+v", r.Recorded, b)
	}
	if text := strings.Join(r.SearchText(false), "\n"); strings.Contains(text, "Best:") || !strings.Contains(text,
		"From a fresh start it reserves 672 MiB less than recorded") {
		t.Error(text)
	}
	again, err := Run(t.Context(), []Source{{"made.pickle", record(0, 1, do)}}, Options{Device: -1, Fresh: true})
	if err != nil || again.Reserved != r.Best.Reserved || again.SegmentCalls != r.Best.SegmentCalls ||
		again.Spread != r.Best.Spread || !strings.Contains(again.Table().Text(report.TextOptions{}),
		"default, from a fresh start") {
		t.Errorf("from a fresh start %+v, best %+v: %v", again.Figures, r.Best, err)
	}
	const begun = "so begun, the recorded ones reserve 300 MiB, with 2 calls of the driver."
	other, err := Run(t.Context(), []Source{{"made.pickle", record(0, 1, do)}},
		Options{Device: -1, AllocConf: expandable, Changed: true})
	if err != nil || !strings.Contains(strings.Join(other.Notes, " "), begun) {
		t.Errorf("%v, %v", other.Notes, err)
	}
	w, err := NewWhatIf(record(0, 1, do), 0)
	if err != nil {
		t.Fatal(err)
	}
	if tried := try(t, w, Trial{Settings: &expandable}); !strings.Contains(tried.Note, begun) {
		t.Error(tried.Sentence, tried.Note)
	}
	if tried := try(t, w, Trial{}); tried.Note != "" || tried.Recorded.Curve.Reserved[0] != 972*mem.MiB {
		t.Errorf("as recorded: %+v", tried)
	}
	r = searched(t, record(0, everything, do), Options{Memory: "250MiB"})
	if text := strings.Join(r.SearchText(false), "\n"); r.Best != nil || !strings.Contains(text, "None of them runs to the end there.") {
		t.Errorf("%+v\n%s", r.Best, text)
	}
}

// TestSearchKeepsToWhatWasRecorded: a setting is not called the best for more than the record took. What lies in one
// segment there, the larger block behind the smaller one, takes two from a fresh start.
func TestSearchKeepsToWhatWasRecorded(t *testing.T) {
	r := searched(t, record(0, 1, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		n.Free(ask(26 * mem.MiB))
		ask(15 * mem.MiB)
		ask(11 * mem.MiB)
	}), Options{})
	if r.Recorded.Reserved != 26*mem.MiB || r.Best != nil && r.Best.Spread[1] > r.Recorded.Reserved {
		t.Errorf("recorded %+v, best %+v", r.Recorded, r.Best)
	}
}

// TestWhatIsAdvisedHoldsAgain: the settings that a search calls best give what it promised when they alone are
// replayed, without a device named. No replay of a record takes more than its device had.
func TestWhatIsAdvisedHoldsAgain(t *testing.T) {
	for name, do := range map[string]func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native){
		"pieces, and a request that failed": func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
			leavePieces(ask, n)
			ask(300 * mem.MiB)
			ask(16 << 40)
		},
		"a cache given back": func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
			n.Free(ask(600 * mem.MiB))
			n.Free(ask(300 * mem.MiB))
			ask(700 * mem.MiB)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := record(mem.GiB, everything, do)
			best := searched(t, s, Options{}).Best
			again, err := Run(t.Context(), []Source{{"made.pickle", s}},
				Options{Device: -1, AllocConf: best.AllocConf, Changed: true})
			if err != nil {
				t.Fatal(err)
			}
			if again.Reserved != best.Reserved || again.Refused != best.Refused || again.Reserved > mem.GiB {
				t.Errorf("promised %+v, again %+v", best.Figures, again.Figures)
			}
			if said := again.Words(); !strings.Contains(said, "as the trace says; --memory names another limit") {
				t.Errorf("%q", said)
			}
			plain, err := Run(t.Context(), []Source{{"made.pickle", s}}, Options{Device: -1})
			if err != nil || plain.Reserved != plain.Recorded.Reserved {
				t.Errorf("%+v of %+v, %v", plain.Figures, plain.Recorded, err)
			}
		})
	}
}
