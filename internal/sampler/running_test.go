package sampler

import (
	"testing"

	"hightide/internal/mem"
)

// TestMarkOfBefore: what a process had before it was first looked at is not a peak of what is seen; what it reaches
// then is.
func TestMarkOfBefore(t *testing.T) {
	command, end := start(t, "python3", "-c", `
import mmap, sys
def take(size):
    x = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for i in range(0, size, 4096): x[i] = 1
    x.close()
take(200 << 20)
print("ready", flush=True)
sys.stdin.readline()
`)
	defer end()
	sink := newSeen()
	s := New(Options{Leader: command.Process.Pid, WatchLeader: true, Running: true, Vendors: []Vendor{}}, sink)
	defer s.Close()
	for range 3 {
		s.Tick(monotonic())
	}
	p := s.tree.Find(command.Process.Pid)
	if p == nil {
		t.Fatal("it is not seen")
	}
	if before := p.Usage.Earlier.Or(0); before < 200<<20 {
		t.Errorf("the mark of before is %v", p.Usage.Earlier)
	}
	if p.Usage.MaxRSS.Known() {
		t.Errorf("its own mark is %v; it has not risen since", p.Usage.MaxRSS)
	}
	if rss := sink.last[key(nil, "", mem.SeriesTreeRSS)]; rss <= 0 || rss > 100<<20 {
		t.Errorf("the tree has %d: the mark of before counts in it", rss)
	}
}
