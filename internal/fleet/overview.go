package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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

const (
	idleAfter   = 15 * time.Minute
	watchedLong = time.Hour // from which on a peak tells
	leastIdle   = 1 << 30   // what a process without a GPU holds to be named as idle
	farBelow    = 0.5       // of a limit of a host
	farBelowGPU = 0.25
	leastSpare  = 4 << 30
	lateAfter   = 3 // reports that did not come, from which on a machine is said to be away
)

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

// Of says what machines hold now, which is ns since 1970 by the clock that heard of them.
func Of(machines []Node, used []Used, now int64, o Settings) *Overview {
	v := &Overview{Version: 1, Time: now, Machines: slices.Clone(machines), People: []Holding{}, Jobs: []Holding{},
		Idle: []Named{}, Oversized: []Named{}, Leaks: []Named{}, Notes: []string{}}
	if v.Machines == nil {
		v.Machines = []Node{}
	}
	slices.SortFunc(v.Machines, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	people, jobs := map[string]*Holding{}, map[string]*Holding{}
	for i := range v.Machines {
		m := &v.Machines[i]
		every := max(m.State.Every, int64(time.Second))
		if m.Away = now-m.Heard > lateAfter*every+int64(10*time.Second); m.Away {
			v.note("%s was last heard of %s ago: what it holds now is not known, and is in no sum", m.Name,
				about(time.Duration(now-m.Heard)))
			continue
		}
		m.sum(people, jobs)
		m.find(v, cmp.Or(o.Idle, idleAfter))
		for _, n := range m.State.Notes {
			v.note("%s: %s", m.Name, n)
		}
	}
	for _, name := range o.Expected {
		if !slices.ContainsFunc(machines, func(m Node) bool { return m.Name == name }) {
			v.note("%s was never heard of: hightide watch sends what it holds", name)
		}
	}
	v.People, v.Jobs = largest(people), largest(jobs)
	v.Costs = costs(used, &o)
	v.priceNotes(&o)
	most := func(a, b Named) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Machine, b.Machine)) }
	slices.SortStableFunc(v.Idle, most)
	slices.SortStableFunc(v.Oversized, most)
	slices.SortStableFunc(v.Leaks, func(a, b Named) int {
		return cmp.Compare(a.For.Or(math.MaxInt64), b.For.Or(math.MaxInt64))
	})
	return v
}

func (v *Overview) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// sum adds what a machine's processes hold to their people and jobs.
func (m *Node) sum(people, jobs map[string]*Holding) {
	for i := range m.State.Holders {
		h := &m.State.Holders[i]
		add(people, h.Person, h, m.Name)
		if name := m.job(h); name != "" {
			add(jobs, name, h, m.Name)
			jobs[name].Person = h.Person
			jobs[name].Project = cmp.Or(jobs[name].Project, h.Project)
		}
	}
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

func add(all map[string]*Holding, name string, h *Holder, machine string) {
	one := all[name]
	if one == nil {
		one = &Holding{Name: name, Machines: []string{}, Runs: []string{}, PSS: mem.Some(0)}
		all[name] = one
	}
	one.Processes++
	one.Device = one.Device.Plus(h.Device)
	one.RSS += h.RSS
	if pss, known := h.PSS.Get(); known && one.PSS.Known() {
		one.PSS = one.PSS.Plus(mem.Some(pss))
	} else {
		one.PSS = mem.Optional{}
	}
	if !slices.Contains(one.Machines, machine) {
		one.Machines = append(one.Machines, machine)
	}
	if h.Run != "" && !slices.Contains(one.Runs, h.Run) {
		one.Runs = append(one.Runs, h.Run)
	}
	if h.Line != nil && (one.Line == nil || h.Line.Bytes > one.Line.Bytes) {
		one.Line = h.Line
	}
}

func largest(all map[string]*Holding) []Holding {
	list := []Holding{}
	for _, one := range all {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(b.Device.Or(0), a.Device.Or(0)), cmp.Compare(b.RSS, a.RSS), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// costs sums by month, project and model, the newest month first.
func costs(used []Used, o *Settings) []Waste {
	type key struct{ month, project, gpu string }
	all := map[key]*Waste{}
	for _, u := range used {
		k := key{u.Month, u.Project, u.GPU}
		one := all[k]
		if one == nil {
			one = &Waste{Month: u.Month, Project: u.Project, GPU: u.GPU, People: []string{}}
			all[k] = one
		}
		one.Held, one.Idle = one.Held+u.Held, one.Idle+u.Idle
		one.Reserved, one.Unused = one.Reserved+u.Reserved, one.Unused+u.Unused
		if !slices.Contains(one.People, u.Person) {
			one.People = append(one.People, u.Person)
		}
	}
	list := []Waste{}
	for _, one := range all {
		slices.Sort(one.People)
		if price, known := o.priceOf(one.GPU); known {
			hours := float64(one.Idle) / float64(time.Hour.Milliseconds())
			if one.GPU == "" {
				hours = float64(one.Unused) / 1024 / time.Hour.Seconds()
			}
			one.Cents, one.Currency = mem.Some(int64(math.Round(100*hours*price))), o.In
		}
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Waste) int {
		return cmp.Or(cmp.Compare(b.Month, a.Month), cmp.Compare(b.Cents.Or(0), a.Cents.Or(0)),
			cmp.Compare(a.Project, b.Project), cmp.Compare(a.GPU, b.GPU))
	})
	return list
}

// priceOf is that of an hour of a GPU, or of a GiB of hosts: of the longest part of its name that has one.
func (o *Settings) priceOf(gpu string) (price float64, known bool) {
	if gpu == "" {
		return o.Memory, o.Memory > 0
	}
	longest := -1
	for part, p := range o.Prices {
		if len(part) > longest && strings.Contains(strings.ToLower(gpu), strings.ToLower(part)) {
			price, longest = p, len(part)
		}
	}
	return price, longest >= 0
}

func (v *Overview) priceNotes(o *Settings) {
	without := map[string]bool{}
	for _, c := range v.Costs {
		if c.Cents.Known() {
			continue
		}
		if c.GPU == "" {
			without["memory of hosts"] = true
		} else {
			without[c.GPU] = true
		}
	}
	names := []string{}
	for name := range without {
		names = append(names, name)
	}
	if slices.Sort(names); len(names) > 0 {
		v.note("no price is configured for %s: [fleet.prices] of the team's file", strings.Join(names, ", "))
	}
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
