package observe

import (
	"testing"

	"hightide/internal/mem"
)

// TestHighWater: whose the mark is that the kernel tells for the command and all below it.
func TestHighWater(t *testing.T) {
	const small, large, mark = 10 << 30, 12 << 30, 20 << 30 // all above what the test itself has resident
	for _, c := range []struct {
		name                string
		main, child         int64 // as last seen
		mainBye, childBye   bool
		wantMain, wantChild int64
	}{
		{"the largest is the command", large, small, false, false, mark, small},
		{"the child was killed, and is the larger", small, large, false, false, small, mark},
		{"the command has told its own mark", large, small, true, false, large, mark},
		{"the child has told its own mark", small, large, false, true, small, large},
		{"both have", small, large, true, true, small, large},
		{"the mark was seen", mark, small, false, false, mark, small},
	} {
		t.Run(c.name, func(t *testing.T) {
			main := &process{bye: c.mainBye}
			child := &process{bye: c.childBye, gone: true}
			main.MaxRSS, child.MaxRSS = mem.Some(c.main), mem.Some(c.child)
			r := &Recorder{order: []*process{main, child}}
			r.highWater(main, mark)
			if got := [2]int64{main.MaxRSS.Or(0), child.MaxRSS.Or(0)}; got != [2]int64{c.wantMain, c.wantChild} {
				t.Errorf("command and child have %d, want %d and %d", got, c.wantMain, c.wantChild)
			}
		})
	}
}
