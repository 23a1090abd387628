package trend

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// run is one of a commit; each begins after the one before.
func run(n int, commit string, bytes float64) store.Run {
	return store.Run{ID: fmt.Sprintf("r%d", n), Start: int64(n), GitCommit: commit, Ended: mem.Ending{Kind: mem.EndDone},
		Figure: mem.Figure{Bytes: int64(bytes), What: "PSS", Source: mem.SeriesTreePSS, Label: mem.Measured}}
}

func verdicts(t Trend) (all []Verdict) {
	for _, c := range t.Commits {
		all = append(all, c.Verdict)
	}
	return all
}

func TestOneCommitChangesIt(t *testing.T) {
	runs := []store.Run{run(1, "a", 100e6), run(2, "a", 102e6), run(3, "b", 101e6), run(4, "b", 100e6),
		run(5, "c", 150e6), run(6, "c", 151e6), run(7, "d", 151e6)}
	slices.Reverse(runs)
	got := Of(runs, Peak)
	if want := []Verdict{"", Noise, Changed, Noise}; !reflect.DeepEqual(verdicts(got), want) {
		t.Errorf("%v, want %v: %+v", verdicts(got), want, got)
	}
	if c := got.Commits[2]; c.Commit != "c" || c.Change != mem.Some(50e6) || c.Before != "r4" || c.First != "r5" {
		t.Errorf("%+v", c)
	}
}

// TestWithoutRepeatsNothingIsSaid: one run of each commit tells no noise.
func TestWithoutRepeatsNothingIsSaid(t *testing.T) {
	got := Of([]store.Run{run(1, "a", 100e6), run(2, "b", 900e6)}, Peak)
	if c := got.Commits[1]; c.Verdict != Unknown || c.Noise.Known() || c.Change != mem.Some(800e6) {
		t.Errorf("%+v", c)
	}
	dirty := []store.Run{run(1, "a", 100e6), run(2, "b", 900e6), run(3, "b", 100e6)}
	dirty[1].GitDirty, dirty[2].GitDirty = true, true
	if c := Of(dirty, Peak).Commits[1]; c.Verdict != Unknown || !c.Dirty {
		t.Errorf("runs of changed files taken for repeats: %+v", c)
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	failed, bare, other := run(2, "a", 1), run(3, "", 1), run(4, "a", 1)
	failed.Ended.Kind, other.Figure.What = mem.EndOOM, "RSS"
	got := Of([]store.Run{run(1, "a", 5), failed, bare, other, run(5, "b", 5)}, Peak)
	if len(got.Left) != 3 || got.What != "PSS" || len(got.Commits) != 2 || got.Commits[0].Runs != 1 {
		t.Errorf("%+v", got)
	}
	if got := Of(nil, Peak); len(got.Commits) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestErrorsOfFigures: a change that the figures' own errors explain is none, and of a bound nothing is said.
func TestErrorsOfFigures(t *testing.T) {
	runs := []store.Run{run(1, "a", 100e6), run(2, "a", 100e6), run(3, "b", 110e6), run(4, "b", 110e6)}
	if got := Of(runs, Peak).Commits[1].Verdict; got != Changed {
		t.Errorf("exact: %v", got)
	}
	for i := range runs {
		runs[i].Figure.Error = 6e6
	}
	if got := Of(runs, Peak).Commits[1].Verdict; got != Noise {
		t.Errorf("±6 MB each: %v", got)
	}
	runs[3].Figure.AtLeast = true
	if got := Of(runs, Peak).Commits[1].Verdict; got != Unknown {
		t.Errorf("at least: %v", got)
	}
}

// TestTrendsAreRightAsOftenAsTheySay: of trends in which nothing changes 1 in 20 may have a change, and a change of
// eight times the noise is found.
func TestTrendsAreRightAsOftenAsTheySay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trends, commits, repeats, noise = 1000, 20, 3, 1e6
	wrong, found := 0, 0
	for range trends {
		var still, step []store.Run
		for n := range commits * repeats {
			commit := fmt.Sprintf("c%02d", n/repeats)
			bytes := 1e9 + noise*random.NormFloat64()
			still = append(still, run(n, commit, bytes))
			if n >= commits*repeats/2 {
				bytes += 8 * noise
			}
			step = append(step, run(n, commit, bytes))
		}
		if slices.Contains(verdicts(Of(still, Peak)), Changed) {
			wrong++
		}
		if Of(step, Peak).Commits[commits/2].Verdict == Changed {
			found++
		}
	}
	t.Logf("of %d: %d wrong, %d found", trends, wrong, found)
	if wrong > trends*7/100 || wrong == 0 || found < trends*99/100 {
		t.Errorf("of %d: %d wrong, %d found", trends, wrong, found)
	}
}

// TestWhyNoNoiseIsKnown: the reason that is given is the one.
func TestWhyNoNoiseIsKnown(t *testing.T) {
	bound := run(3, "a", 100)
	bound.Figure.AtLeast = true
	changed := run(4, "a", 100)
	changed.GitDirty = true
	for want, runs := range map[string][]store.Run{
		"":              {run(1, "a", 100), run(2, "a", 101), run(3, "b", 100)},
		"was run twice": {run(1, "a", 100), run(2, "b", 101)},
		"twice":         {changed, changed, run(1, "b", 100)},
		"at least":      {run(1, "a", 100), bound, run(5, "b", 100)},
	} {
		if got := Of(runs, Peak).Unknown; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	}
	if got := Of([]store.Run{run(1, "a", 1)}, Peak).Unknown; got != "" {
		t.Errorf("of one commit: %q", got)
	}
}
