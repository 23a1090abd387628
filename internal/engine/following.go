package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// CurveOptions say which curves of a recording are wanted, and how finely. The zero value: all, whole, with 1,000
// points each.
type CurveOptions struct {
	Names    []string     // of quantities, as host.rss; MainCurve is the one that a report leads with
	Process  mem.Optional // by its id in the run; 0: those of the whole run
	Device   string
	From, To mem.Optional // ns since the run began
	Points   int          // each curve keeps the lowest and the highest of so many halves
}

// Curve is a series of a recording, with its id there.
type Curve struct {
	ID uint32 `json:"series" doc:"Its number in the recording."`
	report.Series
	Last mem.Optional `json:"last,omitzero" doc:"The newest reading."`
}

// MainCurve stands for the curve that a report of the run leads with.
const MainCurve = "main"

// defaultPoints is as many as a wide screen has columns, about.
const defaultPoints = 1000

// Curves are those of a recording that are wanted, in its own order.
func Curves(run *mem.Run, o CurveOptions) []Curve {
	points := cmp.Or(o.Points, defaultPoints)
	from, to := o.From.Or(math.MinInt64), o.To.Or(math.MaxInt64)
	curves := []Curve{}
	var main *mem.Series
	if slices.Contains(o.Names, MainCurve) {
		main = facts.MainCurve(run)
	}
	for _, s := range run.Series {
		if s == main || o.wants(s) {
			curves = append(curves, Curve{s.ID, facts.Between(run, s, from, to, points), newest(s)})
		}
	}
	return curves
}

// CurveHeads are curves of a recording without their points: those with the ids, or without any id all.
func CurveHeads(run *mem.Run, ids ...uint32) []Curve {
	curves := []Curve{}
	for _, s := range run.Series {
		if len(ids) == 0 || slices.Contains(ids, s.ID) {
			head := facts.Curve(run, s)
			head.X, head.Y = []int64{}, []int64{}
			curves = append(curves, Curve{s.ID, head, newest(s)})
		}
	}
	return curves
}

func (o *CurveOptions) wants(s *mem.Series) bool {
	process, one := o.Process.Get()
	return (len(o.Names) == 0 || slices.Contains(o.Names, string(s.Name))) && (!one || int64(s.Process) == process) &&
		(o.Device == "" || o.Device == s.Device)
}

func newest(s *mem.Series) mem.Optional {
	if len(s.Values) == 0 {
		return mem.Optional{}
	}
	return mem.Some(s.Values[len(s.Values)-1])
}

// Watched is a run that is looked at now and then: each look reads only what was written since the one before. The zero
// value has read nothing.
type Watched struct {
	*live.Run
	next int64 // the place in the recording behind what was read
}

// Look brings a watched run up to date, as far as its recording is written. Unlike Follow it does not wait, and does
// not have the run write more often. What was read when the context ends stays. Only an id finds the run.
func (e *Engine) Look(ctx context.Context, id string, w *Watched) error {
	_, err := inStore(ctx, e, func(s store.Store) (struct{}, error) { return struct{}{}, w.readOn(ctx, s, id) })
	return err
}

func (w *Watched) readOn(ctx context.Context, s store.Store, id string) error {
	if w.Run == nil {
		w.Run = live.New()
	}
	file, err := s.Open(id, store.Recording)
	if errors.Is(err, fs.ErrNotExist) {
		return &store.Error{Kind: store.ErrNotFound, Text: fmt.Sprintf("there is no run %s", id),
			Hint: "hightide ls lists the runs"}
	}
	if err != nil {
		return err
	}
	defer file.Close()
	data, size, err := extent(file)
	if err != nil {
		return err
	}
	tail := wire.NewTail(data, w.next)
	for ctx.Err() == nil {
		batch, err := tail.Next(size)
		if err != nil {
			return notEnd(err)
		}
		for _, frame := range batch.Frames {
			w.Add(frame)
		}
		w.next = batch.Next
	}
	return ctx.Err()
}

// extent is the content of a recording, and how much of it there is now.
func extent(file io.Reader) (io.ReaderAt, int64, error) {
	if file, ok := file.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		return file, info.Size(), nil
	}
	data, err := io.ReadAll(file)
	return bytes.NewReader(data), int64(len(data)), err
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Keep is a folder of this user's alone for what a front door keeps beside the recordings; it is made where it is not
// there.
func (e *Engine) Keep(name string) (string, error) {
	dir := filepath.Join(e.Folder(), name)
	err := os.MkdirAll(e.Folder(), 0o700)
	if err == nil && e.Folder() == temporaryDir() { // among the folders of others, who may have made it first
		err = launch.Private(e.Folder())
	}
	if err == nil {
		err = launch.MakePrivate(dir)
	}
	if err != nil {
		return "", fail.Environment("use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA", "keep %s: %w", name, err)
	}
	return dir, nil
}

// Spark is the curve that a report of a run leads with, in few points: what a row of a list has room for.
type Spark struct {
	ID string `json:"id" doc:"The run."`
	report.Series
}

// Sparks are those of many runs. What was read stays, as it is small; of a run that goes on only what is new is read.
// The zero value works. All methods may be called by several goroutines.
type Sparks struct {
	mu    sync.Mutex
	known map[string]*spark
}

// spark is one in the making.
type spark struct {
	Watched
	size   int64 // of the run on disk when its recording was read to the end; -1: not yet
	caught bool  // all was read that was there
	read   time.Time
	made   Spark
}

const (
	sparkPoints = 64
	sparksKept  = 5000                   // runs; one takes about a kilobyte
	sparkEvery  = time.Second            // how often that of a run which goes on is read on, at most
	sparkBudget = 250 * time.Millisecond // of one answer
)

// Of gives those of some runs. Reading takes a limited time in all: what is not among the answers can be asked for
// again, and reading goes on where it stood. A run of which no curve was recorded has one without points.
func (s *Sparks) Of(ctx context.Context, e *Engine, rows []store.Run) ([]Spark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(rows)
	_, err := inStore(ctx, e, func(kept store.Store) (struct{}, error) {
		within, stop := context.WithTimeout(ctx, sparkBudget)
		defer stop()
		for _, row := range rows {
			if within.Err() == nil {
				s.readOn(within, kept, row)
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
func (s *Sparks) readOn(ctx context.Context, kept store.Store, row store.Run) {
	known, goesOn := s.known[row.ID], row.State == store.Running
	if known != nil && known.size >= 0 && (known.size != row.Size || goesOn) { // it was changed, or goes on after all
		known = nil
	}
	if known == nil {
		known = &spark{size: -1}
		s.known[row.ID] = known
	}
	if known.size >= 0 || goesOn && known.caught && time.Since(known.read) < sparkEvery {
		return
	}
	_ = known.Watched.readOn(ctx, kept, row.ID) // of one that cannot be read, what could be of it
	if ctx.Err() != nil {
		return
	}
	known.make(row)
	if !goesOn {
		known.size, known.Watched = row.Size, Watched{}
	}
}

func (k *spark) make(row store.Run) {
	k.caught, k.read = true, time.Now()
	k.made = Spark{ID: row.ID, Series: report.Series{X: []int64{}, Y: []int64{}}}
	run := k.Outline()
	if main := facts.MainCurve(run); main != nil {
		k.made.Series = facts.Between(run, main, 0, math.MaxInt64, sparkPoints)
	}
}
