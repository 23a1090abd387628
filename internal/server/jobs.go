package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/options"
	"hightide/internal/store"
)

// A jobKind is a use case that takes longer than a request: one file, and one line below.
type jobKind struct {
	name  string
	short string // what it does, for the API's description
	exec  bool   // it starts programs
	takes options.List
	// begin reads the options and says what is to be done; an error refuses the job at once.
	begin func(s *Server, options json.RawMessage) (work, error)
}

// jobKinds lists the kinds of jobs. Add yours here.
var jobKinds = []jobKind{imagineJob, fitJob, tuneJob, benchJob, searchJob, explainJob}

// work is what a job does: a title for people, the command that it runs, if any, and the use case. What do returns is
// kept as the job's result, also beside an error.
type work struct {
	title   string
	command []string
	do      func(ctx context.Context, j *job) (any, error)
}

// Bounds of what jobs may take together: they share this machine, and figures of trials beside each other disturb
// each other.
const (
	jobsAtOnce = 2
	jobsQueued = 20
	jobsKept   = 100 // that have ended
)

// jobs is all that were asked for since the server began.
type jobs struct {
	ctx  context.Context // of all; done: the server ends
	stop context.CancelFunc

	lock  sync.Mutex
	all   []*job // in the order of their arrival
	count int
	ended sync.WaitGroup
}

func newJobs() *jobs {
	js := &jobs{}
	js.ctx, js.stop = context.WithCancel(context.Background())
	return js
}

// close cancels what is under way and waits for it.
func (js *jobs) close() {
	js.stop()
	js.ended.Wait()
}

// add queues a job, or says that there are too many.
func (js *jobs) add(kind string, w work, by string) (*job, error) {
	js.lock.Lock()
	defer js.lock.Unlock()
	waiting := 0
	for _, j := range js.all {
		if j.state() == JobQueued {
			waiting++
		}
	}
	if waiting >= jobsQueued {
		return nil, huma.Error429TooManyRequests(fmt.Sprintf("%d jobs wait already (cancel one, or wait for one to end)",
			waiting))
	}
	js.forget()
	js.count++
	j := newJob(js.ctx, fmt.Sprintf("job-%d", js.count), kind, w)
	j.By = by
	js.all = append(js.all, j)
	js.startNext()
	return j, nil
}

// forget drops the oldest of those that have ended, where too many are kept.
func (js *jobs) forget() {
	over := -jobsKept
	for _, j := range js.all {
		if j.state().over() {
			over++
		}
	}
	js.all = slices.DeleteFunc(js.all, func(j *job) bool {
		if over <= 0 || !j.state().over() {
			return false
		}
		over--
		return true
	})
}

// startNext starts queued jobs while there is room. The lock is held.
func (js *jobs) startNext() {
	running := 0
	for _, j := range js.all {
		if j.state() == JobRunning {
			running++
		}
	}
	for _, j := range js.all {
		if running >= jobsAtOnce {
			return
		}
		if !j.start() {
			continue
		}
		running++
		js.ended.Go(func() {
			j.run()
			js.lock.Lock()
			defer js.lock.Unlock()
			js.startNext()
		})
	}
}

func (js *jobs) findJob(id string) (*job, error) {
	js.lock.Lock()
	defer js.lock.Unlock()
	for _, j := range js.all {
		if j.ID == id {
			return j, nil
		}
	}
	return nil, fail.Input("GET /api/v1/jobs lists them; a server that ended forgets its jobs", "no job %s", id)
}

// list is all jobs, the newest first.
func (js *jobs) list() []Job {
	js.lock.Lock()
	defer js.lock.Unlock()
	rows := make([]Job, 0, len(js.all))
	for _, j := range slices.Backward(js.all) {
		rows = append(rows, j.told(false))
	}
	return rows
}

// JobList is what was asked for since the server began, the newest first, without results.
type JobList struct {
	Jobs []Job `json:"jobs" doc:"The jobs that this server has had."`
}

type jobInput struct {
	ID string `path:"id" maxLength:"40" doc:"As the list of jobs has it."`
}

type newJobInput struct {
	Body struct {
		Kind    string          `json:"kind" enum:"imagine,fit,tune,bench,search,explain" doc:"What is to be done."`
		Options json.RawMessage `json:"options" doc:"Of the kind."`
	}
}

type jobEventsInput struct {
	ID    string `path:"id" maxLength:"40" doc:"As the list of jobs has it."`
	After int    `header:"Last-Event-ID" doc:"Number of the last event that was received; 0: all that are kept."`
	From  int    `query:"from" doc:"The same, for clients that cannot set the header."`
}

