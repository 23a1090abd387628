package tui

import (
	"syscall"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"
)

// What update is told. Keys and the size of the terminal come as bubbletea's own messages.
type (
	// Looked is a picture of the machine.
	Looked struct {
		Picture sampler.Picture
		Users   map[uint32]string
		Now     time.Time
	}

	// Listed are the runs.
	Listed struct {
		Runs []store.Run
		Err  error
	}

	// Followed are frames of a run. At its end, or where it cannot be read further, Done is set.
	Followed struct {
		ID     string
		Frames []mem.Frame
		Damage []mem.Damage
		Done   bool
		Gone   bool // it was removed
		Err    error
	}

	// Reported is an answer to askReport.
	Reported struct {
		ID     string
		Report *report.Report
		Err    error
		Took   time.Duration
		Now    time.Time
	}

	// Environ is an answer to askEnviron.
	Environ struct {
		PID    int
		Values []mem.Variable
		Err    error
	}

	// Detailed is an answer to askDetails.
	Detailed struct {
		PID   int
		Facts *sampler.Details
		Err   error
	}

	// Sent is an answer to askSignal.
	Sent struct {
		PID  int
		Name string
		Err  error
	}

	// Explained is an answer to askHeap.
	Explained struct {
		Ref    string
		Report *report.Report
		Began  time.Time
		Err    error
	}

	// Quoted is an answer to askSource.
	Quoted struct {
		File  string
		Lines []string
	}

	// Began tells the id of the run that is shown while it runs.
	Began struct{ ID string }

	// Said is a message for the foot, as of an alert.
	Said struct{ Text string }

	// Wrote is more of the program's output.
	Wrote struct{ Text []byte }

	// Stopping says that this process is about to be stopped: Gone is closed once the terminal is as it was; whoever
	// stops the process closes Back when it goes on.
	Stopping struct {
		Gone chan<- struct{}
		Back <-chan struct{}
	}

	stopWanted struct{} // by a signal to hightide top
	continued  struct{} // after a stop that nobody announced, as by SIGSTOP
)

// What update asks for; effects.go does it.
type (
	askFollow  struct{ id string }
	askReport  struct{ id string }
	askEnviron struct{ key procKey }
	askDetails struct{ key procKey }
	askSignal  struct {
		key    procKey
		signal syscall.Signal
		name   string
	}
	askHeap   struct{ ref string } // a file
	askSource struct {
		file  string
		began time.Time
	}
	askInterrupt struct{} // of the program that hightide runs
	askStopJob   struct{} // as Ctrl-Z does where the terminal sees it
	askStopSelf  struct{}
	askAway      struct{ of Stopping }
	askTerminal  struct{} // taken anew: somebody else may have changed it
	askQuit      struct{}
)

// ask is one of those.
type ask any
