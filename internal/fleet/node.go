package fleet

import (
	"fmt"
	"strings"
	"time"

	"hightide/internal/mem"
)

// Settings of an Overview. The zero value has no prices.
type Settings struct {
	Idle     time.Duration      // from which on a process that does nothing is named; 0: 15 minutes
	Prices   map[string]float64 // of an hour of a GPU, by a part of its model's name
	Memory   float64            // of an hour of a GiB of hosts
	In       string             // the currency
	Expected []string           // machines that may report
}

// Node is a machine with what it said last.
type Node struct {
	Name  string `json:"name" doc:"The account of its key."`
	Heard int64  `json:"heard_unix_ns" doc:"When it was last heard of, by the server's clock."`
	Away  bool   `json:"away,omitempty" doc:"It was not heard of for three of its intervals: what it holds now is not known, and is in no sum."`
	State State  `json:"state" doc:"What it held then."`
}

// Overview is what all machines hold now.
type Overview struct {
	Version   int       `json:"version" doc:"Of this form: 1."`
	Time      int64     `json:"time_unix_ns" doc:"When it was made."`
	Machines  []Node    `json:"machines" doc:"Those that were ever heard of, by name."`
	People    []Holding `json:"people" doc:"What each person's processes hold, the most first."`
	Jobs      []Holding `json:"jobs" doc:"What each job holds, the most first; processes of no job are not in it."`
	Idle      []Named   `json:"idle" doc:"Who holds memory and does nothing, the most first."`
	Oversized []Named   `json:"oversized" doc:"Who reserved far more than it ever took, the most first."`
	Leaks     []Named   `json:"leaks" doc:"What grows steadily, who runs out first first."`
	Costs     []Waste   `json:"costs" doc:"What was reserved and not used, by month and project."`
	Notes     []string  `json:"notes" doc:"What is not known, and why."`
}

// Holding is what somebody's processes hold on all machines.
type Holding struct {
	Name      string       `json:"name" doc:"Of the person, or of the job."`
	Person    string       `json:"person,omitempty" doc:"Whose job it is."`
	Project   string       `json:"project,omitempty" doc:"Of the job; absent: not known."`
	Machines  []string     `json:"machines" doc:"On which it holds something."`
	Processes int64        `json:"processes" doc:"Of those that are listed."`
	Device    mem.Optional `json:"device_bytes,omitzero" doc:"Of GPUs, as drivers put it down to processes; absent: no driver says that it holds any."`
	RSS       int64        `json:"rss_bytes" doc:"Of hosts: shared pages count in each process that has them."`
	PSS       mem.Optional `json:"pss_bytes,omitzero" doc:"The same, shared pages divided by their users; absent: it is not known of all of its processes."`
	Runs      []string     `json:"runs" doc:"Runs that hightide records of it."`
	Line      *Line        `json:"line,omitempty" doc:"The line that holds most of a host's heap; absent: not known."`
}

// Named is something to look at.
type Named struct {
	Machine string       `json:"machine" doc:"Where it is."`
	PID     int64        `json:"pid,omitempty" doc:"The process; absent: it is a job's."`
	Person  string       `json:"person" doc:"Whose it is."`
	Job     string       `json:"job,omitempty" doc:"Its job; absent: none."`
	Program string       `json:"program" doc:"Its command, or that of the largest process of the job."`
	Run     string       `json:"run,omitempty" doc:"The run that hightide records of it."`
	What    string       `json:"what" doc:"Of which memory: the host's, or the device."`
	Bytes   int64        `json:"bytes" doc:"What is held; of what is oversized: what was never taken."`
	Of      mem.Optional `json:"of_bytes,omitzero" doc:"Of what is oversized: what was reserved."`
	For     mem.Optional `json:"for_ns,omitzero" doc:"For how long; of a leak: until there is no room, by its slope."`
	Least   mem.Optional `json:"least_ns,omitzero" doc:"Of a leak: the least time that its error allows."`
	Most    mem.Optional `json:"most_ns,omitzero" doc:"Of a leak: the most; absent: its error allows that it ends never."`
	Text    string       `json:"text" doc:"The same as a sentence."`
}

// Waste is what was reserved and not used in a month.
type Waste struct {
	Month    string       `json:"month" doc:"YYYY-MM, of UTC."`
	Project  string       `json:"project" doc:"Empty: not known."`
	GPU      string       `json:"gpu" doc:"The model; empty: memory of hosts."`
	Held     int64        `json:"held_ms" doc:"Time of GPUs on which memory was held."`
	Idle     int64        `json:"idle_ms" doc:"Of that, time in which the holder did nothing."`
	Reserved int64        `json:"reserved_mib_s" doc:"Limits of jobs in MiB, times seconds."`
	Unused   int64        `json:"unused_mib_s" doc:"Of that, what they were not charged with at the time."`
	People   []string     `json:"people" doc:"Whose processes they were."`
	Cents    mem.Optional `json:"wasted_cents,omitzero" doc:"What the unused part costs, in hundredths of the currency; absent: no price is configured for it."`
	Currency string       `json:"currency,omitempty" doc:"As configured; absent: none is."`
}

func (v *Overview) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// job is what people know a process's job by; "": it has none.
func (m *Node) job(h *Holder) string {
	for _, g := range m.State.Groups {
		if g.ID == h.Group && g.Job != "" {
			return strings.TrimSpace(g.Kind + " " + g.Job + " " + h.JobName)
		}
	}
	if h.Run != "" {
		return "run " + h.Run
	}
	return ""
}

// about is a time for people.
func about(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

const (
	idleAfter   = 15 * time.Minute
	watchedLong = time.Hour // from which on a peak tells
	leastIdle   = 1 << 30   // what a process without a GPU holds to be named as idle
	farBelow    = 0.5       // of a limit of a host
	farBelowGPU = 0.25
	leastSpare  = 4 << 30
	lateAfter   = 3 // reports that did not come, from which on a machine is said to be away
)
