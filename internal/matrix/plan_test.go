package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
)

// of is a trial that took so many MiB.
func of(cell string, repeat int, mib float64) Trial {
	return Trial{Cell: cell, Repeat: repeat, State: Done, Machine: "here", Duration: int64(time.Second),
		Figures: map[Figure]Summary{RSS: exactly(int64(mib*(1<<20)), mem.Measured)}}
}

// played runs a plan to its end: become says what each trial comes to.
func played(t *testing.T, spec *Spec, seed uint64, become func(cell string, repeat int) Trial) []Trial {
	t.Helper()
	p := newPlan(spec, seed)
	var list []Trial
	for range 10_000 {
		cell, repeat := p.next(func(*Cell) bool { return true })
		if cell == nil {
			return list
		}
		trial := become(cell.Key, repeat)
		p.add(trial)
		list = append(list, trial)
	}
	t.Fatal("it never ends")
	return nil
}

// TestOrder: each repeat has each cell once, in another order, which the seed alone decides.
func TestOrder(t *testing.T) {
	spec := mustRead(t, "axes: {model: [lenet, resnet18], batch: [1, 2, 3, 4, 5]}\nrepeats: 3\n")
	order := func(seed uint64) (list []string) {
		for _, trial := range played(t, spec, seed, func(cell string, repeat int) Trial { return of(cell, repeat, 1) }) {
			list = append(list, fmt.Sprint(trial.Repeat, " ", trial.Cell))
		}
		return list
	}
	one := order(1)
	if !slices.Equal(one, order(1)) || slices.Equal(one, order(2)) {
		t.Error("the seed does not decide the order")
	}
	rounds := map[string]bool{}
	for round := range 3 {
		part := one[round*10 : round*10+10]
		rounds[strings.ReplaceAll(strings.Join(part, " "), fmt.Sprint(round+1), "")] = true
		slices.Sort(part)
		if len(slices.Compact(part)) != 10 || !strings.HasPrefix(part[0], fmt.Sprint(round+1)) ||
			!strings.HasPrefix(part[9], fmt.Sprint(round+1)) {
			t.Errorf("repeat %d: %q", round+1, part)
		}
	}
	if len(rounds) != 3 {
		t.Error("every repeat has the same order")
	}
}

// TestRepeatsUntilItIsKnown: cells that scatter are repeated until their intervals are as narrow as asked, or the
// limit is reached.
func TestRepeatsUntilItIsKnown(t *testing.T) {
	spec := mustRead(t, "axes: {case: [a, b, c, d]}\ncommand: x {case}\nrepeats: {least: 3, most: 12, within: 5%}\n")
	for _, test := range []struct {
		scatter     float64
		least, most int // trials of all cells
	}{
		{0, 12, 12},
		{0.2, 12, 12},
		{13, 20, 47},
		{60, 48, 48},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		list := played(t, spec, 3, func(cell string, repeat int) Trial {
			return of(cell, repeat, 200+test.scatter*random.NormFloat64())
		})
		if n := len(list); n < test.least || n > test.most {
			t.Errorf("scatter of %v: %d trials, want %d to %d", test.scatter, n, test.least, test.most)
		}
	}
}

// TestFailures: what cannot run here is tried once, what fails twice; one failure does not keep a cell from being
// measured.
func TestFailures(t *testing.T) {
	spec := mustRead(t, "axes: {case: [fine, fails, flaky, cannot]}\ncommand: x {case}\nrepeats: 4\n")
	counts := map[string]int{}
	played(t, spec, 3, func(cell string, repeat int) Trial {
		counts[strings.TrimPrefix(cell, "case=")]++
		switch {
		case cell == "case=flaky" && repeat == 2:
			return Trial{Cell: cell, Repeat: repeat, State: Failed}
		case cell == "case=fails":
			return Trial{Cell: cell, Repeat: repeat, State: TimedOut}
		case cell == "case=cannot":
			return Trial{Cell: cell, Repeat: repeat, State: Unavailable}
		}
		return of(cell, repeat, 100)
	})
	if counts["fine"] != 4 || counts["flaky"] != 4 || counts["fails"] != 2 || counts["cannot"] != 1 {
		t.Errorf("%v", counts)
	}
}

// TestImaginedOutOfMemoryOnce: an imaginary device would answer the same again, a machine may not.
func TestImaginedOutOfMemoryOnce(t *testing.T) {
	spec := mustRead(t, "axes: {model: [lenet], device: [cpu, \"imagined:t4\"]}\nrepeats: 4\n")
	counts := map[string]int{}
	played(t, spec, 3, func(cell string, repeat int) Trial {
		counts[cell]++
		return Trial{Cell: cell, Repeat: repeat, State: OutOfMemory}
	})
	if counts["model=lenet device=cpu"] != 2 || counts["model=lenet device=imagined:t4"] != 1 {
		t.Errorf("%v", counts)
	}
}

