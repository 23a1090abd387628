package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"hightide/internal/engine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

//	engine.Follow ──▶ hub: the recording in memory, as it grows ──▶ report, curves (runs.go, series.go)
//	                   └─▶ ring: what is new, encoded once      ──▶ any number of viewers (live.go)

// hub is a run that somebody looks at. One follower reads its recording; all who ask share what it read.
type hub struct {
	id     string
	stop   context.CancelFunc
	gone   chan struct{} // closed once the follower has ended
	caught chan struct{} // closed once what was there when the hub began has been read, or cannot be

	mu     sync.RWMutex // of all below
	run    *mem.Run
	row    store.Run
	rowAt  time.Time // when it was read
	at     int64     // the place in the recording up to which run is
	newest int64     // of what was read, ns since the run began
	ended  *end      // why nothing more comes; nil: more may
	told   time.Time // when viewers were told last that the report has more to say
	feed   *feed     // what viewers are sent; it changes with run

	users int         // who looks at it; guarded by hubs.mu
	used  time.Time   // when the last of them went away; likewise
	idle  *time.Timer // gives it up some time later; likewise

	reporting chan struct{} // room for one: who has put something there makes the report, others wait for it
	reported  reported
}

// end says why no more comes.
type end struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	err    error  // where the run cannot be read at all
}

// reported is a report as it was made.
type reported struct {
	at    int64 // of the recording
	ended bool
	made  time.Time
	took  time.Duration
	value *report.Report
	text  []byte // as JSON
}

// farBehind is how much of a recording may be left to read for what is read to be kept for viewers: what is older
// they would not get anyway.
const farBehind = 1 << 20

// follow reads the recording until it ends or nobody looks any more.
func (h *hub) follow(ctx context.Context, e *engine.Engine) {
	printing, printed := context.WithCancel(ctx)
	var output sync.WaitGroup
	output.Go(func() { h.followOutput(printing, e) })
	why := error(nil)
	read := func() {}
	if h.large() {
		read = sync.OnceFunc(e.Runtime.TuneTo(launch.Reading))
		defer read()
	}
	for batch, err := range e.Follow(ctx, h.id, 0) {
		if err != nil {
			why = err
			break
		}
		if h.takeBatch(batch); batch.Left == 0 {
			read()
		}
	}
	printed()
	output.Wait() // the end is the last event
	row, err := e.Find(context.WithoutCancel(ctx), h.id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.row, h.rowAt = row, time.Now()
	}
	h.ended = endOf(h.run, why)
	h.push(message{h.at, h.at, eventText("end", struct {
		store.Run
		*end
	}{h.row, h.ended}, h.at)})
	h.feed.close()
	h.catchUp()
}

// large says whether a run takes so much memory that it is worth giving back at once.
func (h *hub) large() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return max(h.at, h.row.Size) > heldLeast
}

// catchUp says that what was there has been read.
func (h *hub) catchUp() {
	select {
	case <-h.caught:
	default:
		close(h.caught)
	}
}

// takeBatch adds a batch to the run, and encodes it for the viewers.
func (h *hub) takeBatch(batch store.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh, told := news{run: h.run}, batch.Left <= farBehind
	for _, f := range batch.Frames {
		if h.run.Add(f) != nil {
			continue
		}
		if samples, ok := f.(mem.Samples); ok && len(samples.Times) > 0 {
			h.newest = max(h.newest, fresh.since(samples.Times[len(samples.Times)-1]))
		}
		if told {
			fresh.add(f)
		}
	}
	for _, d := range batch.Damage {
		h.run.Damage = append(h.run.Damage, d)
		fresh.damage(d, h.newest)
	}
	from := h.at
	h.at = batch.Next
	if told {
		h.push(message{from, h.at, fresh.events(h.at)})
	} else {
		h.feed.change(func(r *ring) { r.restartAt(h.at) })
	}
	if batch.Left == 0 {
		h.catchUp()
		h.tellOfReport()
	}
}

