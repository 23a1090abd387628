package bench

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/wire"
)

// BenchmarkAnalyses runs all analyses on the recording that TestHour left in HIGHTIDE_HOUR, which has been read, and
// each of them alone. What several of them tell of, and so is made once, counts for each.
func BenchmarkAnalyses(b *testing.B) {
	found, _ := filepath.Glob(filepath.Join(os.Getenv("HIGHTIDE_HOUR"), "runs", "*", "run.hightide"))
	if len(found) != 1 {
		b.Skip("HIGHTIDE_HOUR names no folder with that recording; bench/recordings.py does")
	}
	file, err := os.Open(found[0])
	if err != nil {
		b.Fatal(err)
	}
	run, err := wire.Load(file)
	file.Close()
	if err != nil {
		b.Fatal(err)
	}
	analyses := func(run *mem.Run) func(*testing.B) {
		return func(b *testing.B) {
			began := processorTime()
			for b.Loop() {
				analyze.Analyze(run, analyze.Options{})
			}
			b.ReportMetric(1000*(processorTime()-began).Seconds()/float64(b.N), "cpu-ms/op")
		}
	}
	b.Run("all", analyses(run))
	all := analyze.All
	defer func() { analyze.All = all }()
	for _, a := range all {
		analyze.All = []func(*analyze.Input) report.Part{a}
		b.Run(runtime.FuncForPC(reflect.ValueOf(a).Pointer()).Name(), analyses(run))
	}
}
