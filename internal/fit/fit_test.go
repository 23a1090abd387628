package fit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func TestAccumulate(t *testing.T) {
	for _, c := range []struct{ target, largest, granularity, micro, steps, batch int }{
		{1024, 152, 8, 128, 8, 1024}, // exact beats fewest
		{1024, 288, 1, 256, 4, 1024},
		{100, 288, 1, 100, 1, 100},
		{1000, 7, 1, 5, 200, 1000},
		{997, 10, 1, 10, 100, 1000}, // a prime: at least it
		{1000, 48, 16, 48, 21, 1008},
	} {
		got := *accumulate(c.target, c.largest, c.granularity)
		want := Accumulation{c.target, c.micro, c.steps, c.batch}
		if got != want {
			t.Errorf("accumulate(%d, %d, %d) = %+v, want %+v", c.target, c.largest, c.granularity, got, want)
		}
		if got.Micro > c.largest || got.Micro%c.granularity != 0 || got.Batch < c.target {
			t.Errorf("%+v cannot be run", got)
		}
	}
}

// torchSays is the beginning of what PyTorch says of a lack of memory.
const torchSays = "CUDA out of memory. Tried to allocate 48.00 MiB. GPU 0 has a total capacity of 3.00 GiB of which " +
	"46.50 MiB is free."

func TestResultSaysWhatIsNotRun(t *testing.T) {
	trial := func(batch int, used int64) Trial {
		return Trial{Batch: batch, OK: true, Label: mem.Imagined, Allocated: mem.Some(used - 10), Used: mem.Some(used),
			Total: mem.Some(1000)}
	}
	r := &Result{Label: mem.Imagined, Largest: 64, Current: 32,
		Trials: []Trial{trial(16, 250), trial(64, 850), {Batch: 65, Label: mem.Imagined, Problem: torchSays}}}
	r.conclude(&Options{Price: 2})
	if got := r.Unused.Or(-1); got != 550 || r.UnusedLabel != mem.Estimated {
		t.Errorf("unused at 32: %d (%s), want 550 on the line between 16 and 64, estimated", got, r.UnusedLabel)
	}
	if text := r.Text(report.TextOptions{Width: 300}); r.UnusedError != mem.Some(400) || !strings.Contains(text, "(estimated ± 400 B)") {
		t.Errorf("± %v, want the 400 to the batch of 64:\n%s", r.UnusedError, text)
	} else if !strings.Contains(text, "Tried to allocate 48.00 MiB …\n") || !strings.Contains(text, "ends with … is cut; --json has the whole") {
		t.Errorf("a reason is cut without a mark, or not said where the whole is:\n%s", text)
	}
	if m := r.MemoryMark; m == nil || m.CurrentLabel != mem.Estimated || m.CurrentErrorGB == nil || m.CurrentGB == nil {
		t.Errorf("MemoryMark's current memory was not run, and has no error: %+v", m)
	}
	if m := r.MemoryMark; m == nil || m.Speedup != nil || m.SavingsPerYear != nil || m.OptimalBatch != 64 ||
		len(m.Results) != 3 || m.Results[2].Success {
		t.Errorf("MemoryMark's fields: %+v; a speed-up needs measured times", r.MemoryMark)
	}
	if r.Cost.PerYear != 2*8760 || r.Cost.PerRun != 0 {
		t.Errorf("cost %+v", r.Cost)
	}
	for i := range r.Trials[:2] {
		r.Trials[i].StepTime = mem.Some(int64(1e9))
	}
	r.Current, r.Throughput = 16, nil
	r.conclude(&Options{Price: 2})
	if m := r.MemoryMark; m.Speedup == nil || *m.Speedup != 4 || r.Knee != 64 {
		t.Errorf("measured: %+v, knee %d; want four times the speed", r.MemoryMark, r.Knee)
	}
}

