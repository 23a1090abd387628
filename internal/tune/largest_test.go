package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// sized is gpt with so many samples in its batch; a batch of 8 is gpt's own.
func sized(batch int, total mem.Bytes) *program {
	p := gpt()
	of := func(b mem.Bytes) mem.Bytes { return b * mem.Bytes(batch) / 8 }
	r := p.recorded
	for i := range r.Blocks {
		b := &r.Blocks[i]
		b.Kept, b.Out, b.Forward, b.Backward = of(b.Kept), of(b.Out), of(b.Forward), of(b.Backward)
	}
	r.Middle, r.Highest, p.total, p.saves = of(r.Middle), of(r.Highest), total, nil
	return p
}

// TestLargest: the largest batch is that of a look at every size, in some ten probes at most, and the next one does not fit.
func TestLargest(t *testing.T) {
	for _, test := range []struct {
		start int
		total mem.Bytes
	}{{8, 1800 * mem.MiB}, {1, 1800 * mem.MiB}, {64, 1800 * mem.MiB}, {8, 24 * mem.GiB}, {7, 400 * mem.MiB}, {3, 120 * mem.MiB}} {
		want := 0
		for size := 1; size < 2000; size++ {
			p := sized(size, test.total)
			if p.recorded.Peak(p.recorded.names())+beside+p.tight > test.total {
				break
			}
			want = size
		}
		o := Options{Command: []string{"python", "train.py"}, GPU: "a10", Goal: Batch}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		runs := map[string]int{} // by size and plan
		r, err := Largest(t.Context(), o, Batches{Start: test.start,
			With: func(size int) []string { return []string{"python", "train.py", fmt.Sprint(size)} },
			Open: func(size int) (Host, error) {
				p := sized(size, test.total)
				return Host{Try: func(ctx context.Context, asked []Run) []*Outcome {
					for _, run := range asked {
						names, _ := json.Marshal(p.recorded.names())
						runs[fmt.Sprint(size, " ", run.Roomy, strings.Replace(key(run.Plan), `["*"]`, string(names), 1))]++
					}
					return p.try(ctx, asked)
				}}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for run, times := range runs {
			if made += times; times > 1 && strings.HasPrefix(run, fmt.Sprint(test.start, " ")) {
				t.Errorf("from %d in %v: %s ran %d times", test.start, test.total, run, times)
			}
		}
		exact := want // below 128; of larger ones to a 64th
		if want >= 2*fine && r.Batch <= want && want-r.Batch <= want/fine {
			exact = r.Batch
		}
		if r.Batch != exact || len(r.Probes) > 12 || made > 80 || r.Runs != made {
			t.Errorf("from %d in %v: %d, not %d, in %d probes and %d runs, said to be %d: %s", test.start, test.total,
				r.Batch, want, len(r.Probes), made, r.Runs, r.Answer)
		}
		switch {
		case want == 0 && (r.Recommended != nil || !strings.HasPrefix(r.Answer, "No batch fits")):
			t.Errorf("nothing fits: %s", r.Answer)
		case want > 0 && (r.Recommended == nil || !strings.Contains(r.Answer, " does not fit with the plans") ||
			want < 2*fine && !strings.Contains(r.Answer, fmt.Sprintf("; %d does not fit", want+1))):
			t.Errorf("%d: %s", want, r.Answer)
		}
	}
}

// TestOwnedBatch: a batch that a trainer owns in the program is no larger than its data set, and one that nobody owns is
// wrong usage.
func TestOwnedBatch(t *testing.T) {
	for _, test := range []struct {
		owner         string
		total         mem.Bytes
		samples, want int
		says          string
	}{
		{"batch_size of the loader", 600 * mem.MiB, 1 << 30, 4, "is 4, to be set in the program as batch_size of the loader; 5 does not fit"},
		{"batch_size of the loader", 600 * mem.MiB, 3, 3, "as batch_size of the loader; its data set has no more samples. "},
		{"batch_size of the loader", 9 * mem.GiB, 10, 10, "as batch_size of the loader; its data set has no more samples. "},
		{"", 600 * mem.MiB, 0, 0, "the command does not say its batch"},
	} {
		o := Options{Command: []string{"python", "train.py"}, GPU: "a10", Goal: Batch}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		r, err := Largest(t.Context(), o, Batches{Start: 8, Owned: true, With: func(int) []string { return o.Command },
			Open: func(size int) (Host, error) {
				p := sized(size, test.total)
				return Host{Try: func(ctx context.Context, runs []Run) []*Outcome {
					outcomes := p.try(ctx, runs)
					for _, o := range outcomes {
						o.Owner, o.Samples = test.owner, mem.Some(int64(test.samples))
					}
					return outcomes
				}}, nil
			}})
		switch {
		case test.owner == "":
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("nobody owns it: %v", err)
			}
		case err != nil:
			t.Fatal(err)
		case r.Batch != test.want || r.Owner != test.owner || !strings.Contains(r.Answer, test.says):
			t.Errorf("%d of %d samples, want %d: %s", r.Batch, test.samples, test.want, r.Answer)
		}
	}
}

// TestLevelBatch: where memory does not depend on the batch, the search ends after a few sizes, and says so.
func TestLevelBatch(t *testing.T) {
	o := Options{Command: []string{"python", "train.py"}, GPU: "a10", Goal: Batch}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := Largest(t.Context(), o, Batches{Start: 8,
		With: func(size int) []string { return []string{"python", "train.py", fmt.Sprint(size)} },
		Open: func(int) (Host, error) {
			p := sized(8, 24*mem.GiB)
			return Host{Try: p.try}, nil
		}})
	if err != nil || len(r.Probes) > 5 || r.Batch < flat ||
		!strings.Contains(r.Answer, "memory does not depend on it, as 8 takes as much, and larger ones were not tried") {
		t.Errorf("%v: %d, in %d probes: %s", err, r.Batch, len(r.Probes), r.Answer)
	}
}
