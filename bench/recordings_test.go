// Package bench holds the measurements of recordings that must be made in Go. These are how fast samples are
// taken in, and an hour of eight processes to report on. bench/recordings.py runs them.
//
//	go test -run '^$' -bench Ingest ./bench
//	HIGHTIDE_HOUR=FOLDER go test -run TestHour ./bench      leaves the recording in FOLDER
package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

const (
	processes = 8
	second    = int64(1e9)
	hour      = 3600 * second
	interval  = second / 10
	startWall = int64(1.7e18)
)

// curves are what the sampler reads of each process each time, with the largest change between two
// readings in steps of the kernel's own granularity.
var curves = []struct {
	name mem.Quantity
	unit mem.Unit
	unitStep,
	spread int64
	counter bool // only goes up
}{
	{mem.SeriesRSS, mem.UnitBytes, 4096, 300, false},
	{mem.SeriesVMS, mem.UnitBytes, 4096, 20, false},
	{mem.SeriesSwap, mem.UnitBytes, 4096, 0, false},
	{mem.SeriesMinorFaults, mem.UnitCount, 1, 900, true},
	{mem.SeriesMajorFaults, mem.UnitCount, 1, 0, true},
	{mem.SeriesCPU, mem.UnitNanoseconds, 10_000_000, 10, true},
	{mem.SeriesThreads, mem.UnitCount, 1, 1, false},
	{mem.SeriesFiles, mem.UnitCount, 1, 2, false},
}

// walk is a curve that wanders around its start, as memory of a steady training does.
type walk struct {
	value, base, unit, spread int64
	counter                   bool
	random                    *rand.Rand
}

func (w *walk) next() int64 {
	switch {
	case w.spread == 0:
	case w.counter:
		w.value += w.unit * w.random.Int64N(w.spread)
	case w.random.IntN(3) == 0: // most readings of a steady training do not change
		w.value = w.base + w.unit*(w.random.Int64N(2*w.spread+1)-w.spread)
	}
	return w.value
}