// TestLostTrialsAreMadeAgain: three times, and then it stands as lost.
func TestLostTrialsAreMadeAgain(t *testing.T) {
	spec := mustRead(t, "axes: {case: [lucky, not]}\ncommand: x {case}\nrepeats: 1\n")
	tries := map[string]int{}
	played(t, spec, 3, func(cell string, repeat int) Trial {
		if tries[cell]++; tries[cell] == 2 && cell == "case=lucky" {
			return of(cell, repeat, 1)
		}
		return Trial{Cell: cell, Repeat: repeat, State: Lost}
	})
	if tries["case=lucky"] != 2 || tries["case=not"] != mostLosses+1 {
		t.Errorf("%v", tries)
	}
}

// TestExpectations: of a cell's own trials, else of its nearest neighbours'.
func TestExpectations(t *testing.T) {
	spec := mustRead(t, "axes: {model: [lenet, resnet18], batch: [1, 2]}\n")
	p := newPlan(spec, 1)
	cell := &spec.Cells[3]
	expects := func() int64 { return p.expects(cell).Memory.Or(-1) >> 20 }
	for _, step := range []struct {
		trial Trial
		want  int64
	}{
		{of("model=lenet batch=1", 1, 10), 10},     // differs in both
		{of("model=lenet batch=2", 1, 20), 20},     // in one
		{of("model=resnet18 batch=1", 1, 30), 30},  // in one as well: the larger
		{of("model=resnet18 batch=2", 1, 25), 25},  // itself
		{of("model=resnet18 batch=2", 2, 26), 26},  // its largest
		{of("model=resnet18 batch=1", 2, 100), 26}, // no other counts any more
	} {
		if p.add(step.trial); expects() != step.want {
			t.Errorf("after %s #%d: %d MiB, want %d", step.trial.Cell, step.trial.Repeat, expects(), step.want)
		}
	}
}

// openJournal opens one in a folder, for a spec of a few cells.
func openJournal(t *testing.T, dir string, again bool) (*Journal, *Spec) {
	t.Helper()
	spec := mustRead(t, "axes: {case: [a, b, c, d, e, f]}\ncommand: x {case}\nrepeats: 2\n")
	j, err := OpenJournal(dir, spec, 5, 77, again)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j, spec
}

// TestJobsWithinMemory: trials run beside each other as far as memory allows; the first one, of which nothing is known,
// alone.
func TestJobsWithinMemory(t *testing.T) {
	for _, test := range []struct {
		name string
		free int64 // MiB
		want int   // trials of 20 MiB at once
	}{
		{"plenty", 1000, 3},
		{"for two", 47, 2},
		{"for one", 30, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			j, spec := openJournal(t, t.TempDir(), false)
			var lock sync.Mutex
			full := sync.NewCond(&lock) // that many run
			running, most, first := 0, 0, true
			host := Host{
				Now:  time.Now,
				Free: func() mem.Optional { return mem.Some(test.free << 20) },
				Trial: func(_ context.Context, cell *Cell, repeat int, _ uint64, _ func(mem.Bytes)) (Trial, Machine, error) {
					lock.Lock()
					defer lock.Unlock()
					running++
					if most = max(most, running); first && running > 1 {
						t.Error("the first did not run alone")
					}
					alone := first
					for !alone && most < test.want { // the others come, or the test hangs
						full.Wait()
					}
					full.Broadcast()
					running--
					first = false
					return of(cell.Key, repeat, 20), Machine{}, nil
				},
			}
			if err := Run(t.Context(), spec, j, 3, host); err != nil {
				t.Fatal(err)
			}
			if most != test.want || len(j.Trials) != 12 {
				t.Errorf("%d at once, want %d; %d trials", most, test.want, len(j.Trials))
			}
		})
	}
}

// TestInterrupted: trials that had not ended are not kept, and those that had are.
func TestInterrupted(t *testing.T) {
	j, spec := openJournal(t, t.TempDir(), false)
	ctx, cancel := context.WithCancel(t.Context())
	var told Progress
	host := Host{Now: time.Now, Free: func() mem.Optional { return mem.Optional{} },
		Events: func(e event.Event) { told = e.(Progress) },
		Trial: func(ctx context.Context, cell *Cell, repeat int, _ uint64, _ func(mem.Bytes)) (Trial, Machine, error) {
			if len(j.Trials) == 3 {
				cancel()
				<-ctx.Done()
				return Trial{}, Machine{}, ctx.Err()
			}
			return of(cell.Key, repeat, 1), Machine{Name: "here"}, nil
		}}
	if err := Run(ctx, spec, j, 1, host); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if len(j.Trials) != 3 || told.Done != 3 || told.All != 12 {
		t.Errorf("%d trials kept, %d of %d told", len(j.Trials), told.Done, told.All)
	}
}

