// Package store keeps runs: their recordings, and an index to find and list them.
//
//	engine ──▶ Create ──▶ Writer ──▶ runs/<id>/run.hightide   the truth
//	                          └────▶ index.sqlite             roll-ups for List, best effort
//	engine ◀── Load ◀── Resolve ◀── "last", an id, a prefix, a name, a file
//	engine ◀── Batch, Batch, … ◀── Follow, while it is written, in any process
//
// A kind of store is one file and one line in open.go.
//
// The recording is the truth: the index is rebuilt from the recordings by Reindex, and losing it, or
// failing to write it, never loses a run. Two engines may work on one data directory at once; the
// one that records holds a lock on its recording, by which the others see that it still runs.
// Start reading here, then files.go (the data directory), writer.go (a recording in the making), follow.go
// (who reads it meanwhile), list.go and rows.go (the index). Every store keeps the contract in contract_test.go.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"hightide/internal/mem"
)

// Store is what a kind of store must do; Resolve, Load, Tag and Prune are built on it. All methods may
// be called by several goroutines.
type Store interface {
	// Create begins a run. Where info has no ID, the store gives it one: Writer.ID.
	Create(info mem.RunInfo) (Writer, error)

	// Reopen continues a run that was cut off or is finished, as after a recovery; ErrRunning while
	// another engine writes it.
	Reopen(id string) (Writer, error)

	// List returns the runs that the filter lets through, newest first.
	List(filter Filter) ([]Run, error)

	// Remove deletes a run by id; ErrRunning while it still runs.
	Remove(id string) error

	// Attach keeps a file with a run, such as its report, under a name; it replaces an older one of that
	// name, whole or not at all. It returns the path where people find the file, "" where there is none.
	Attach(id, name string, write func(io.Writer) error) (path string, err error)

	// Detach deletes such a file; fs.ErrNotExist where there is none of that name.
	Detach(id, name string) error

	// Open reads what was attached to a run, or with the name Recording its recording as it stands. The
	// error is fs.ErrNotExist where there is nothing of that name.
	Open(id, name string) (io.ReadCloser, error)

	// Attached lists what is kept with a run beside its recording, by name.
	Attached(id string) ([]Attachment, error)

	// Follow streams a recording, from its start for 0 or from where a Batch.Next points, while it is written
	// and until it has ended; it may have ended long ago. Any number of followers read at their own pace:
	// none holds up the writer, and what one has not read yet waits in the store. The stream also ends
	// where the recording was cut off. An error is the last thing it gives: ErrNotFound where the run is not
	// there or was removed, that of ctx, or that it cannot be read. Damage is in the batches.
	Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error]

	// Reindex rebuilds the index from the recordings.
	Reindex(progress func(done, total int)) error

	// Close gives back what the store holds open.
	Close() error
}

// Attachment is a file that is kept with a run.
type Attachment struct {
	Name string `json:"name" doc:"The name of the file."`
	Size int64  `json:"size_bytes" doc:"Its size in bytes."`
}

// Recording is the name by which Store.Open knows the recording itself.
const Recording = "run.hightide"

// Writer takes the frames of one recording.
//
// A full disk is not an error. What cannot be written is counted (see Lost), definitions are kept and
// written once there is room again, and the recording says what it lost.
type Writer interface {
	ID() string
	Info() mem.RunInfo // the newest that was written
	Run() Run          // the row of the run as it stands

	Write(mem.Frame) error
	Flush() error   // what was written so far survives the death of the process, and followers see it
	Followed() bool // somebody follows the run: flush within 100 ms of each frame. Costs a system call
	Lost() Loss
	End() error   // flushes, also on a full disk: all is in the recording, which can still be added to
	Close() error // the same, enters the run into the index, gives the lock back
}

// Loss is what a recording could not take.
type Loss struct {
	Frames uint64
	Bytes  uint64 // of the frames, before compression
	Err    error  // the last reason
}

// State of a run.
type State string

// States.
const (
	Running  State = "running"
	Finished State = "finished"
	CutOff   State = "cut off" // the engine went away before the end
)

// becomes puts the run in a state. How a run ended that has not is no more than that.
func (r *Run) becomes(state State) {
	r.State = state
	switch state {
	case Running:
		r.Ended = mem.StillRunning
	case CutOff:
		r.Ended = mem.Ending{Kind: mem.EndCutOff, Text: string(CutOff)}
	}
}

