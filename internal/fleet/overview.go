package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
)

// lastHeard says since when a machine is away. A time that is yet to come is of a clock that was set back.
func (m *Node) lastHeard(since int64) string {
	if since < 0 {
		return m.Name + " was last heard of before the database's clock was set back"
	}
	return m.Name + " was last heard of " + about(time.Duration(since)) + " ago"
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
		since, late := now-m.Heard, lateAfter*every+int64(10*time.Second)
		if m.Away = since > late || since < -late; m.Away {
			v.note("%s: what it holds now is not known, and is in no sum", m.lastHeard(since))
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
