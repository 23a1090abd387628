package run

import (
	"strconv"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// holds is a list that gains an item of so many bytes each step.
func holds(name string, line int, each mem.Bytes) mem.Holder {
	return mem.Holder{Kind: "list", Name: name, Where: mem.Location{File: "/p/train.py", Line: line}, Items: 300,
		PerStep: 1, Contains: "Model",
		Tensors: mem.Some(300 * int64(each))}
}

func growsAt(line int, each mem.Bytes) source {
	return source{stack: userLine(line), step: leakOf(each, 32*mem.KiB)}
}

// TestItemOverTwoLines: the bytes of one container's items may come from several lines, as weights and gradients do.
// Lines that do not add up to it are others' causes.
func TestItemOverTwoLines(t *testing.T) {
	s := training(4, growsAt(40, 1*mem.MiB), growsAt(41, 1*mem.MiB))
	s.holders = []mem.Holder{holds("trials", 12, 2*mem.MiB)}
	f := only(t, s.run())
	if f.Holder != "trials" || f.Line != 12 || !strings.Contains(f.Text, "allocated at 2 lines") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
	near(t, f, 2*mem.MiB, 0.15)

	s.holders = []mem.Holder{holds("trials", 12, 16*mem.MiB)}
	if found := leaks(Analyze(s.run(), Options{})); len(found) != 2 || found[0].Holder+found[1].Holder != "" {
		t.Errorf("joined to what they do not add up to: %+v", found)
	}
}

// TestOneLineOfSeveralContainers: a helper's line may allocate what several containers keep. The figure is of them all,
// whether one of them nearly fits or none does.
func TestOneLineOfSeveralContainers(t *testing.T) {
	s := training(4, growsAt(40, 4*mem.MiB))
	s.holders = []mem.Holder{holds("test", 12, 3*mem.MiB), holds("train", 14, 1*mem.MiB)}
	f := only(t, s.run())
	near(t, f, 4*mem.MiB, 0.15)
	for _, want := range []string{"the list `train` (train.py:14) gains 1 item per step", "Together they keep 4.",
		"75 % in `test`"} {
		if !strings.Contains(f.Text, want) {
			t.Errorf("%q is not in %s", want, f.Text)
		}
	}
	if f.Holder != "test" || !strings.Contains(f.Advice, "Bound `test` and `train`") {
		t.Errorf("%s → %s", f.Title, f.Advice)
	}
	s.holders = []mem.Holder{holds("a", 12, 1*mem.MiB), holds("b", 13, 1*mem.MiB), holds("c", 14, 2*mem.MiB)}
	if f := only(t, s.run()); f.Holder != "c" || !strings.Contains(f.Text, "50 % in `c`, 25 % in `a` and 25 % in `b`") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
	s.holders = []mem.Holder{holds("all", 12, 4*mem.MiB), holds("same", 14, 4*mem.MiB)}
	if f := only(t, s.run()); strings.Contains(f.Text, "Together") {
		t.Errorf("items that two containers share: %s", f.Text)
	}
}

// TestLessIsSampledThanIsHeld: of a library's own allocator the sampler sees a part. The one line is the one
// container's, and both figures are told where the process grew as much; else the items share memory.
func TestLessIsSampledThanIsHeld(t *testing.T) {
	s := training(5, growsAt(40, 1*mem.MiB))
	s.holders = []mem.Holder{holds("kept", 12, 3*mem.MiB)}
	if f := only(t, s.run()); f.Holder != "kept" || strings.Contains(f.Text, "By the sizes") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
	s.kinds = map[mem.Quantity]func(int) mem.Bytes{
		mem.SeriesRSSShared: func(step int) mem.Bytes { return mem.Bytes(step/200) * 400 * mem.MiB }} // at once: no rate
	if f := only(t, s.run()); f.Holder != "kept" || !strings.Contains(f.Text, "it is 3.00 MiB per step (estimated)") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
	s.kinds = nil
	s.holders = []mem.Holder{holds("kept", 12, mem.MiB/4)}
	if f := only(t, s.run()); f.Holder != "" {
		t.Errorf("joined to a container that keeps less than the line: %s", f.Title)
	}
}

// TestSizesAgreeWithTheWhole: where the process as a whole grows as fast as the sizes of the items say, these are the
// figure.
func TestSizesAgreeWithTheWhole(t *testing.T) {
	s := training(5, growsAt(40, 1*mem.MiB))
	s.holders = []mem.Holder{holds("kept", 12, 3*mem.MiB)}
	s.kinds = map[mem.Quantity]func(int) mem.Bytes{
		mem.SeriesRSSShared: func(step int) mem.Bytes { return mem.Bytes(step) * 2 * mem.MiB }}
	f := only(t, s.run())
	if f.BytesPerStep.Or(0) != int64(3*mem.MiB) || f.Label != mem.Estimated || f.Error.Known() ||
		!strings.Contains(f.Text, "The sampled heap shows 1.") || !strings.Contains(f.Advice, "saves 3.00 MiB per step") {
		t.Errorf("%s: %s → %s", f.Title, f.Text, f.Advice)
	}
}

// TestSeveralStatements: of those that may be it, the one that the allocation went through is named; else all of
// them, and that it is not known.
func TestSeveralStatements(t *testing.T) {
	s := training(6, growsAt(40, 1*mem.MiB))
	h := holds("kept", 12, 1*mem.MiB)
	h.Others = []mem.Location{{File: "/p/train.py", Line: 14}}
	s.holders = []mem.Holder{h}
	f := only(t, s.run())
	if !strings.Contains(f.Title, "train.py:12 or 14") ||
		!strings.Contains(f.Text, "which of these adds what is kept was not seen") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
	s.holders[0].Ran = true
	if f := only(t, s.run()); !strings.Contains(f.Text, "each of these was seen to add") {
		t.Errorf("%s", f.Text)
	}
	through := userLine(40)[0]
	s.holders[0].Others = []mem.Location{{File: through.File, Line: 40}}
	if f := only(t, s.run()); f.Line != 40 || strings.Contains(f.Title, " or ") {
		t.Errorf("%s", f.Title)
	}
}

// TestFreedGraph: items whose graph backward has freed keep no activations, so that they explain no other line's
// growth.
func TestFreedGraph(t *testing.T) {
	s := training(7, growsAt(40, 1*mem.MiB))
	losses := mem.Holder{Kind: "list", Name: "losses", Where: mem.Location{File: "/p/train.py", Line: 7}, Items: 300,
		PerStep: 1, Contains: "Tensor",
		Graph: true, Tensors: mem.Some(1200), Saved: mem.Some(0)}
	s.holders = []mem.Holder{losses}
	if f := only(t, s.run()); f.Holder != "" {
		t.Errorf("%s", f.Title)
	}
	s.holders[0].Saved = mem.Some(int64(mem.MiB))
	if f := only(t, s.run()); f.Holder != "losses" || !strings.Contains(f.Text, "activations") {
		t.Errorf("%s", f.Title)
	}
}

// TestWhereWasLooked: native code is named only where all of Python's heap was looked through.
func TestThreadsBesideALeak(t *testing.T) {
	for _, c := range []struct {
		threads func(at int64) int64
		told    bool
	}{
		{func(at int64) int64 { return 4 + at/1e9 }, true},
		{func(at int64) int64 { return 4 + min(at/1e9, 40) }, false}, // a pool, filled in the first half
		{func(int64) int64 { return 4 }, false},
	} {
		run := training(9, growsAt(40, 1*mem.MiB)).run()
		s := mem.Samples{Series: 777}
		must(run, mem.SeriesDef{ID: 777, Process: run.Processes[0].ID, Name: mem.SeriesThreads, Unit: mem.UnitCount})
		first, last := run.Steps[0].Time, run.Steps[len(run.Steps)-1].Time
		for n := range int64(101) {
			s.Times, s.Values = append(s.Times, first+n*(last-first)/100), append(s.Values, c.threads(n*1e9))
		}
		must(run, s)
		f := only(t, run)
		if told := strings.Contains(f.Text, "Its threads rise meanwhile"); told != c.told ||
			strings.Contains(f.Advice, "a thread that does not end") != c.told {
			t.Errorf("%s\n%s", f.Text, f.Advice)
		}
	}
}

func TestWhereWasLooked(t *testing.T) {
	said := func(facts map[string]string) string {
		run := training(9, growsAt(40, 1*mem.MiB)).run()
		for key, value := range facts {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && key != "scans" {
				run.Processes[0].SetNumber(key, n)
			} else {
				run.Processes[0].Facts[key] = value
			}
		}
		return only(t, run).Text
	}
	if text := said(nil); strings.Contains(text, "No container") {
		t.Errorf("never looked: %s", text)
	}
	if text := said(map[string]string{"scans": "4"}); strings.Contains(text, "ative code") || !strings.Contains(text, "was not looked through") {
		t.Errorf("%s", text)
	}
	if text := said(map[string]string{"scans": "4", "heap_walk": "123456"}); !strings.Contains(text, "Native code may keep it") ||
		!strings.Contains(text, "123,456 objects") {
		t.Errorf("%s", text)
	}
	text := said(map[string]string{"scans": "4", "replaced": "list `kept`"})
	if strings.Contains(text, "looked through") || !strings.Contains(text, "But the list `kept` was another at each look, and longer") {
		t.Errorf("%s", text)
	}
	if text := said(map[string]string{"scans": "4", "heap_walk": "1", "heap_grows": "1 Node per step"}); strings.Contains(text, "ative code") || !strings.Contains(text, "1 Node per step") {
		t.Errorf("%s", text)
	}
}

// TestReplacedByLonger: what is made of itself again and again gains items as well, and no deque takes its place.
func TestReplacedByLonger(t *testing.T) {
	s := training(10, growsAt(40, 1*mem.MiB))
	kept := holds("kept", 14, 1*mem.MiB)
	kept.Renewed = true
	s.holders = []mem.Holder{kept}
	f := only(t, s.run())
	if !strings.Contains(f.Text, "is replaced again and again by a longer one that is made of it, and gains") {
		t.Errorf("%s", f.Text)
	}
	if strings.Contains(f.Advice, "deque") || !strings.Contains(f.Advice, "Bound `kept`") {
		t.Errorf("%s", f.Advice)
	}
}

// TestLineThatBecomesKnown: a container is one, although its statement is known better the next time that it is seen.
func TestLineThatBecomesKnown(t *testing.T) {
	s := training(10, growsAt(40, 1*mem.MiB))
	first, later := holds("kept", 12, 1*mem.MiB), holds("kept", 14, 1*mem.MiB)
	first.Others, later.Ran = []mem.Location{later.Where}, true
	s.holders = []mem.Holder{first, later}
	if f := only(t, s.run()); f.Line != 14 || strings.Contains(f.Title, " or ") {
		t.Errorf("%s", f.Title)
	}
}

// TestOneBlock: a buffer that gets larger where it is looks like a line whose memory is kept. It is one cause, with
// the advice for its kind, and what may be in it is bytes, not items.
func TestOneBlock(t *testing.T) {
	s := training(12, growsAt(40, 1*mem.MiB))
	for kind, advice := range map[string]string{"bytearray": "del buffer[:n]", "array.array": "del values[:n]",
		"BytesIO": "truncate()", "str": "to a file"} {
		h := mem.Holder{Kind: kind, Name: "log", Where: mem.Location{File: userLine(40)[0].File, Line: 40},
			Items: 300 * int64(mem.MiB), PerStep: float64(mem.MiB), Contains: "byte",
			Tensors: mem.Some(300 * int64(mem.MiB))}
		s.holders = []mem.Holder{h}
		f := only(t, s.run())
		if f.Holder != "log" || !strings.Contains(f.Text, "The "+kind+" `log`") || strings.Contains(f.Text, "items") ||
			!strings.Contains(f.Advice, advice) {
			t.Errorf("%s: %s → %s", f.Title, f.Text, f.Advice)
		}
		near(t, f, 1*mem.MiB, 0.15)
		s.holders[0].Where.Line = 7
		if f := only(t, s.run()); f.Holder != "" {
			t.Errorf("joined to another line: %s", f.Title)
		}
	}
}

// TestAdviceByKind: what helps follows from what the container is.
func TestAdviceByKind(t *testing.T) {
	s := training(13, growsAt(40, 1*mem.MiB))
	for kind, advice := range map[string]string{"list": "deque(maxlen=…)", "dict": "next(iter(d))",
		"backlog of executor": "semaphore", "queue": "maxsize"} {
		h := holds("work", 12, 1*mem.MiB)
		h.Kind = kind
		s.holders = []mem.Holder{h}
		f := only(t, s.run())
		if !strings.Contains(f.Advice, advice) || kind != "list" && strings.Contains(f.Advice, "deque") {
			t.Errorf("%s: %s", kind, f.Advice)
		}
	}
}

// TestAlike: lists that one statement makes grow, one for each class of a data set, are one container.
func TestAlike(t *testing.T) {
	s := training(11, growsAt(40, 1*mem.MiB))
	for _, key := range []string{"0", "1", "2"} {
		h := holds("by_class["+key+"]", 12, 1*mem.MiB)
		h.PerStep, h.Items, h.Tensors = 1.0/3, 100, mem.Some(100*int64(mem.MiB))
		s.holders = append(s.holders, h)
	}
	if f := only(t, s.run()); f.Holder != "by_class[…]" || f.Line != 12 ||
		!strings.Contains(f.Text, "gains 1 item per step") {
		t.Errorf("%s: %s", f.Title, f.Text)
	}
}

// TestFewSamples: a growth that is too near the noise of its samples is one where a container is seen to gain items that
// hold as much; else it is said that it is not known.
func TestFewSamples(t *testing.T) {
	unsure, sure := 0, 0
	for seed := range uint64(30) {
		s := training(seed, growsAt(40, 40*mem.KiB))
		s.mean, s.real = 1*mem.MiB, 0
		r := Analyze(s.run(), Options{})
		if len(leaks(r)) > 0 || !strings.Contains(r.Headline.Nothing, "Whether train.py:40 keeps more and more is not known") {
			continue
		}
		unsure++
		if r.Headline.Well {
			t.Errorf("seed %d: all is well, and not known: %s", seed, r.Headline.Nothing)
		}
		s.holders = []mem.Holder{holds("kept", 12, 40*mem.KiB)}
		if found := leaks(Analyze(s.run(), Options{})); len(found) == 1 && found[0].Holder == "kept" {
			sure++
		}
		s.holders = []mem.Holder{holds("other", 12, 4*mem.KiB)}
		if found := leaks(Analyze(s.run(), Options{})); len(found) > 0 {
			t.Errorf("seed %d: joined to what keeps less: %s", seed, found[0].Title)
		}
	}
	if t.Logf("%d of 30 unsure, %d of them told by the container", unsure, sure); unsure < 5 || sure < unsure {
		t.Errorf("%d of 30 unsure, %d of them told by the container", unsure, sure)
	}
}

// TestItemsToRelease: a block of shared memory outlives the object that stands for it, so that dropping that is no
// advice.
func TestItemsToRelease(t *testing.T) {
	s := training(14, growsAt(40, 1*mem.MiB))
	h := holds("blocks", 12, 1*mem.MiB)
	h.Contains = "SharedMemory"
	s.holders = []mem.Holder{h}
	if f := only(t, s.run()); !strings.Contains(f.Advice, "unlink() of what `blocks` no longer needs") ||
		strings.Contains(f.Advice, "deque") {
		t.Errorf("%s", f.Advice)
	}
}
