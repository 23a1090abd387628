package observe

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/sampler"
)

// TestHighWater: whose the mark is that the kernel tells for the command and all below it.
func TestHighWater(t *testing.T) {
	const small, large, mark = 10 << 30, 12 << 30, 20 << 30 // all above what the test itself has resident
	const nearly = mark - 1<<30
	for _, c := range []struct {
		name                string
		main, child         int64 // as last seen
		mainBye, childBye   bool
		wantMain, wantChild int64
	}{
		{"the largest is the command", large, small, false, false, mark, small},
		{"the child was killed, and is the larger", small, large, false, false, small, mark},
		{"the command has told its own mark", large, small, true, false, large, mark},
		{"the child has told its own mark", small, large, false, true, mark, large},
		{"both have", small, large, true, true, small, large},
		{"the command grew while its interpreter ended, a worker was killed", nearly, small, true, false, mark, small},
		{"a wrapper of a command that grew while its interpreter ended", 1 << 20, nearly, false, true, 1 << 20, mark},
		{"the mark was seen", mark, small, false, false, mark, small},
	} {
		t.Run(c.name, func(t *testing.T) {
			main := &process{bye: c.mainBye, gone: true}
			child := &process{bye: c.childBye, gone: true}
			main.MaxRSS, child.MaxRSS = mem.Some(c.main), mem.Some(c.child)
			r := newRecorder(&Options{}, memorySink{t, mem.NewRun()})
			r.order = []*process{main, child}
			r.highWater(mark)
			if got := [2]int64{main.MaxRSS.Or(0), child.MaxRSS.Or(0)}; got != [2]int64{c.wantMain, c.wantChild} {
				t.Errorf("command and child have %d, want %d and %d", got, c.wantMain, c.wantChild)
			}
		})
	}
}

// TestMarkOfWhatWasRead: a mark that is a few pages above a reading is not a later peak.
func TestMarkOfWhatWasRead(t *testing.T) {
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x"}, sink)
	w, p := watcher{r}, &sampler.Process{PID: noProcess, StartTicks: 1}
	for time, rss := range []int64{100 << 20, 1000 << 20, 20 << 20} {
		w.Sample(p, "", mem.SeriesRSS, int64(time+1), rss)
		w.Sample(nil, "", mem.SeriesTreeRSS, int64(time+1), rss)
	}
	p.Usage.MaxRSS = mem.Some(1000<<20 + 4096)
	w.Gone(p, 4)
	r.flush(true)
	for _, s := range sink.run.Series {
		if at := s.Times[s.Peak()]; at != 2 {
			t.Errorf("%s is highest at %d, want 2: %v %v", s.Name, at, s.Times, s.Values)
		}
	}
	if got := sink.run.Processes[0].MaxRSS; got != mem.Some(int64(1000<<20+4096)) {
		t.Errorf("the process has %v", got)
	}
}

// TestMarkAfterTheMemoryIsGone: a process grew after it was last looked at, and has given all back when it is looked
// at once more. It had what its mark says. The tree had that with what the others had. The same where it was read
// once more between two readings of the tree.
func TestMarkAfterTheMemoryIsGone(t *testing.T) {
	for _, between := range []bool{false, true} {
		markAfterTheMemoryIsGone(t, between)
	}
}

func markAfterTheMemoryIsGone(t *testing.T, between bool) {
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x"}, sink)
	w := watcher{r}
	first, second := &sampler.Process{PID: noProcess, StartTicks: 1}, &sampler.Process{PID: noProcess, StartTicks: 2}
	look := func(time int64, rss ...int64) {
		sum := int64(0)
		for i, p := range []*sampler.Process{first, second} {
			if sum += rss[i]; rss[i] > 0 {
				w.Sample(p, "", mem.SeriesRSS, time, rss[i])
			}
		}
		w.Sample(nil, "", mem.SeriesTreeRSS, time, sum)
		w.Sample(nil, "", mem.SeriesTreePSS, time, sum)
	}
	look(1, 100, 40)
	look(2, 100, 0) // the second is ending
	const end = 4
	second.Usage.MaxRSS = mem.Some(70)
	if between {
		w.Sample(second, "", mem.SeriesRSS, 3, 70)
	}
	w.Gone(second, end)
	r.flush(true)
	for _, name := range []mem.Quantity{mem.SeriesTreeRSS, mem.SeriesTreePSS} {
		if s := sink.run.Find(0, name); s.Values[s.Peak()] != 170 {
			t.Errorf("%s %v, want 170 at its highest", name, s.Values)
		} else if at := s.Times[s.Peak()]; at > end {
			t.Errorf("%s was highest at %d, after the process was gone at %d", name, at, end)
		}
	}
}
