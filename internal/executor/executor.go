// Package executor hands work to a cluster's own scheduler, and asks it how that stands.
//
//	Job ──Submit──▶ the scheduler ──▶ a node runs its script
//	handle ──Poll──▶ Status
//
// Nothing here distributes, queues or retries: the scheduler does. An executor keeps nothing either. A handle is all
// that is needed to ask again, after whatever became of the process that submitted.
package executor

import "context"

// Executor is one kind of scheduler: Slurm, Ray.
type Executor interface {
	// Name is what --executor calls it.
	Name() string
	// NodeName is a shell's expression for what the scheduler calls the node that a job runs on.
	NodeName() string
	// Check says whether the scheduler answers here.
	Check(ctx context.Context) error
	// Submit hands over jobs, all or none, and returns a handle for each, in the same order.
	Submit(ctx context.Context, jobs []Job) ([]string, error)
	// Poll says how jobs stand. One that the scheduler knows no more is Gone.
	Poll(ctx context.Context, handles []string) (map[string]Status, error)
	// Cancel ends jobs. One that has ended before is not an error.
	Cancel(ctx context.Context, handles []string) error
	// Close lets go of what asking needed. Jobs go on.
	Close()
}

// Resources are what each job asks for; what is 0 is left to the scheduler.
type Resources struct {
	CPUs   int
	GPUs   int
	Memory int64 // bytes
}

// Job is a script of /bin/sh, in a file that the nodes can read.
type Job struct{ Script string }

// State is how far a job is.
type State int

// The states of a job.
const (
	Waiting State = iota
	Running
	Ended  // its script did, however it ended
	Killed // the scheduler ended it: at its limits, or because somebody asked it to
	Lost   // its node is gone
	Gone   // the scheduler knows no such job
)

// Over says whether nothing more will come of a job.
func (s State) Over() bool { return s >= Ended }

// Status is how a job stands.
type Status struct {
	State State
	Node  string // where it ran
	Word  string // the scheduler's own for its state, as NODE_FAIL
}
