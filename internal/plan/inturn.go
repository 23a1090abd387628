package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"hightide/internal/event"
	"hightide/internal/report"
)

// imagining replaces estimates of an answer by imagined runs.
type imagining struct {
	facts  *facts
	places []Place
	result *Result

	command func(count int) []string // on so many GPUs
	doing   string
	all     bool
	tell    event.Sink
	atOnce  func(runs int) int
}

// mostFailures is how many runs may fail one after the other, for another reason than memory, before no more are made.
const mostFailures = 2

// each runs the use on each GPU that may do it, the cheapest first, several at once where the machine has room. The first
// that does it ends the search once all cheaper ones have ended too; what costs more is then not waited for.
func (im *imagining) each(ctx context.Context, run Trial) error {
	t := &turns{imagining: im, run: run, cancels: map[int]context.CancelFunc{}}
	for _, row := range im.candidates() {
		t.keys = append(t.keys, row.key())
	}
	t.end = len(t.keys)
	im.tell.Tell(Imagined{Result: im.result, Doing: im.doing})
	var group sync.WaitGroup
	for range im.atOnce(len(t.keys)) {
		group.Go(func() {
			for i, ok := t.begin(); ok && ctx.Err() == nil; i, ok = t.begin() {
				t.make(ctx, i)
			}
		})
	}
	group.Wait()
	return cmp.Or(t.err, ctx.Err())
}

// turns are the runs of a plan, some of which are being made.
type turns struct {
	*imagining
	run  Trial
	keys []string // of the rows, in the order of their turns

	lock     sync.Mutex // of what follows, and of the answer
	next     int        // the first that has not begun
	end      int        // those from here on need not be made
	done     int
	failures int // one after the other
	cancels  map[int]context.CancelFunc
	err      error
}

// begin is the next turn; ok is false where there is none.
func (t *turns) begin() (i int, ok bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	i = t.next
	t.next++
	return i, i < t.end
}

// make is one turn.
func (t *turns) make(ctx context.Context, i int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.lock.Lock()
	p, row := t.place(t.keys[i]), t.result.row(t.keys[i])
	if i >= t.end {
		t.lock.Unlock()
		return
	}
	t.cancels[i] = cancel
	t.progress()
	count := row.Count
	t.lock.Unlock()

	v, said, err := t.run(ctx, p.GPU, count, append(t.command(count), t.facts.flagsOn(p.GPU)...))

	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.cancels, i)
	if t.done++; ctx.Err() != nil {
		return // nobody waits for it, and how it ended says nothing
	}
	if err != nil {
		t.err = cmp.Or(t.err, err)
		t.stop(0)
		return
	}
	t.judge(i, p, v, said)
}

// judge is what a run says of its row, and of whether more are made.
func (t *turns) judge(i int, p *Place, v *report.Imagined, said string) {
	row := t.result.row(t.keys[i])
	before := row.guess()
	if why := t.facts.replace(row, p.GPU, v); why != "" {
		row.Note = "the imagined run failed, not for memory: " + cmp.Or(why, plainText(said))
		if t.failures++; t.failures == mostFailures {
			t.result.Notes = append(t.result.Notes, "no more was imagined after "+row.called()+": "+row.Note)
			t.stop(0)
		}
		return
	}
	t.failures = 0
	row.Estimated = before
	t.tell.Tell(Imagined{row, t.result, t.doing})
	if row.Verdict == Fits && !t.all {
		t.stop(i)
	}
}

// stop ends the turns from this one on, also those that are being made.
func (t *turns) stop(from int) {
	t.end = min(t.end, from)
	for i, cancel := range t.cancels {
		if i >= from {
			cancel()
		}
	}
}

// progress tells what is being run.
func (t *turns) progress() {
	var names []string
	for i, key := range t.keys {
		if t.cancels[i] != nil {
			names = append(names, t.result.row(key).called())
		}
	}
	t.tell.Tell(event.Progress{Done: t.done, All: len(t.keys), Text: "imagining " + strings.Join(names, ", ")})
}

// candidates are the rows that may do it, on GPUs that can be imagined: the cheapest first. Nothing splits a batch that
// is generated among the GPUs of a machine.
func (im *imagining) candidates() (rows []*Row) {
	for i := range im.result.Rows {
		row := &im.result.Rows[i]
		g := im.place(row.key()).GPU
		if row.Verdict != No && g.CUDA() && g.Compute != "" && (row.Count == 1 || im.facts.use.For != Infer) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return cmp.Or(comparePrice(a.Price, b.Price), cmp.Compare(a.Total, b.Total))
	})
	return rows
}

func (im *imagining) place(key string) *Place {
	for i := range im.places {
		p := &im.places[i]
		if p.Machine != nil && p.Machine.Name == key || p.Machine == nil && p.GPU.Slug == key {
			return p
		}
	}
	return nil
}
