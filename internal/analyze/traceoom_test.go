package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// What torch's own message said when it ran out (testdata/imagined/oom-a10-pieces.py prints it): 603.81 MiB
// free, 1.56 GiB reserved and unallocated, in eight pieces of 200 MiB. The final state holds nothing.
func TestOOMIsExplainedAtItsOwnMoment(t *testing.T) {
	s := openSnapshot(t, "../imagined/oom-a10-pieces.pickle")
	if end := s.Totals(0); end.Allocated != 0 || end.Reserved != 0 {
		t.Fatalf("the trace is to end empty, and has %+v", end)
	}
	a, err := ExplainDevice(s, 0, "oom", ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := a.OOM
	if o == nil {
		t.Fatal("no out-of-memory was found")
	}
	if o.Asked != mem.GiB || o.DeviceFree != 633143296 || o.Cached != 1677721600 || o.Pieces != 8 || o.LargestFree != 200*mem.MiB || o.Allocated+o.Cached != o.Reserved {
		t.Errorf("%+v", *o)
	}
	if !o.WouldFit || o.Contiguous {
		t.Errorf("fits %v, contiguous %v", o.WouldFit, o.Contiguous)
	}
	if len(o.Blame) == 0 || !strings.Contains(o.Blame[0].Name, "oom-a10-pieces.py") {
		t.Errorf("blames %+v", o.Blame)
	}
	if text := o.finding(0, s.Label).Text; !strings.Contains(text, "8 pieces, the largest of 200 MiB") {
		t.Error(text)
	}
}