// TestJournal: what was added is there again, whatever happened to the file's end or to a line of it.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j, spec := openJournal(t, dir, false)
	here := Machine{Name: "here", Processors: 2}
	for i, trial := range []Trial{of("case=a", 1, 1), {Cell: "case=b", Repeat: 1, State: Lost}, of("case=b", 1, 2),
		of("case=c", 1, 3)} {
		if err := j.Add(trial, here); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := OpenJournal(dir, spec, 1, 1, false); fail.Code(err) != fail.ExitBadInput || !strings.Contains(err.Error(), fmt.Sprintf("by process %d", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	j.Close()

	path := filepath.Join(dir, journalFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(text), `{"trial":{"cell":"case=a"`, `{"trial":{"cell":}`, 1) +
		`{"trial":{"cell":"case=d","re`
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	j, _ = openJournal(t, dir, false)
	if j.Damaged != 1 || j.Seed != 5 || j.StartWall != 77 || len(j.Trials) != 2 || j.Trials[0].State != Done ||
		len(j.Machines) != 1 {
		t.Errorf("%+v", j)
	}
	if err := j.Add(of("case=d", 1, 4), here); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if trials, seed, err := PeekJournal(dir, spec, 9); len(trials) != 3 || seed != 5 || err != nil {
		t.Errorf("%d trials, seed %d, %v", len(trials), seed, err)
	}

	other := mustRead(t, spec.Text+"# another text\n")
	if _, err := OpenJournal(dir, other, 1, 1, false); fail.Code(err) != fail.ExitBadInput || !strings.Contains(fail.Hint(err), "--again") {
		t.Errorf("another text: %v", err)
	}
	j, _ = openJournal(t, dir, true)
	j.Close()
	if old, err := os.ReadFile(filepath.Join(dir, "journal.1.jsonl")); len(j.Trials) != 0 || err != nil || !strings.Contains(string(old), "case=d") {
		t.Errorf("%d trials, %v", len(j.Trials), err)
	}
}

// TestDamagedHeader: what was measured is not thrown away because the first line cannot be read.
func TestDamagedHeader(t *testing.T) {
	dir := t.TempDir()
	j, spec := openJournal(t, dir, false)
	if err := j.Add(of("case=a", 1, 1), Machine{}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	path := filepath.Join(dir, journalFile)
	text, _ := os.ReadFile(path)
	text[0] = 'x'
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(dir, spec, 1, 1, false); fail.Code(err) != fail.ExitBadInput {
		t.Errorf("%v", err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Error("the journal was changed")
	}
}

// TestRowsAreTold: first those of all cells, then that of the cell whose trial ended, with its interval as far as it
// goes.
func TestRowsAreTold(t *testing.T) {
	j, spec := openJournal(t, t.TempDir(), false)
	seen := map[string]CellRow{}
	first := 0
	value := 100.0
	host := Host{Now: time.Now, Free: func() mem.Optional { return mem.Optional{} }, Events: func(e event.Event) {
		p := e.(Progress)
		if first == 0 {
			first = len(p.Rows)
		} else if len(p.Rows) > 1 || p.Last != nil && (len(p.Rows) != 1 || p.Rows[0].Key != p.Last.Cell) {
			t.Errorf("%d rows with %v", len(p.Rows), p.Last)
		}
		for _, row := range p.Rows {
			seen[row.Key] = row
		}
	}, Trial: func(_ context.Context, cell *Cell, repeat int, _ uint64, _ func(mem.Bytes)) (Trial, Machine, error) {
		value++
		return of(cell.Key, repeat, value), Machine{Name: "here"}, nil
	}}
	if err := Run(t.Context(), spec, j, 1, host); err != nil {
		t.Fatal(err)
	}
	if first != len(spec.Cells) || len(seen) != first {
		t.Errorf("%d rows first, %d seen, %d cells", first, len(seen), len(spec.Cells))
	}
	for key, row := range seen {
		if row.State != Done || row.Left != 0 || row.Trials != spec.Goal.Least || row.Within == nil ||
			row.Within.Low >= row.Value || row.Within.High <= row.Value {
			t.Errorf("%s: %+v", key, row)
		}
	}
}
