package run

import (
	"math/rand/v2"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// rising is bytes that come with each step.
func rising(perStep mem.Bytes) func(int) mem.Bytes {
	return func(step int) mem.Bytes { return 100*mem.MiB + mem.Bytes(step)*perStep }
}

// TestKindsOfResidentMemory: growth is of what the kernel cannot take back. Pages of mapped files are no growth,
// unless they are locked; shared memory is, and what is swapped out, which RSS does not show.
func TestKindsOfResidentMemory(t *testing.T) {
	for _, test := range []struct {
		name  string
		kinds map[mem.Quantity]func(int) mem.Bytes
		leak  mem.Bytes // on the heap, per step, that is not sampled
		grows mem.Bytes // what is to be told, per step
	}{
		{"a mapped file is read", map[mem.Quantity]func(int) mem.Bytes{mem.SeriesRSSFile: rising(mem.MiB)}, 0, 0},
		{"a mapped file is read beside a leak",
			map[mem.Quantity]func(int) mem.Bytes{mem.SeriesRSSFile: rising(2 * mem.MiB)}, mem.MiB, mem.MiB},
		{"shared memory is filled", map[mem.Quantity]func(int) mem.Bytes{mem.SeriesRSSShared: rising(mem.MiB)}, 0, mem.MiB},
		{"what leaks is swapped out", map[mem.Quantity]func(int) mem.Bytes{mem.SeriesSwap: rising(mem.MiB)}, mem.MiB,
			mem.MiB},
		{"mapped files are locked", map[mem.Quantity]func(int) mem.Bytes{mem.SeriesRSSFile: rising(2 * mem.MiB),
			mem.SeriesLocked: func(step int) mem.Bytes {
				return mem.GiB + rising(2*mem.MiB)(step)
			}}, 0, 2 * mem.MiB},
	} {
		s := training(7)
		if test.leak > 0 {
			s = training(7, source{stack: userLine(leakLine), step: leakOf(test.leak, 64*mem.KiB)})
		}
		s.noHeap, s.kinds = true, test.kinds
		r := Analyze(s.run(), Options{})
		found := leaks(r)
		if test.grows == 0 {
			if len(found) > 0 || r.Headline.Growth.Or(-1) != 0 ||
				!strings.Contains(strings.Join(r.Notes, " "), "of mapped files") {
				t.Errorf("%s: %+v, headline %v, notes %q", test.name, found, r.Headline.Growth, r.Notes)
			}
			continue
		}
		if len(found) != 1 || found[0].Kind != report.KindGrowth {
			t.Errorf("%s: %+v", test.name, found)
			continue
		}
		near(t, found[0], test.grows, 0.1)
		if whole := mem.Bytes(r.Headline.Growth.Or(0)); whole < test.grows*9/10 || whole > test.grows*11/10 {
			t.Errorf("%s: %v in the headline", test.name, whole)
		}
	}
}

// onDevices is a run of one process that uses two devices, of which each grows at its own pace.
func onDevices(t *testing.T, env map[string]string, perStep [2]mem.Bytes) *mem.Run {
	t.Helper()
	s := training(8)
	run := s.run()
	run.Info.Env = env
	for n, name := range []string{"0", "1"} {
		run.Info.Host.GPUs = append(run.Info.Host.GPUs, mem.GPU{Index: n, Vendor: "NVIDIA",
			Memory: mem.Some(int64(10 * mem.GiB))})
		allocated := mem.Series{SeriesDef: mem.SeriesDef{ID: uint32(70 + n), Process: 1, Device: "cuda:" + name,
			Framework: "torch", Name: mem.SeriesAllocated, Unit: mem.UnitBytes, Label: mem.Measured}}
		used := mem.Series{SeriesDef: mem.SeriesDef{ID: uint32(72 + n), Device: "nvidia:" + name,
			Name: mem.SeriesDeviceUsed, Unit: mem.UnitBytes, Label: mem.Measured}}
		for i, step := range run.Steps {
			held := int64(mem.GiB + mem.Bytes(i)*perStep[n])
			allocated.Times, allocated.Values = append(allocated.Times, step.Time), append(allocated.Values, held)
			used.Times, used.Values = append(used.Times, step.Time), append(used.Values, held+int64(mem.GiB))
			run.Steps[i].Device = mem.Some(int64(mem.GiB)) // of the device that is the current one, whichever that is
		}
		run.Series = append(run.Series, &allocated, &used)
	}
	return run
}

// TestGrowthOnDevices: each device of a process is looked at, and memory runs out where a device grows, by its own
// size.
func TestGrowthOnDevices(t *testing.T) {
	r := Analyze(onDevices(t, nil, [2]mem.Bytes{0, 4 * mem.MiB}), Options{})
	found := leaks(r)
	if len(found) != 1 || !strings.Contains(found[0].Text, "on cuda:1") {
		t.Fatalf("%+v", found)
	}
	near(t, found[0], 4*mem.MiB, 0.02)
	// 10 GiB, of which 2 GiB and 299 steps of 4 MiB are in use.
	if !strings.Contains(r.Headline.Verdict, "out of memory in about 1,700 steps") {
		t.Errorf("%s", r.Headline.Verdict)
	}
	r = Analyze(onDevices(t, nil, [2]mem.Bytes{2 * mem.MiB, 4 * mem.MiB}), Options{})
	if found = leaks(r); len(found) != 1 || !strings.Contains(found[0].Text, "on 2 devices") ||
		strings.Contains(found[0].Text, "processes") {
		t.Errorf("%+v", found)
	}
	if !strings.Contains(r.Headline.Verdict, "grows 6.00 MiB per step (measured): out of memory in about 1,700 steps") {
		t.Errorf("%s", r.Headline.Verdict)
	}
	// Which card cuda:1 is of those that the program is shown, nothing says.
	r = Analyze(onDevices(t, map[string]string{"CUDA_VISIBLE_DEVICES": "1,0"}, [2]mem.Bytes{0, 4 * mem.MiB}), Options{})
	if strings.Contains(r.Headline.Verdict, "out of memory") {
		t.Errorf("%s", r.Headline.Verdict)
	}
}

// TestHostAndDeviceAreTwo: what grows on the host and what grows on a device are two findings, of one process each.
func TestHostAndDeviceAreTwo(t *testing.T) {
	run := onDevices(t, nil, [2]mem.Bytes{4 * mem.MiB, 0})
	for i := range run.Steps {
		run.Steps[i].RSS, run.Steps[i].Heap = mem.Some(run.Steps[i].RSS.Or(0)+int64(i)*int64(mem.MiB)), mem.Optional{}
	}
	run.Heap = nil
	found := leaks(Analyze(run, Options{}))
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	for _, f := range found {
		if strings.Contains(f.Text, "processes") {
			t.Errorf("%s", f.Text)
		}
	}
	near(t, found[0], 4*mem.MiB, 0.02)
	near(t, found[1], 1*mem.MiB, 0.05)
}

// TestRoomOfAGroup: page cache fills a control group in time, and is given back when memory is asked for.
func TestRoomOfAGroup(t *testing.T) {
	s := training(9, source{stack: userLine(leakLine), step: leakOf(mem.MiB, 64*mem.KiB)})
	run := s.run()
	for n, of := range []struct {
		name  mem.Quantity
		bytes mem.Bytes
	}{{mem.SeriesCgroupUsed, 4*mem.GiB - mem.MiB}, {mem.SeriesCgroupFile, 3*mem.GiB - mem.MiB},
		{mem.SeriesCgroupLimit, 4 * mem.GiB}} {
		run.Series = append(run.Series, &mem.Series{SeriesDef: mem.SeriesDef{ID: uint32(80 + n), Name: of.name,
			Unit: mem.UnitBytes, Label: mem.Measured},
			Times: []int64{4e9, 9e9}, Values: []int64{int64(of.bytes), int64(of.bytes)}})
	}
	if said := Analyze(run, Options{}).Headline.Verdict; !strings.Contains(said, "out of memory in about 3,") && !strings.Contains(said, "out of memory in about 2,9") {
		t.Errorf("%s", said)
	}
}

// TestContainerKeepsPart: a container that keeps half of what a process grows by is told with its half, and the whole
// beside it.
func TestContainerKeepsPart(t *testing.T) {
	s := training(1, source{stack: userLine(leakLine), step: leakOf(500*mem.KiB, 32*mem.KiB)})
	s.noHeap = true
	s.holders = []mem.Holder{{Kind: "list", Name: "outputs", Where: mem.Location{File: "/p/train.py", Line: 7},
		Items: 300, PerStep: 1, Contains: "Tensor", Tensors: mem.Some(int64(300 * 270 * mem.KiB))}}
	f := only(t, s.run())
	near(t, f, 270*mem.KiB, 0.01)
	if f.Line != 7 || f.Label != mem.Estimated || !strings.Contains(f.Text, "As a whole the process grows by 49") &&
		!strings.Contains(f.Text, "As a whole the process grows by 50") {
		t.Errorf("%s\n%s", f.Title, f.Text)
	}
	if v := Analyze(s.run(), Options{}).Headline.Verdict; !strings.Contains(v, "270 KiB of it (estimated) because") {
		t.Error(v)
	}
}

// TestWarmUpInTheFirstHalf: a warm-up that goes on for a third of the steps is not in the rate, and is said.
func TestWarmUpInTheFirstHalf(t *testing.T) {
	s := training(1, source{stack: userLine(leakLine), step: leakOf(200*mem.KiB, 32*mem.KiB)},
		source{stack: userLine(70), step: func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
			if step < 100 {
				alloc(mem.Bytes(100-step)*8*mem.KiB, forever)
			}
		}})
	s.noHeap = true
	f := only(t, s.run())
	near(t, f, 200*mem.KiB, 0.1)
	if !strings.Contains(f.Text, "in the first half, as in a warm-up") {
		t.Error(f.Text)
	}
}