func (s *Server) jobs(api huma.API) {
	get(api, "/jobs", "What was asked for since the server began", func(context.Context, *struct{}) (*JobList, error) {
		return &JobList{s.work.list()}, nil
	})
	get(api, "/jobs/{id}", "One job, with its result once it has one",
		func(_ context.Context, in *jobInput) (*Job, error) {
			j, err := s.work.findJob(in.ID)
			if err != nil {
				return nil, err
			}
			told := j.told(true)
			return &told, nil
		})
	huma.Post(api, "/api/v1/jobs", answering(s.newJob), func(o *huma.Operation) {
		o.Summary, o.DefaultStatus = "Begin a job: "+kindsText(), http.StatusCreated
	})
	huma.Delete(api, "/api/v1/jobs/{id}", answering(func(_ context.Context, in *jobInput) (*Job, error) {
		j, err := s.work.findJob(in.ID)
		if err != nil {
			return nil, err
		}
		j.cancelled()
		told := j.told(false)
		return &told, nil
	}), func(o *huma.Operation) { o.Summary = "Cancel a job; what it has come to so far stays" })
	sse.Register(api, huma.Operation{OperationID: "job-events", Method: http.MethodGet, Path: "/api/v1/jobs/{id}/events",
		Summary: "What a job tells while it works"},
		map[string]any{"job": Job{}, "told": Told{}, "end": JobEnd{}},
		func(ctx context.Context, in *jobEventsInput, send sse.Sender) {
			if j, err := s.work.findJob(in.ID); err == nil {
				j.stream(ctx, max(in.After, in.From), send)
			}
		})
}

func kindsText() string {
	var parts []string
	for _, k := range jobKinds {
		parts = append(parts, k.name+" ("+k.short+")")
	}
	return strings.Join(parts, ", ")
}

// newJob begins a job. One that starts programs needs --allow-exec and the token.
func (s *Server) newJob(ctx context.Context, in *newJobInput) (*Job, error) {
	at := slices.IndexFunc(jobKinds, func(k jobKind) bool { return k.name == in.Body.Kind })
	if at < 0 {
		return nil, fail.Usage("one of "+kindsText(), "no kind %s", in.Body.Kind)
	}
	kind := &jobKinds[at]
	if kind.exec && !s.options.AllowExec {
		return nil, huma.Error403Forbidden("this server starts no programs: begin it as hightide ui --allow-exec, and " +
			"open the address that it prints")
	}
	w, err := kind.begin(s, in.Body.Options)
	if err != nil {
		return nil, err
	}
	j, err := s.work.add(kind.name, w, askedBy(ctx))
	if err != nil {
		return nil, err
	}
	s.logJob(j, w.command)
	told := j.told(false)
	return &told, nil
}

// logJob tells of a job that begins: who asked for it, and what it runs.
func (s *Server) logJob(j *job, command []string) {
	if s.options.Audit == nil {
		return
	}
	runs := ""
	if len(command) > 0 {
		runs = fmt.Sprintf(", which runs %q", mem.CommandLine(mem.MaskArgs(command)))
	}
	who, from, _ := strings.Cut(j.By, " at ")
	s.options.Audit(store.Act{Time: time.Now(), Who: who, From: from,
		What: fmt.Sprintf("began %s, %q%s", j.ID, j.Title, runs)})
}

// JobState is how far a job is.
type JobState string

// The states of a job.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobDone      JobState = "done"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

func (s JobState) over() bool { return s != JobQueued && s != JobRunning }

// Job is what can be said of a job. Times are ns since 1970.
type Job struct {
	ID      string     `json:"id" doc:"What requests call it."`
	Kind    string     `json:"kind" enum:"imagine,fit,tune,bench,search,explain" doc:"What is done."`
	Title   string     `json:"title" doc:"What it does, in words."`
	State   JobState   `json:"state" enum:"queued,running,done,failed,cancelled" doc:"What has become of it."`
	By      string     `json:"asked_by" doc:"Who asked for it, and from which address: session 1 at 127.0.0.1:40112, or token at one."`
	Asked   int64      `json:"asked_ns" doc:"When it was asked for, in ns since 1970."`
	Started int64      `json:"started_ns,omitempty" doc:"When it began; absent: it waits."`
	Ended   int64      `json:"ended_ns,omitempty" doc:"When it ended; absent: it did not."`
	Run     string     `json:"run,omitempty" doc:"The run that it recorded."`
	Matrix  string     `json:"matrix,omitempty" doc:"The matrix that it measures."`
	Note    string     `json:"note,omitempty" doc:"Why and where it records outside the data directory; this server does not have that run."`
	Problem string     `json:"problem,omitempty" doc:"Why it failed, and what to do."`
	Output  string     `json:"output,omitempty" doc:"The end of what its programs wrote."`
	Answer  string     `json:"answer,omitempty" doc:"What came of it in a few words: fits, out of memory, at most 64."`
	Outcome mem.Ending `json:"outcome,omitzero" doc:"The same with its kind, as the run that it recorded says it. Absent: it has none."`
	Result  any        `json:"result,omitempty" doc:"What its command prints with --json, once there is one."`
}

// JobEnd is a job that has ended: nothing is told of it any more.
type JobEnd struct{ Job }

// Told is something that a job told while it worked.
type Told struct {
	Name string `json:"name" doc:"As the event is called: ready, trying, trial, point, progress, matrix, status, alert."`
	Data any    `json:"data" doc:"What it tells; docs/formats/api.md has its form by name."`
}

