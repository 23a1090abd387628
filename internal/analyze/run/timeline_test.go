package run

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
)

// hourRun is an hour of 8 ranks, sampled every 100 ms: 12 series each, 20,000 kept steps, 4,000 spans
// and 1,000 allocation sites a process.
func hourRun() *mem.Run {
	run := mem.NewRun()
	must := func(f mem.Frame) {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const samples = 36000
	must(mem.RunInfo{ID: "hour", StartMono: 1e9, Host: mem.Host{Memory: mem.Some(int64(256 * mem.GiB))}})
	id := uint32(0)
	series := func(process uint32, name mem.Quantity) {
		id++
		must(mem.SeriesDef{ID: id, Process: process, Name: name, Unit: mem.UnitBytes, Label: mem.Measured})
		times, values := make([]int64, samples), make([]int64, samples)
		for i := range times {
			times[i], values[i] = 1e9+int64(i)*100*ms, int64(4*mem.GiB)+rng.Int64N(1e8)
		}
		must(mem.Samples{Series: id, Times: times, Values: values})
	}
	series(0, mem.SeriesTreeRSS)
	series(0, mem.SeriesSystemAvailable)
	for p := uint32(1); p <= 8; p++ {
		must(mem.Process{ID: p, PID: int(p), Role: "rank", Rank: mem.Some(int64(p - 1)), Start: 1e9})
		for _, name := range []mem.Quantity{mem.SeriesRSS, mem.SeriesVMS, mem.SeriesSwap, mem.SeriesPSS, mem.SeriesUSS,
			mem.SeriesMinorFaults,
			mem.SeriesMajorFaults, mem.SeriesCPU, mem.SeriesThreads, mem.SeriesFiles, mem.SeriesHeapLive, mem.SeriesAllocated} {
			series(p, name)
		}
		steps := make(mem.Steps, 20000)
		for i := range steps {
			steps[i] = mem.Step{Process: p, Number: uint64(i * 2), Time: 1e9 + int64(i)*180*ms, Duration: 90 * ms,
				RSS: mem.Some(int64(4*mem.GiB) + int64(i)*100), Heap: mem.Some(int64(3 * mem.GiB))}
		}
		must(steps)
		must(mem.StepTotal{Process: p, Steps: 40000})
		for i := range 20000 {
			must(mem.Spans{{Process: p, Phase: mem.Phases[2+i%4], Step: uint64(i / 4 * 16), Start: 1e9 + int64(i)*180*ms,
				End: 1e9 + int64(i)*180*ms + 80*ms}})
		}
		for site := range uint32(1000) {
			must(mem.StackDef{ID: site + 1, Locations: userLine(int(site) + 1)})
		}
		for i := range 1500 {
			use := mem.HeapUse{Process: p, Time: 1e9 + int64(i)*2400*ms, Step: uint64(i * 26), Live: 3 * mem.GiB, Variance: 1e14}
			for range 60 {
				site := rng.Uint32N(1000) + 1
				live := mem.Bytes(rng.Int64N(8e6))
				use.Sites = append(use.Sites, mem.SiteUse{Stack: site, Live: live, Count: uint64(live/500000) + 1,
					Allocated: mem.Bytes(i) * mem.MiB})
			}
			must(use)
		}
	}
	must(mem.End{Time: 1e9 + samples*100*ms})
	return run
}

// TestHour: the JSON of an hour's run of eight processes must leave room in a megabyte of HTML. What
// the report takes is measured in bench/.
func TestHour(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a recording of 3.5 million samples")
	}
	run := hourRun()
	r := Analyze(run, Options{})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, s := range r.Series {
		points += len(s.X)
	}
	t.Logf("%d bytes of JSON, %d points, %d bars, %d steps", len(text), points, len(r.Phases), len(r.Steps))
	if len(text) > 900_000 {
		t.Errorf("%d bytes of JSON", len(text))
	}
	if len(r.Phases) > 3000 || len(r.Phases) < 500 {
		t.Errorf("%d bars", len(r.Phases))
	}
}
