package trace

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// devicesProfile is what JAX saves of eight TPUs with a buffer on each, of a line of train.py, and a program of no
// device.
func devicesProfile(mib ...int64) *mem.Profile {
	p := &mem.Profile{Label: mem.Measured, Default: 1,
		Kinds: []mem.ProfileKind{{Name: "allocations", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes}}}
	stack := func(file string, line int) uint32 {
		return p.Stacks.Add([]uint32{p.Stacks.Location(mem.Location{File: file, Line: line, Function: "f"})})
	}
	for i, n := range mib {
		p.Samples = append(p.Samples, mem.ProfileSample{Stack: stack("/job/train.py", 1+i%2), Values: []int64{1, n << 20},
			Labels: map[string]string{"kind": "buffer", "device": fmt.Sprintf("TPU_%d(process=0,(%d,0,0,0))", i, i)}})
	}
	p.Samples = append(p.Samples, mem.ProfileSample{Stack: stack("/job/model.py", 3), Values: []int64{1, 0},
		Labels: map[string]string{"kind": "executable"}})
	return p
}

// TestNoShapes: what devices hold is told without shapes, so half of a batch is not estimated, and that is said.
func TestNoShapes(t *testing.T) {
	r := report.New()
	if err := OfProfile(r, devicesProfile(300), "x", Options{}); err != nil {
		t.Fatal(err)
	}
	if text := r.Text(report.TextOptions{Width: 400}); !strings.Contains(text, "x has bytes of arrays, and no shapes.") {
		t.Errorf("%s", text)
	}
	err := OfProfile(report.New(), devicesProfile(300), "x", Options{Batch: 64})
	if err == nil || !strings.Contains(err.Error(), "has no shapes") {
		t.Errorf("%v", err)
	}
}

// TestHalfOfABatch: the likeliest batch is told, or the one that was asked for, with the arguments that have it.
func TestHalfOfABatch(t *testing.T) {
	p := devicesProfile(300)
	p.Halves = []mem.Halved{{Batch: 1024, Arguments: []string{"x", "y", "z", "mask"}, Low: 100 << 20, High: 105 << 20},
		{Batch: 64, Arguments: []string{""}, Low: 100 << 20, High: 180 << 20}}
	for _, test := range []struct {
		o    Options
		says string
	}{
		{Options{}, "with half of its batch, 512 in place of 1,024, it would need 100 MiB to 105 MiB (estimated, by shapes)"},
		{Options{}, "was taken to be 1,024, a dimension of x, y, z and 1 other."},
		{Options{Batch: 64}, "with half of its batch, 32 in place of 64, it would need 100 MiB to 180 MiB"},
		{Options{Batch: 64}, "a dimension of arguments without a name."},
		{Options{Batch: 64}, "Both ends are far apart"},
		{Options{Batch: 7}, "x: no argument has a batch of 7; what may be one is 1,024, 64"},
	} {
		r := report.New()
		said := ""
		if err := OfProfile(r, p, "x", test.o); err != nil {
			said = err.Error()
		}
		said += r.Headline.Verdict + strings.Join(r.Notes, " ") + fmt.Sprint(r.Tables)
		if !strings.Contains(said, test.says) || test.o.Batch == 0 && strings.Contains(said, "far apart") {
			t.Errorf("%q, want %q", said, test.says)
		}
	}
	r := report.New()
	if err := OfProfile(r, devicesProfile(3), "x", Options{Batch: 7}); err == nil || len(r.Tables) > 0 {
		t.Errorf("%v, %v", err, r.Tables)
	}
}

// TestProfileOfDevices: eight devices of 238 MiB are not one of 1.86 GiB; what is asked for by device and frame is
// told alone.
func TestProfileOfDevices(t *testing.T) {
	even, uneven := devicesProfile(238, 238, 238, 238, 238, 238, 238, 238), devicesProfile(238, 10, 300, 1)
	for _, test := range []struct {
		p    *mem.Profile
		o    Options
		says string
	}{
		{even, Options{}, "x holds 238 MiB on each of 8 devices, in all 1.86 GiB (measured)"},
		{uneven, Options{}, "x holds 300 MiB on TPU_2(process=0,(2,0,0,0)), the fullest of 4 devices, in all 549 MiB"},
		{uneven, Options{Device: mem.Some(1)},
			"x holds 10.0 MiB (measured); the largest part, 10.0 MiB, is of `train.py:2`"},
		{uneven, Options{Device: mem.Some(7)}, "x: it has no device 7, but TPU_0("},
		{uneven, Options{Filter: regexp.MustCompile("model")}, "x with a frame that matches `model` holds 0 B"},
		{&mem.Profile{Kinds: even.Kinds, Default: 1}, Options{Device: mem.Some(0)},
			"does not say which device holds what"},
	} {
		r := report.New()
		said := ""
		if err := OfProfile(r, test.p, "x", test.o); err != nil {
			said = err.Error()
		}
		if said += r.Headline.Verdict; !strings.Contains(said, test.says) {
			t.Errorf("%q, want %q", said, test.says)
		}
	}
	r := report.New()
	_ = OfProfile(r, uneven, "x", Options{})
	if len(r.Tables) != 3 || fmt.Sprint(r.Tables[1].Rows[0]) != "[TPU_2(process=0,(2,0,0,0)) 314572800 546 1]" ||
		len(r.Tables[1].Rows) != 4 || len(r.Tables[2].Rows) != 2 {
		t.Errorf("%v", r.Tables)
	}
}
