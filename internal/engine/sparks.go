package engine

import (
	"context"
	"math"
	"sync"
	"time"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Spark is the curve that a report of a run leads with, in few points: what a row of a list has room for.
type Spark struct {
	ID string `json:"id"` // of the run
	report.Series
}

// Sparks are those of many runs. What was read stays, as it is small; of a run that goes on only what is new is read. The zero
// value works. All methods may be called by several goroutines.
type Sparks struct {
	mu    sync.Mutex
	known map[string]*spark
}

// spark is one in the making.
type spark struct {
	size   int64 // of the run on disk when its recording was read to the end; -1: not yet
	next   int64 // the place in the recording behind what was read
	caught bool  // all was read that was there
	run    *mem.Run
	read   time.Time
	made   Spark
}

const (
	sparkPoints = 64
	sparksKept  = 5000                   // runs; one takes about a kilobyte
	sparkEvery  = time.Second            // how often that of a run which goes on is read on, at most
	sparkWait   = 10 * time.Millisecond  // for more of a run that goes on
	sparkBudget = 250 * time.Millisecond // of one answer
)

// Of gives those of some runs. Reading takes a limited time in all: what is not among the answers can be asked for again, and
// reading goes on where it stood. A run of which no curve was recorded has one without points.
func (s *Sparks) Of(ctx context.Context, e *Engine, rows []store.Run) ([]Spark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now().Add(sparkBudget)
	s.trim(rows)
	_, err := inStore(ctx, e, func(kept store.Store) (struct{}, error) {
		for _, live := range []bool{false, true} { // a run that goes on may have one wait
			for _, row := range rows {
				if (row.State == store.Running) == live && time.Now().Before(until) {
					s.readOn(ctx, kept, row, until)
				}
			}
		}
		return struct{}{}, ctx.Err()
	})
	sparks := []Spark{}
	for _, row := range rows {
		if known := s.known[row.ID]; known != nil && known.caught {
			sparks = append(sparks, known.made)
		}
	}
	return sparks, err
}

// trim forgets all where they are too many: those in view are soon read again.
func (s *Sparks) trim(rows []store.Run) {
	if s.known == nil || len(s.known)+len(rows) > sparksKept {
		s.known = map[string]*spark{}
	}
}

// readOn brings one up to date.
func (s *Sparks) readOn(ctx context.Context, kept store.Store, row store.Run, until time.Time) {
	known, live := s.known[row.ID], row.State == store.Running
	if known != nil && known.size >= 0 && (known.size != row.Size || live) { // it was changed, or goes on after all
		known = nil
	}
	if known == nil {
		known = &spark{size: -1, run: mem.NewRun()}
		s.known[row.ID] = known
	}
	if known.size >= 0 || live && known.caught && time.Since(known.read) < sparkEvery {
		return
	}
	if soon := time.Now().Add(sparkWait); live && known.caught && soon.Before(until) {
		until = soon
	}
	ctx, stop := context.WithDeadline(ctx, until)
	defer stop()
	for batch, err := range kept.Follow(ctx, row.ID, known.next) {
		if err != nil {
			known.caught = known.caught || ctx.Err() == nil // what can be read of it was
			break
		}
		known.take(batch)
		if batch.Left == 0 {
			known.caught = true
			break
		}
	}
	if !live && ctx.Err() == nil {
		known.caught = true
	}
	if known.caught {
		known.make(row)
	}
	if known.caught && !live {
		known.size, known.run = row.Size, nil
	}
}

// take keeps what a curve is made of.
func (k *spark) take(batch store.Batch) {
	for _, f := range batch.Frames {
		switch f.(type) {
		case mem.RunInfo, mem.Process, mem.SeriesDef, mem.Samples, mem.StepTotal:
			_ = k.run.Add(f)
		}
	}
	k.next = batch.Next
}

func (k *spark) make(row store.Run) {
	k.read, k.made = time.Now(), Spark{ID: row.ID, Series: report.Series{X: []int64{}, Y: []int64{}}}
	if main := analyze.MainCurve(k.run); main != nil {
		k.made.Series = analyze.Between(k.run, main, 0, math.MaxInt64, sparkPoints)
	}
}
