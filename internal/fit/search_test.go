package fit

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"hightide/internal/mem"
)

const gib = int64(1) << 30

// curve is a made-up training: what it allocates and holds at each batch.
type curve struct {
	name      string
	plan      Plan
	capacity  int64
	allocated func(batch int) int64
	waste     func(batch int) int64 // that the allocator cannot give back
	silent    bool                  // says no bytes
	most      int                   // trials allowed
}

func (c curve) try(batch int) (Trial, error) {
	t := Trial{Batch: batch, OK: true, Label: mem.Imagined}
	a := c.allocated(batch)
	if a+c.waste(batch) > c.capacity {
		t.OK = false
		return t, nil
	}
	if !c.silent {
		t.Allocated, t.Reserved, t.Capacity = mem.Some(a), mem.Some(a+c.waste(batch)), mem.Some(c.capacity)
	}
	return t, nil
}

func line(fixed, each int64) func(int) int64 {
	return func(batch int) int64 { return fixed + each*int64(batch) }
}

func nothing(int) int64 { return 0 }

func TestSearchFindsTheLimit(t *testing.T) {
	stairs := func(batch int) int64 { // rounding, and another algorithm from 100 on
		n := (int64(450<<20) + 37<<20*int64(batch)) &^ (20<<20 - 1)
		if batch >= 100 {
			n += 900 << 20
		}
		return n
	}
	for _, c := range []curve{
		{"straight, in steps of 8", Plan{Step: 8}, 22 * gib, line(gib, 75<<20), nothing, false, 5},
		{"straight, to the sample", Plan{}, 22 * gib, line(gib, 75<<20), nothing, false, 5},
		{"wasteful allocator", Plan{}, 22 * gib, line(gib, 75<<20), func(b int) int64 { return int64(b) * 2 << 20 }, false,
			10},
		{"stairs", Plan{}, 22 * gib, stairs, nothing, false, 11},
		{"stairs in steps of 8", Plan{Step: 8}, 22 * gib, stairs, nothing, false, 7},
		{"one sample fits", Plan{}, 22 * gib, line(gib, 15*gib), nothing, false, 4},
		{"nothing fits", Plan{}, 22 * gib, line(23*gib, 1), nothing, false, 4},
		{"nothing fits in steps of 8", Plan{Step: 8}, 22 * gib, line(10*gib, 2*gib), nothing, false, 1},
		{"everything fits", Plan{Most: 4096}, 22 * gib, line(gib, 1), nothing, false, 4},
		{"no bytes known", Plan{}, 22 * gib, line(gib, 75<<20), nothing, true, 14},
		{"curved", Plan{Step: 4}, 40 * gib, func(b int) int64 { return gib + int64(b)*int64(b)<<20 }, nothing, false, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := Search(c.plan, c.try)
			if err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, c, result)
			if len(result.Trials) > c.most {
				t.Errorf("%d trials, want at most %d: %v", len(result.Trials), c.most, batches(result))
			}
		})
	}
}

func trialOf(r Found, batch int) (Trial, bool) {
	i := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Batch == batch })
	if i < 0 {
		return Trial{}, false
	}
	return r.Trials[i], true
}

// checkAnswer demands that both ends of the answer were run, one step apart.
func checkAnswer(t *testing.T, c curve, r Found) {
	t.Helper()
	step := max(c.plan.Step, 1)
	if r.Largest > 0 {
		if trial, ok := trialOf(r, r.Largest); !ok || !trial.OK {
			t.Errorf("largest %d was not seen to fit: %v", r.Largest, batches(r))
		}
	}
	if r.Fails == 0 {
		if r.Largest != c.plan.Most {
			t.Errorf("nothing failed, but largest is %d of %d", r.Largest, c.plan.Most)
		}
		return
	}
	if trial, ok := trialOf(r, r.Fails); !ok || trial.OK || r.Fails != r.Largest+step {
		t.Errorf("largest %d, fails at %d: %v", r.Largest, r.Fails, batches(r))
	}
	seen := map[int]bool{}
	for _, trial := range r.Trials {
		if seen[trial.Batch] || trial.Batch%step != 0 {
			t.Errorf("batch %d twice, or no multiple of %d: %v", trial.Batch, step, batches(r))
		}
		seen[trial.Batch] = true
	}
}

func batches(r Found) []int {
	var all []int
	for _, t := range r.Trials {
		all = append(all, t.Batch)
	}
	return all
}

func TestSearchOnManyCurves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	trials, n := 0, 2000
	for range n {
		each := int64(1<<20) + random.Int64N(200<<20)
		noise := random.Int64N(8 << 20)
		c := curve{plan: Plan{Step: []int{1, 2, 8, 32}[random.IntN(4)], First: random.IntN(40)}, capacity: 4*gib +
			random.Int64N(76*gib),
			allocated: line(random.Int64N(2*gib), each), waste: func(b int) int64 { return int64(b) * noise }}
		result, err := Search(c.plan, c.try)
		if err != nil {
			t.Fatal(err)
		}
		checkAnswer(t, c, result)
		trials += len(result.Trials)
	}
	if mean := float64(trials) / float64(n); mean > 9 {
		t.Errorf("%.1f trials on average", mean)
	}
}

func TestSearchStopsAtAnError(t *testing.T) {
	broken := errors.New("shapes do not match")
	result, err := Search(Plan{}, func(batch int) (Trial, error) {
		if batch > 8 {
			return Trial{}, broken
		}
		return Trial{Batch: batch, OK: true}, nil
	})
	if !errors.Is(err, broken) || result.Largest != 8 || len(result.Trials) != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
}
