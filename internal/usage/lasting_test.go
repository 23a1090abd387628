package usage

import (
	"testing"

	"hightide/internal/mem"
)

// course plays a site for 100 readings, 100 ms apart: what it holds, when that was allocated, and what it freed when
// it was old.
func course(t *testing.T, live func(i int) mem.Bytes, born func(bin int) mem.Bytes, outlived mem.Bytes) []Growing {
	t.Helper()
	return courseRead(t, live, born, outlived, readings)
}

const readings, every, bins = 100, int64(1e8), 20

// sizeOfBlocks is what one sample stands for, where there are more than ten.
var sizeOfBlocks = 80 * mem.MiB

// courseRead is course where the ages were last read after some of the readings; and again shortly after the end, where
// `later` says what was freed by then.
func courseRead(t *testing.T, live func(i int) mem.Bytes, born func(bin int) mem.Bytes, outlived mem.Bytes,
	read int64, later ...mem.Bytes) []Growing {
	t.Helper()
	run := mem.NewRun()
	frames := []mem.Frame{mem.Process{ID: 1, PID: 1}, mem.StackDef{ID: 1,
		Locations: []mem.Location{{File: "/home/me/a.py", Line: 7, Function: "f"}}}}
	ages := mem.HeapAges{Process: 1, Time: read * every, From: 0, Width: readings * every / bins,
		Sites: []mem.SiteAges{{Stack: 1, Outlived: outlived}}}
	for bin := range bins {
		ages.Sites[0].Born = append(ages.Sites[0].Born, born(bin))
	}
	var allocated mem.Bytes
	for i := range readings {
		allocated += 8 * mem.MiB
		count := uint64(max(live(i)/sizeOfBlocks, 10))
		frames = append(frames, mem.HeapUse{Process: 1, Time: int64(i+1) * every, Live: live(i),
			Sites: []mem.SiteUse{{Stack: 1, Live: live(i), Count: count, Allocated: allocated}}})
	}
	frames = append(frames, ages)
	for _, freed := range later {
		again := ages
		again.Time, again.Sites = (readings+1)*every, []mem.SiteAges{{Stack: 1, Outlived: freed, Born: ages.Sites[0].Born}}
		frames = append(frames, again)
	}
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	h := FromHeap(run, 1)
	cut := Bins{ToTheEnd: true}
	for i := range readings {
		cut.Stretches, cut.X = append(cut.Stretches, Stretch{i, i}), append(cut.X, float64(i))
	}
	return h.Growing(NewNames(&run.Stacks), cut, float64(4*mem.MiB), Trend{}, nil)
}

func rising(i int) mem.Bytes { return mem.Bytes(i) * 8 * mem.MiB }

// TestKeptForGood: blocks of every age are a leak, young ones alone only get larger.
func TestKeptForGood(t *testing.T) {
	if g := course(t, rising, func(int) mem.Bytes { return 40 * mem.MiB }, 0); len(g) != 1 || !g[0].Steady || g[0].Larger {
		t.Errorf("blocks that stay: %+v", g)
	}
	young := func(bin int) mem.Bytes {
		if bin < 19 {
			return 0
		}
		return 800 * mem.MiB
	}
	if g := course(t, rising, young, 0); len(g) != 1 || g[0].Steady || !g[0].Larger {
		t.Errorf("blocks that only get larger: %+v", g)
	}
}

// TestGrowthBesideWhatComesAndGoes: what a line frees at once, as a copy its lists that were too short, hides no growth
// of the blocks that stay. A rise of as much may be chance where what it held before is gone.
func TestGrowthBesideWhatComesAndGoes(t *testing.T) {
	defer func(size mem.Bytes) { sizeOfBlocks = size }(sizeOfBlocks)
	sizeOfBlocks = 512 * mem.KiB
	few := func(i int) mem.Bytes { return mem.Bytes(i) * 26 * mem.MiB / readings }
	stay := func(int) mem.Bytes { return 26 * mem.MiB / bins }
	if g := course(t, few, stay, 0); len(g) != 1 || !g[0].Steady {
		t.Errorf("blocks that stay: %+v", g)
	}
	late := func(bin int) mem.Bytes {
		if bin < bins/2 {
			return 0
		}
		return 4 * mem.MiB
	}
	replaced := func(i int) mem.Bytes { return 10*mem.MiB + mem.Bytes(i)*30*mem.MiB/readings }
	if g := course(t, replaced, late, 0); len(g) != 1 || g[0].Steady || g[0].Why != Unsure {
		t.Errorf("blocks that are replaced: %+v", g)
	}
}

// TestTouchedLate: memory that was allocated at first and is used bit by bit is neither kept anew nor replaced.
func TestTouchedLate(t *testing.T) {
	first := func(bin int) mem.Bytes {
		if bin > 0 {
			return 0
		}
		return 792 * mem.MiB
	}
	if g := course(t, rising, first, 0); len(g) != 1 || g[0].Steady || g[0].Larger || !g[0].Touched {
		t.Errorf("%+v", g)
	}
}

// TestBufferFullLate: a buffer that was filled for five sixths of the time is none that grows.
func TestBufferFullLate(t *testing.T) {
	full := func(i int) mem.Bytes { return rising(min(i, 84)) }
	born := func(bin int) mem.Bytes {
		if bin < 3 {
			return 0
		}
		return 40 * mem.MiB
	}
	if g := course(t, full, born, 15*8*mem.MiB); len(g) != 0 {
		t.Errorf("%+v", g[0].Trend)
	}
}

// TestBufferFullLateReadEarly: the ages were read some time before the end, so what was freed since is not known. And
// the samples of what is replaced all the time differ a little, which is not an end of the process.
func TestBufferFullLateReadEarly(t *testing.T) {
	born := func(bin int) mem.Bytes {
		if bin < 2 {
			return 0
		}
		return 40 * mem.MiB
	}
	full := func(i int) mem.Bytes { return rising(min(i, 84)) + rising(max(i-92, 0))*7/10 }
	if g := courseRead(t, full, born, 8*8*mem.MiB, 92); len(g) != 0 {
		t.Errorf("ages read early: %+v", g[0].Trend)
	}
	wavers := func(i int) mem.Bytes {
		if i > 90 {
			return rising(83) * 97 / 100
		}
		return rising(min(i, 83))
	}
	if g := courseRead(t, wavers, born, 16*8*mem.MiB, 99); len(g) != 0 {
		t.Errorf("other samples at the end: %+v", g[0].Trend)
	}
}

// TestEndOfProcess: what a program gives back as it ends hides no growth.
func TestEndOfProcess(t *testing.T) {
	ends := func(i int) mem.Bytes {
		if i >= 97 {
			return 0
		}
		return rising(i)
	}
	if g := course(t, ends, func(int) mem.Bytes { return 40 * mem.MiB }, 0); len(g) != 1 || !g[0].Steady {
		t.Errorf("%+v", g)
	}
}

// TestBufferFullLateReadAgain: the last reading within the time came when little was freed, the one at the program's
// last line tells the rest.
func TestBufferFullLateReadAgain(t *testing.T) {
	full := func(i int) mem.Bytes { return rising(min(i, 94)) }
	born := func(bin int) mem.Bytes {
		if bin < 2 {
			return 0
		}
		return 40 * mem.MiB
	}
	if g := courseRead(t, full, born, 2*8*mem.MiB, 90); len(g) != 1 {
		t.Errorf("it is told without the later reading: the test tests nothing")
	}
	if g := courseRead(t, full, born, 2*8*mem.MiB, 90, 9*8*mem.MiB); len(g) != 0 {
		t.Errorf("%+v", g[0].Trend)
	}
}