func create(tb testing.TB, dir string) store.Writer {
	tb.Helper()
	w, err := store.OpenFiles(dir).Create(mem.RunInfo{
		Name: "hour", Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"}, Version: "bench",
		Host: mem.Host{OS: "linux", CPUs: 8, PageSize: 4096}, StartWall: startWall,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func write(tb testing.TB, w store.Writer, f mem.Frame) {
	tb.Helper()
	if err := w.Write(f); err != nil {
		tb.Fatal(err)
	}
}

// define announces the processes and their series, and returns the curves by series number.
func define(tb testing.TB, w store.Writer) []*walk {
	tb.Helper()
	walks := []*walk{nil} // numbers begin at 1
	for p := uint32(1); p <= processes; p++ {
		write(tb, w, mem.Process{ID: p, PID: 1000 + int(p), Role: "rank", Command: []string{"python", "train.py"}})
		for _, c := range curves {
			base := int64(800<<20) / c.unitStep * c.unitStep
			if c.counter || c.unitStep == 1 {
				base = 100
			}
			write(tb, w, mem.SeriesDef{ID: uint32(len(walks)), Process: p, Name: c.name, Unit: c.unit, Label: mem.Measured})
			walks = append(walks, &walk{base, base, c.unitStep, c.spread, c.counter,
				rand.New(rand.NewPCG(uint64(len(walks)), 1))})
		}
	}
	return walks
}

// BenchmarkIngest writes samples through the store, as the recorder does: chunks of ten seconds, a
// flush each second, and the entry into the index at the end. On one core.
func BenchmarkIngest(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := create(b, b.TempDir())
	walks := define(b, w)
	const chunk = 100
	const perRound = chunk * processes * 8
	samples := make([]mem.Samples, len(walks))
	for i := range samples {
		samples[i] = mem.Samples{Series: uint32(i), Times: make([]int64, chunk), Values: make([]int64, chunk)}
	}
	now, written := int64(0), 0
	b.ResetTimer()
	for b.Loop() {
		for i := 1; i < len(walks); i++ {
			for k := range chunk {
				samples[i].Times[k] = now + int64(k)*interval
				samples[i].Values[k] = walks[i].next()
			}
			write(b, w, samples[i])
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		now += chunk * interval
		written += perRound
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(0, "ns/op")
}

// TestHour records an hour of eight training processes at 100 ms, with what the recorder's own
// limits let through of spans, steps and heap (internal/observe: spanRate, stepRate, useHeap).
func TestHour(t *testing.T) {
	dir := os.Getenv("HIGHTIDE_HOUR")
	if dir == "" {
		t.Skip("HIGHTIDE_HOUR names no folder to record into; bench/recordings.py does")
	}
	w := create(t, dir)
	walks := define(t, w)
	for s := range uint32(stacks) {
		write(t, w, mem.StackDef{ID: s + 1, Locations: stack(int(s))})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for now := int64(0); now < hour; now += second {
		for i := 1; i < len(walks); i++ {
			chunk := mem.Samples{Series: uint32(i)}
			for k := range second / interval {
				chunk.Times = append(chunk.Times, now+k*interval)
				chunk.Values = append(chunk.Values, walks[i].next())
			}
			write(t, w, chunk)
		}
		for p := uint32(1); p <= processes; p++ {
			training(t, w, p, now, random)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for p := uint32(1); p <= processes; p++ {
		write(t, w, mem.StepTotal{Process: p, Steps: uint64(hour / second * 20)})
	}
	write(t, w, mem.End{Time: hour, ExitCode: mem.Some(0), Reason: "exit"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("recording", w.Run().File)
}

// stacks of the heap, as deep as a transformer's are: the library's frames, then the program's.
const stacks = 1500

func stack(number int) []mem.Location {
	const library = "/home/somebody/venv/lib/python3.11/site-packages/torch/nn/modules/"
	var places []mem.Location
	for i := range 24 {
		file := []string{"linear.py", "module.py", "activation.py", "transformer.py"}[(number+i)%4]
		places = append(places, mem.Location{File: library + file, Line: 100 + (number*7+i*13)%900,
			Function: fmt.Sprintf("forward_%d", (number+i)%60)})
	}
	return append(places,
		mem.Location{File: "train.py", Line: number%120 + 10, Function: fmt.Sprintf("layer_%d", number%40)},
		mem.Location{File: "train.py", Line: 900, Function: "step"},
		mem.Location{File: "train.py", Line: 990, Function: "main"})
}

// training writes one second of one process: 5 of its 20 steps with 5 spans each, and every six
// seconds 60 sites of its heap that changed.
func training(t *testing.T, w store.Writer, p uint32, now int64, random *rand.Rand) {
	phases := []mem.Phase{mem.PhaseStep, mem.PhaseData, mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer}
	var spans mem.Spans
	var steps mem.Steps
	for k := range int64(5) {
		begin, number := now+k*second/5, uint64(now/second*20+k*4)
		rss := int64(800<<20) + 4096*random.Int64N(2000)
		steps = append(steps, mem.Step{
			Process: p, Number: number + 1, Time: begin + second/20, Duration: second/20 + random.Int64N(1e6),
			RSS: mem.Some(rss), Heap: mem.Some(rss / 2), Micro: 1,
		})
		for i, phase := range phases {
			at := begin + int64(i)*second/100 + random.Int64N(1e5)
			spans = append(spans, mem.Span{
				Process: p, Phase: phase, Step: number, Start: at, End: at + second/110,
				RSSStart: mem.Some(rss), RSSEnd: mem.Some(rss + 4096*random.Int64N(50)),
			})
		}
	}
	write(t, w, spans)
	write(t, w, steps)
	if now/second%6 != 0 {
		return
	}
	use := mem.HeapUse{Process: p, Time: now, Step: uint64(now / second * 20), Live: 400 << 20, Variance: 1e14}
	for range 60 {
		use.Sites = append(use.Sites, mem.SiteUse{
			Stack: 1 + random.Uint32N(stacks), Phase: mem.PhaseForward, Live: mem.Bytes(random.Int64N(8 << 20)),
			Count: random.Uint64N(20), Allocated: mem.Bytes(now/1000 + random.Int64N(1<<30)),
		})
	}
	write(t, w, use)
}
