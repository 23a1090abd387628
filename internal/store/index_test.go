package store

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hightide/internal/mem"
)

// TestOlderAndBrokenIndexes: whatever happened to the index, the runs are there and it is made anew.
func TestOlderAndBrokenIndexes(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"no version, no index": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "version")))
			must(t, os.Remove(filepath.Join(dir, "index.sqlite")))
		},
		"older schema": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			db, err := x.openDatabase()
			must(t, err)
			_, err = db.Exec("DROP TABLE runs; CREATE TABLE runs (id TEXT, old INTEGER); INSERT INTO runs VALUES ('zzz', 1); " +
				"PRAGMA user_version = 0")
			must(t, err)
			must(t, x.close())
		},
		"not a database": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "index.sqlite"), []byte(strings.Repeat("no database ", 1000)), 0o600))
		},
		"newer schema": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			db, err := x.openDatabase()
			must(t, err)
			_, err = db.Exec("PRAGMA user_version = 99")
			must(t, err)
			must(t, x.close())
		},
		"a row too many": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			must(t, x.putRuns(entry{run: Run{ID: "gone"}}))
			must(t, x.close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := finished(t, 3)
			spoil(t, dir)
			for range 2 { // the second time from the index, where there is one again
				s := OpenFiles(dir)
				runs, err := s.List(Filter{State: Finished})
				must(t, err)
				if len(runs) != 3 {
					t.Errorf("%d runs, want 3", len(runs))
				}
				w, err := s.Create(example)
				must(t, err)
				must(t, w.Close())
				must(t, s.Remove(w.ID()))
				must(t, s.Close())
			}
		})
	}
}

// TestIndexesBegunAtOnce: engines that start together make one index, and none finds it busy.
func TestIndexesBegunAtOnce(t *testing.T) {
	for range 60 {
		path := filepath.Join(t.TempDir(), "index.sqlite")
		var group sync.WaitGroup
		for range 24 {
			group.Go(func() {
				db, err := openIndex(path)
				if err != nil {
					t.Error(err)
					return
				}
				db.Close()
			})
		}
		group.Wait()
	}
}

func TestIndexThatCannotBeWrittenIsNamed(t *testing.T) {
	dir := finished(t, 1)
	index := filepath.Join(dir, "index.sqlite")
	must(t, os.RemoveAll(index))
	must(t, os.MkdirAll(filepath.Join(index, "in the way"), 0o700))
	s := OpenFiles(dir)
	defer s.Close()
	var where *Error
	if err := s.Reindex(nil); !errors.As(err, &where) ||
		!strings.Contains(err.Error(), "cannot write the index "+index) || where.Hint == "" {
		t.Errorf("%v", err)
	}
}

// BenchmarkIngest is the way of a sample into a recording and its index; ten processes' series of
// ten samples are flushed at a time, as by an engine each second.
func BenchmarkIngest(b *testing.B) {
	s := OpenFiles(b.TempDir())
	defer s.Close()
	w, err := s.Create(example)
	if err != nil {
		b.Fatal(err)
	}
	const series, points = 80, 10
	for i := range uint32(series) {
		_ = w.Write(mem.SeriesDef{ID: i + 1, Process: i / 10, Name: mem.SeriesRSS})
	}
	random := rand.New(rand.NewPCG(1, 1))
	values := make([]int64, series)
	b.ResetTimer()
	n := 0
	for b.Loop() {
		for i := range uint32(series) {
			f := mem.Samples{Series: i + 1, Times: make([]int64, points), Values: make([]int64, points)}
			for p := range points {
				values[i] += (random.Int64N(64) - 31) * 4096
				f.Times[p], f.Values[p] = int64(n/series+p)*1e8+random.Int64N(2e6), values[i]
			}
			_ = w.Write(f)
			n += points
		}
		_ = w.Flush()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if info, err := os.Stat(w.Run().File); err == nil {
		b.ReportMetric(float64(info.Size())/float64(n), "B/sample")
	}
}