// reportEvery is how often viewers are told that the report has more to say, at most.
const reportEvery = 2 * time.Second

func (h *hub) tellOfReport() {
	if now := time.Now(); now.Sub(h.told) >= reportEvery {
		h.told = now
		h.push(message{h.at, h.at, eventText("report", reportDue{h.newest}, -1)})
	}
}

type reportDue struct {
	At int64 `json:"at_ns"`
}

// push gives viewers something to read.
func (h *hub) push(m message) {
	if len(m.text) == 0 {
		h.feed.change(func(r *ring) { r.skip(m) })
		return
	}
	h.feed.change(func(r *ring) { r.push(m) })
}

// rest gives up what only viewers need of a run that has ended: all but the end itself.
func (h *hub) rest() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.ended != nil {
		h.feed.change(func(r *ring) { r.keepLast() })
	}
}

// endOf says why a recording gives no more, from the error that following it ended with.
func endOf(run *mem.Run, err error) *end {
	switch {
	case err == nil && run.End != nil:
		return &end{"finished", "The run has ended.", nil}
	case err == nil:
		return &end{"cut off", "The engine that recorded the run went away before its end.", nil}
	case errors.Is(err, store.ErrNotFound):
		return &end{"removed", "The run was deleted.", err}
	case errors.Is(err, store.ErrNewer):
		return &end{"newer", "A newer hightide recorded the run: install that version to look at it.", err}
	}
	return &end{"unreadable", "The recording cannot be read on: " + line(err), err}
}

// rowFor is how long a row of the list is taken for right while the run goes on.
const rowFor = time.Second

// current is the row of the run as it stands, nearly.
func (h *hub) current(ctx context.Context, e *engine.Engine) store.Run {
	h.mu.RLock()
	row, fresh := h.row, h.ended != nil || time.Since(h.rowAt) < rowFor
	h.mu.RUnlock()
	if fresh {
		return row
	}
	now, err := e.Find(ctx, h.id)
	if err != nil {
		return row
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row, h.rowAt = now, time.Now()
	return now
}

// reportLoad is the part of one core that reports of a run may take while it goes on: one in so many.
const reportLoad = 5

// report is what is to be said of the run as it stands: made anew where the recording has grown, and not more often
// than costs a fifth of a core.
func (h *hub) report(ctx context.Context, e *engine.Engine) (*report.Report, []byte, error) {
	select {
	case h.reporting <- struct{}{}:
		defer func() { <-h.reporting }()
	case <-ctx.Done(): // who asked has gone, while another's report is made
		return nil, nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // both may be so: then nobody would read what is made
		return nil, nil, err
	}
	h.mu.RLock()
	at, ended, from, goesOn := h.at, h.ended, h.row.From, h.row.State == store.Running
	h.mu.RUnlock()
	last := &h.reported
	switch {
	case ended != nil && ended.err != nil:
		return nil, nil, ended.err
	case last.value != nil && last.at == at && last.ended == (ended != nil), // nothing is new
		last.value != nil && ended == nil && time.Since(last.made) < max(time.Second, (reportLoad-1)*last.took):
		return last.value, last.text, nil
	}
	if h.large() { // analyses take as much again
		defer e.Runtime.TuneTo(launch.Reading)()
	}
	began := time.Now()
	r := engine.AnalyzeFrom(from, h.view())
	if ended == nil && goesOn && r.Headline.Ended.Kind == mem.EndCutOff {
		r.Headline.Ended = mem.StillRunning
		r.SayNothing()
	}
	text, err := r.JSON()
	if err != nil {
		return nil, nil, err
	}
	*last = reported{at, ended != nil, time.Now(), time.Since(began), r, text}
	return r, text, nil
}

// view is the run as it stands, to be looked at while it grows on.
func (h *hub) view() *mem.Run {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.run.View()
}