// TestTightBatches: a batch that leaves less than the figures are sure of is called tight, and the largest that
// leaves it is named beside it.
func TestTightBatches(t *testing.T) {
	trial := func(batch int, used int64) Trial {
		return Trial{Batch: batch, OK: true, Label: mem.Imagined, Used: mem.Some(used << 20), Total: mem.Some(1000 << 20),
			Rests: []string{"the whole number read at a.py:3"}}
	}
	gpu := &gpus.GPU{Name: "NVIDIA X", Total: 1000 << 20}
	r := &Result{Label: mem.Imagined, Granularity: 8, GPU: gpu, Largest: 96, Fails: 104,
		Trials: []Trial{trial(8, 100), trial(64, 660), trial(96, 980)}}
	r.conclude(&Options{})
	if r.Roomy != 88 || r.RoomyLabel != mem.Estimated || r.Tight != mem.Some(50<<20) {
		t.Errorf("%d (%s), tight below %v", r.Roomy, r.RoomyLabel, r.Tight)
	}
	text := r.Text(report.TextOptions{Width: 1000})
	for _, want := range []string{"is 96; 104 does not",
		"It fits tightly: it leaves 20.0 MiB. With less than 50.0 MiB, it may not fit",
		"A batch of 88 leaves that, on a line between the trials: it takes 900 MiB (estimated ± 240 MiB).", "98 % tight\n",
		"66 %\n", "rests on this: the whole number read at a.py:3"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var asked []int
	err := r.tryRoom(func(batch int) (Trial, error) {
		asked = append(asked, batch)
		return trial(batch, int64(10*batch+80)), nil
	})
	if r.conclude(&Options{}); err != nil || !slices.Equal(asked, []int{88, 80}) || r.Roomy != 80 ||
		r.RoomyLabel != mem.Imagined || !strings.Contains(r.answer(), "A batch of 80 leaves that (imagined).") {
		t.Errorf("asked for %v, %v: %s", asked, err, r.answer())
	}
	same := &Result{Label: mem.Imagined, Largest: 64, Trials: []Trial{trial(16, 250), trial(64, 250)}}
	for i := range same.Trials {
		same.Trials[i].Allocated = mem.Some(int64(200))
	}
	if text := same.Text(report.TextOptions{Width: 300}); !strings.Contains(text, "All 2 batches took the same memory") {
		t.Errorf("a batch that changes nothing:\n%s", text)
	}
	r.Largest, r.Trials = 64, r.Trials[:2]
	if r.conclude(&Options{}); r.Roomy != 0 || strings.Contains(r.answer(), "tightly") {
		t.Errorf("with room: %s", r.answer())
	}
}

// TestServedHeadroom: a program that runs its own trials is the only one that knows the device, and says it with each.
func TestServedHeadroom(t *testing.T) {
	for headroom, want := range map[string]int{"": 100, "5%": 95, "100B": 90} {
		asks, asked := io.Pipe()
		answers, answered := io.Pipe()
		go func() {
			fmt.Fprintln(answered, `{"model": "step"}`)
			for lines := bufio.NewScanner(asks); lines.Scan(); {
				var ask struct{ Batch int64 }
				if err := json.Unmarshal(lines.Bytes(), &ask); err != nil {
					t.Error(err)
				}
				used := 10 * ask.Batch
				fmt.Fprintf(answered, `{"batch": %d, "ok": %v, "peak_allocated_bytes": %d, "device_used_bytes": %d, "capacity_bytes": 1000, "total_bytes": 1000}`+"\n", ask.Batch, used <= 1000, used, used)
			}
		}()
		result, err := Serve(t.Context(), Options{Headroom: headroom, Start: 8}, answers, asked, true)
		_ = asked.Close()
		if err != nil || result.Largest != want {
			t.Errorf("headroom %q: %v %+v, want %d", headroom, err, result, want)
		}
		if len(result.Trials) > 5 {
			t.Errorf("headroom %q took %d trials: %+v", headroom, len(result.Trials), result.Trials)
		}
	}
}

// TestCaughtShortage: a batch at which the program ran out of memory and went on with less does not fit.
func TestCaughtShortage(t *testing.T) {
	v := &report.Imagined{Shortages: 2}
	v.Verdict, v.Used = mem.VerdictFits, mem.Some(int64(100))
	if got, err := ImaginedTrial(64, v, ""); err != nil || got.OK ||
		got.Problem != "it ran out of memory, which it caught 2 times" {
		t.Errorf("%+v, %v", got, err)
	}
	v.Shortages = 0
	if got, _ := ImaginedTrial(64, v, ""); !got.OK || got.Problem != "" {
		t.Errorf("without one: %+v", got)
	}
}

// TestWhatJAXTakesIsNotWhatItNeeds: JAX takes the same share of a GPU at every batch; the trial has what is needed.
func TestWhatJAXTakesIsNotWhatItNeeds(t *testing.T) {
	v := &report.Imagined{}
	v.Total = 24 << 30
	v.Verdict, v.Used, v.Reserved = mem.VerdictFits, mem.Some(int64(18<<30)), mem.Some(int64(17<<30))
	v.Needed = mem.Some(int64(5 << 30))
	got, err := ImaginedTrial(8, v, "")
	if err != nil || got.Used != v.Needed || got.Capacity != mem.Some(int64(23<<30)) {
		t.Errorf("%+v, %v", got, err)
	}
}