// job is one of them, with what it told so far.
type job struct {
	Job // fixed: ID, Kind, Title, Asked; the rest is guarded by lock
	do  func(ctx context.Context, j *job) (any, error)

	ctx    context.Context
	cancel context.CancelFunc

	lock    sync.Mutex
	events  []jobEvent
	last    int           // number of the last event
	changed chan struct{} // closed at the next change
}

type jobEvent struct {
	number int
	of     event.Event
}

// eventsKept is how many events a job keeps for those who come later.
const eventsKept = 2000

// same says whether an event takes the place of an earlier one: of how far something is only the last counts.
func same(was, is event.Event) bool {
	if p, ok := is.(event.Progress); ok {
		old, ok := was.(event.Progress)
		return ok && old.Text == p.Text
	}
	name := is.EventName()
	return name == was.EventName() && (name == "status" || name == "matrix" || name == "trying")
}

// running is what is told of programs that run: observe.Status in the words of the API.
type running struct {
	Elapsed   int64        `json:"elapsed_ns"`
	Processes int          `json:"processes"`
	Steps     uint64       `json:"steps"`
	Phase     mem.Phase    `json:"phase,omitempty"`
	RSS       mem.Optional `json:"rss_bytes,omitzero"` // of the process tree
	Device    mem.Optional `json:"device_used_bytes,omitzero"`
}

// EventName implements event.Event.
func (running) EventName() string { return "status" }

func newJob(parent context.Context, id, kind string, w work) *job {
	j := &job{Job: Job{ID: id, Kind: kind, Title: w.title, State: JobQueued, Asked: time.Now().UnixNano()}, do: w.do,
		changed: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(parent)
	return j
}

// told is what is to be said of the job now.
func (j *job) told(result bool) Job {
	j.lock.Lock()
	defer j.lock.Unlock()
	told := j.Job
	if !result {
		told.Result, told.Output = nil, ""
	}
	return told
}

func (j *job) state() JobState { return j.told(false).State }

// change alters what is said of the job, and wakes who waits for it.
func (j *job) change(alter func()) {
	j.lock.Lock()
	defer j.lock.Unlock()
	alter()
	j.last++
	close(j.changed)
	j.changed = make(chan struct{})
}

// start takes a queued job out of the queue.
func (j *job) start() (started bool) {
	if j.state() != JobQueued {
		return false
	}
	j.change(func() {
		if j.State == JobQueued {
			j.State, j.Started, started = JobRunning, time.Now().UnixNano(), true
		}
	})
	return started
}

// resultInWords is a result that can be said in a few words, as the list of runs does.
type resultInWords interface{ ended() mem.Ending }

// run does the work of a started job.
func (j *job) run() {
	result, err := j.do(j.ctx, j)
	j.change(func() {
		j.Result, j.Ended, j.State = result, time.Now().UnixNano(), JobDone
		if a, ok := result.(resultInWords); ok {
			j.Outcome = a.ended()
			j.Answer = j.Outcome.Text
		}
		switch {
		case j.ctx.Err() != nil:
			j.State = JobCancelled
		case err != nil:
			j.State, j.Problem = JobFailed, sentence(err)
		}
	})
	j.cancel()
}

// cancelled ends a job that has not ended.
func (j *job) cancelled() {
	j.cancel()
	if j.state() == JobQueued {
		j.change(func() {
			if j.State == JobQueued {
				j.State, j.Ended = JobCancelled, time.Now().UnixNano()
			}
		})
	}
}

// takeEvent is the job's event.Sink.
func (j *job) takeEvent(e event.Event) {
	switch known := e.(type) {
	case engine.Begun:
		j.change(func() {
			if j.Note = known.Elsewhere; j.Note == "" {
				j.Run = known.RunID
			}
		})
		return
	case observe.Status:
		e = running{known.Elapsed, known.Processes, known.Steps, known.Phase, known.RSS, known.Device}
	}
	j.change(func() {
		j.events = slices.DeleteFunc(j.events, func(old jobEvent) bool { return same(old.of, e) })
		if len(j.events) >= eventsKept {
			j.events = slices.Delete(j.events, 0, 1)
		}
		j.events = append(j.events, jobEvent{j.last + 1, e})
	})
}

// stream sends what a job told and tells, until it has ended and all of it is sent.
func (j *job) stream(ctx context.Context, after int, send sse.Sender) {
	for first := true; ; first = false {
		j.lock.Lock()
		var events []jobEvent
		for _, e := range j.events {
			if e.number > after {
				events = append(events, e)
			}
		}
		fresh, now, changed := j.last > after || first, j.last, j.changed
		state := j.Job
		j.lock.Unlock()
		for _, e := range events {
			if send(sse.Message{ID: e.number, Data: Told{e.of.EventName(), e.of}}) != nil {
				return
			}
		}
		after = max(now, after)
		if state.State.over() {
			_ = send(sse.Message{ID: after, Data: JobEnd{state}})
			return
		}
		if fresh && send(sse.Message{ID: after, Data: state}) != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// sentence is an error as people read it, with what to do.
func sentence(err error) string {
	if hint := fail.Hint(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
