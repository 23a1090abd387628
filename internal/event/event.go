// Package event is what a use case tells while it works. Every front door takes the same events: a
// terminal draws them, a server streams them, a test collects them.
package event

// Event is something that happened. The types are those below and, from the packages that know more,
// observe.Status, fit.Ready and fit.Trial.
type Event interface {
	EventName() string // "status", "alert" …, the same for every event of a type
}

// Sink takes events as they come, one at a time. It is called by the goroutine that works, which waits
// for it. A nil Sink takes them too.
type Sink func(Event)

// Tell hands an event on.
func (s Sink) Tell(e Event) {
	if s != nil {
		s(e)
	}
}

// Alert is a limit that was crossed.
type Alert struct {
	Text string `json:"text"`
}

// Paused says that the program was stopped. Job: by job control, and this process stops with it at once, until Resumed.
type Paused struct {
	Job bool `json:"job"`
}

// Resumed says that the job goes on, in the foreground or the background.
type Resumed struct{}

// Progress says that one more part of some is done.
type Progress struct {
	Done int    `json:"done"`
	All  int    `json:"all"` // known so far
	Text string `json:"text,omitempty"`
}

// Reporting says that nothing runs any more and that a report is being made of what was recorded.
type Reporting struct{}

func (Alert) EventName() string     { return "alert" }
func (Paused) EventName() string    { return "paused" }
func (Resumed) EventName() string   { return "resumed" }
func (Progress) EventName() string  { return "progress" }
func (Reporting) EventName() string { return "reporting" }