// Run is one row of the index: what List shows. Absent figures were not observed.
type Run struct {
	ID        string                `json:"id" doc:"What requests call it."`
	Name      string                `json:"name,omitempty" doc:"As run --name or a change of it says; need not be unique."`
	Tags      map[string]string     `json:"tags,omitempty" doc:"Its tags, by name."`
	Verb      string                `json:"verb,omitempty" doc:"The command that made it: run, attach, imagine, fit, monitor, bench."`
	Label     mem.Label             `json:"label,omitempty" doc:"Where its figures come from: measured or imagined."`
	Command   []string              `json:"command,omitempty" doc:"Words of the command that was recorded."`
	Host      string                `json:"host,omitempty" doc:"Name of the machine."`
	GitCommit string                `json:"git_commit,omitempty" doc:"The commit that was checked out where the program began; absent: none is known."`
	GitDirty  bool                  `json:"git_dirty,omitempty" doc:"Whether files differed from that commit."`
	State     State                 `json:"state" enum:"running,finished,cut off" doc:"cut off: its engine went away before the end."`
	Start     int64                 `json:"start_wall_ns" doc:"When it began, in ns since 1970."`
	Duration  int64                 `json:"duration_ns" doc:"Up to the last thing seen."`
	Ended     mem.Ending            `json:"ended" doc:"How it ended, as its report says it."`
	Figure    mem.Figure            `json:"figure,omitzero" doc:"The one figure by which it is known: the peak that its report leads with. Absent: none was observed."`
	ExitCode  mem.Optional          `json:"exit_code,omitzero" doc:"Of the main process; absent: not seen, or a signal ended it."`
	Signal    mem.Optional          `json:"signal,omitzero" doc:"Number of the signal that ended the main process."`
	Stopped   bool                  `json:"stopped,omitempty" doc:"It ended as it was asked to, such as by --duration."`
	Steps     uint64                `json:"steps" doc:"Optimizer steps that were taken."`
	Processes int                   `json:"processes" doc:"How many were seen."`
	HostRSS   mem.Optional          `json:"peak_host_rss_bytes,omitzero" doc:"Highest resident memory of the process tree; shared pages count once for each process."`
	HostPSS   mem.Optional          `json:"peak_host_pss_bytes,omitzero" doc:"The same with shared pages divided by their users, where it was read."`
	Device    mem.Optional          `json:"peak_device_used_bytes,omitzero" doc:"Most memory in use on devices: of each its peak, added up."`
	Allocated mem.Optional          `json:"peak_allocated_bytes,omitzero" doc:"Most that frameworks had handed out on devices: of each allocator its peak, added up. Of an imagined run as its verdict has it."`
	Reserved  mem.Optional          `json:"peak_reserved_bytes,omitzero" doc:"Most that frameworks held on devices, added up in the same way."`
	OOMs      int                   `json:"ooms" doc:"How often memory ran out."`
	Snapshots int                   `json:"snapshots,omitempty" doc:"Of allocators, that were recorded whole."`
	Dropped   uint64                `json:"dropped" doc:"Records that were lost on the way into the recording."`
	Findings  mem.Optional          `json:"findings,omitzero" doc:"How many the report had that was made at its end; absent: none was made."`
	Places    mem.Optional          `json:"places,omitzero" doc:"By how many findings and lines it can be searched for; absent: it was recorded before they were kept, or no report was made at its end."`
	Figures   map[string]mem.Figure `json:"figures,omitempty" doc:"What its report says besides, of which trends are made, by name: growth, fragmentation. Absent: none is known."`
	Size      int64                 `json:"size_bytes" doc:"On disk, everything in its folder."`
	Damaged   bool                  `json:"damaged,omitempty" doc:"A part of the recording cannot be read."`
	Dir       string                `json:"dir,omitempty" doc:"Its folder on the machine of the server, for people."`
	File      string                `json:"file,omitempty" doc:"Its recording there, for people."`
	From      string                `json:"from,omitempty" enum:"file,upload" doc:"Of a recording outside the data directory."`

	Held mem.Figure `json:"-"` // where a filter asks for it, what its spot held at the peak

	Namesakes int `json:"-"` // where it was found by its name: how many older ones have the same

	found []mem.Place // what a filter looks in, until the row is listed
}

// Filter selects runs; the zero value lets all through.
type Filter struct {
	Tags  map[string]string // all of these; an empty value: the tag is there
	Name  string
	State State
	Verb  string
	Text  string // contained in the name, id or command
	// found in it: a finding of this kind, and a line. Both: a finding of this kind at this line
	Finding string
	Line    Spot
	Unasked bool     // only runs of which nothing is known that Finding and Line could ask for
	Ref     string   // the id, the beginning of the id, or the name
	IDs     []string // these runs alone, by their whole ids: nothing else is looked at; nil: all
	// by their ProjectTag; nil: all, also those of none
	Projects []string
	Before   string // the id of a run: only what comes after it in the list
	Limit    int    // 0: no limit
	// only what a trend is made of need be filled in, as of thousands of runs all the rest costs more than that
	Brief bool
	Held  Spot // fill in what lines there held at the peak
}

// Limits of a data directory. A run that still runs, or has the tag "keep", is never pruned.
type Limits struct {
	Now     time.Time
	Age     time.Duration // remove what began longer ago; 0: no limit
	Bytes   mem.Bytes     // keep the newest that fit; 0: no limit
	Project string        // only its runs; "": all
	Preview bool          // only say what would be removed
}

// KeepTag protects a run from Prune; ProjectTag says which project a run belongs to.
const (
	KeepTag    = "keep"
	ProjectTag = "project"
)

// What an error of the store may be, for errors.Is.
var (
	ErrNotFound   = errors.New("no such run")
	ErrAmbiguous  = errors.New("several runs")
	ErrRunning    = errors.New("still running")
	ErrNewer      = errors.New("made by a newer hightide")
	ErrPlace      = errors.New("data directory cannot be used")
	ErrUnreadable = errors.New("recording cannot be read")
	ErrElsewhere  = errors.New("recording outside the data directory")
	ErrUnsent     = errors.New("kept on this machine, not sent yet")
	ErrForbidden  = errors.New("may not be changed")
)

// Error is a failure of the store with advice for people. It answers errors.Is for one of the kinds
// above and for its cause.
type Error struct {
	Kind error
	Text string // what happened, with names
	Hint string
	Err  error // cause, may be nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Text, e.Err)
	}
	return e.Text
}

func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
