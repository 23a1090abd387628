package fleet

import (
	"cmp"
	"math"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Look is what was seen of a machine at a moment.
type Look struct {
	Wall int64 // ns since 1970
	Mono int64 // ns of a clock that nobody sets

	Cores             int64
	Memory, Available mem.Optional
	Cards             []Card
	Groups            []Group
	Processes         []Process
	Notes             []string
}

// Process is one of them.
type Process struct {
	PID     int64
	Start   uint64 // with the number it is its identity
	Person  string
	Program string
	Group   string // "": none that is listed
	JobName string
	Project string
	Run     string
	Line    *Line

	RSS    int64
	PSS    mem.Optional
	Busy   mem.Optional // of one processor, in milli, since the look before
	Device mem.Optional
	On     []OnCard
}

// Watcher keeps what takes more than one look. The zero value has seen nothing.
type Watcher struct {
	Version string
	Every   time.Duration // between two reports

	since int64 // wall
	last  *Look
	known map[identity]*watched
	used  map[Used]*Used // by its keys alone
	state State
}

type identity struct {
	pid   int64
	start uint64
}

// watched is what is known of a process.
type watched struct {
	began      int64 // wall
	peakRSS    int64
	peakDevice mem.Optional
	idle       mem.Optional // wall: since when it does nothing
	idleBy     string
	rss        course
	device     course
	look       *Look // when it was seen last
}

const (
	// holdersListed is how many processes a report has at most, the largest first.
	holdersListed = 200
	// leastListed is what a process without memory of a GPU has resident to be listed.
	leastListed = 64 << 20
	// works is how much of a processor, in milli, somebody takes who does something: a program that waits wakes up now
	// and then.
	works = 10
	// longestGap between two looks that count as one stretch: what was in between is not known, as when the machine slept.
	longestGap = 5 * time.Minute
)

// Take takes in a look.
func (w *Watcher) Take(now Look) {
	if w.known == nil {
		w.known, w.used = map[identity]*watched{}, map[Used]*Used{}
	}
	passed := time.Duration(0)
	if w.last != nil {
		passed = time.Duration(now.Mono - w.last.Mono)
	}
	if w.last == nil || passed > w.gap() {
		w.since, passed = now.Wall, 0
	}
	holders := make([]Holder, 0, len(now.Processes))
	for i := range now.Processes {
		holders = append(holders, w.see(&now, &now.Processes[i], passed))
	}
	for id, one := range w.known {
		if one.look != &now {
			delete(w.known, id)
		}
	}
	w.account(&now, holders, passed)
	w.state = State{Version: w.Version, Time: now.Wall, Since: w.since, Every: int64(w.Every), Cores: now.Cores,
		Memory: now.Memory, Available: now.Available, Cards: slices.Clone(now.Cards), Notes: slices.Clone(now.Notes)}
	w.state.list(holders, now.Groups)
	w.last = &now
}

func (w *Watcher) gap() time.Duration { return max(longestGap, 3*w.Every) }

// list takes the largest holders, and the groups that they are in.
func (s *State) list(holders []Holder, groups []Group) {
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Device.Or(0), a.Device.Or(0)), cmp.Compare(b.RSS, a.RSS), cmp.Compare(a.PID, b.PID))
	})
	s.Holders, s.Groups = []Holder{}, []Group{}
	in := map[string]bool{}
	for _, h := range holders {
		if len(s.Holders) == holdersListed || h.Device.Or(0) == 0 && h.RSS < leastListed {
			s.Others++
			s.OthersRSS += h.RSS
			continue
		}
		s.Holders, in[h.Group] = append(s.Holders, h), true
	}
	for _, g := range groups {
		if in[g.ID] {
			s.Groups = append(s.Groups, g)
		}
	}
	if s.Cards == nil {
		s.Cards = []Card{}
	}
}

// see says what is known of a process, now that it was looked at again after some time.
func (w *Watcher) see(now *Look, p *Process, passed time.Duration) Holder {
	id := identity{p.PID, p.Start}
	one := w.known[id]
	if one == nil {
		one = &watched{began: now.Wall}
		w.known[id] = one
	}
	one.look = now
	one.peakRSS = max(one.peakRSS, p.RSS)
	one.peakDevice.Raise(p.Device)
	one.active(now, p, passed)
	one.rss.add(now.Mono, p.RSS)
	if held, ok := p.Device.Get(); ok {
		one.device.add(now.Mono, held)
	}
	h := Holder{PID: p.PID, Began: one.began, Person: p.Person, Program: p.Program, Group: p.Group, JobName: p.JobName,
		Project: p.Project, Run: p.Run, Line: p.Line, RSS: p.RSS, PSS: p.PSS, Device: p.Device, On: p.On,
		PeakRSS: one.peakRSS, PeakDevice: one.peakDevice, Busy: p.Busy, IdleSince: one.idle, IdleBy: one.idleBy}
	for _, of := range []struct {
		what string
		c    *course
	}{{HostMemory, &one.rss}, {DeviceMemory, &one.device}} {
		if g, ok := of.c.growth(of.what); ok {
			h.Grows = append(h.Grows, g)
		}
	}
	return h
}

// What tells that a process does nothing.
const (
	idleByBoth      = "processor time and the GPU's utilisation"
	idleByProcessor = "processor time alone: others are on its GPU, or the driver does not tell"
)

// active finds out whether the process did something since the look before. Who was not looked at meanwhile is taken to
// have worked.
func (one *watched) active(now *Look, p *Process, passed time.Duration) {
	busy, known := p.Busy.Get()
	idle := passed > 0 && known && busy < works
	by := idleByProcessor
	if p.Device.Or(0) > 0 {
		alone, quiet := true, true
		for _, on := range p.On {
			alone = alone && now.aloneOn(on.Device)
			utilisation, told := now.card(on.Device).Utilisation.Get()
			alone, quiet = alone && told, quiet && utilisation == 0
		}
		if alone {
			idle, by = idle && quiet, idleByBoth
		}
	} else {
		by = "processor time"
	}
	switch {
	case !idle:
		one.idle, one.idleBy = mem.Optional{}, ""
	case !one.idle.Known():
		one.idle, one.idleBy = mem.Some(now.Wall-int64(passed)), by
	default:
		one.idleBy = by
	}
}

// aloneOn says whether no more than one process holds memory of a GPU.
func (l *Look) aloneOn(device string) bool { return l.heldOf(device, 2) < 2 }

func (l *Look) heldOf(device string, most int) (n int) {
	for i := range l.Processes {
		for _, on := range l.Processes[i].On {
			if on.Device == device && on.Bytes > 0 {
				n++
			}
		}
		if n >= most {
			break
		}
	}
	return n
}

func (l *Look) card(device string) Card {
	for _, c := range l.Cards {
		if c.Device == device {
			return c
		}
	}
	return Card{}
}

// account adds what was reserved since the look before.
func (w *Watcher) account(now *Look, holders []Holder, passed time.Duration) {
	if passed <= 0 {
		return
	}
	month := time.Unix(0, now.Wall).UTC().Format("2006-01")
	add := func(h *Holder, gpu string, u Used) {
		key := Used{Month: month, Project: h.Project, Person: h.Person, GPU: gpu}
		if w.used[key] == nil {
			copied := key
			w.used[key] = &copied
		}
		w.used[key].Plus(u)
	}
	all := map[string]int64{} // bytes by card
	for _, h := range holders {
		for _, on := range h.On {
			all[on.Device] += on.Bytes
		}
	}
	in := map[string]*Holder{} // the largest of each group stands for it
	for i := range holders {
		h := &holders[i]
		if first := in[h.Group]; h.Group != "" && (first == nil || h.RSS > first.RSS) {
			in[h.Group] = h
		}
		for _, on := range h.On {
			if on.Bytes == 0 {
				continue
			}
			held := int64(float64(passed.Milliseconds()) * float64(on.Bytes) / float64(all[on.Device]))
			u := Used{Held: held}
			if h.IdleSince.Known() {
				u.Idle = held
			}
			add(h, now.card(on.Device).Name, u)
		}
	}
	for _, g := range now.Groups {
		limit, _, limited := g.reserved()
		used, known := g.Used.Get()
		if h := in[g.ID]; h != nil && limited && known && g.Kind != "" {
			reserved, unused := mebibyteSeconds(limit, passed), mebibyteSeconds(max(limit-used, 0), passed)
			add(h, "", Used{Reserved: reserved, Unused: unused})
		}
	}
}

func mebibyteSeconds(bytes int64, passed time.Duration) int64 {
	return int64(float64(bytes) / (1 << 20) * passed.Seconds())
}

// Plus adds what was reserved besides.
func (u *Used) Plus(more Used) {
	u.Held += more.Held
	u.Idle += more.Idle
	u.Reserved += more.Reserved
	u.Unused += more.Unused
}

// Same says whether two are of the same month, project, person and model.
func (u *Used) Same(other Used) bool {
	return u.Month == other.Month && u.Project == other.Project && u.Person == other.Person && u.GPU == other.GPU
}

// State is what the last look saw.
func (w *Watcher) State() State { return w.state }

// Spend gives what was reserved since it was last asked for, and forgets it.
func (w *Watcher) Spend() []Used {
	all := []Used{}
	for _, u := range w.used {
		all = append(all, *u)
	}
	clear(w.used)
	slices.SortFunc(all, func(a, b Used) int {
		return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Person, b.Person),
			cmp.Compare(a.GPU, b.GPU))
	})
	return all
}

// course is memory over time, as few points that lie evenly: of each stretch the lowest.
type course struct {
	times, lows []int64
	every       int64 // ns
}

const (
	pointsKept  = 240
	pointsLeast = 15 // that tell a growth
	firstEvery  = int64(10 * time.Second)
	leastGrowth = 64 << 20
	leastOver   = 5 * time.Minute
)

func (c *course) add(now, value int64) {
	c.every = max(c.every, firstEvery)
	if n := len(c.times); n > 0 && now-c.times[n-1] < c.every {
		c.lows[n-1] = min(c.lows[n-1], value)
		return
	}
	c.times, c.lows = append(c.times, now), append(c.lows, value)
	if len(c.times) < pointsKept {
		return
	}
	half := len(c.times) / 2
	for i := range half {
		c.times[i], c.lows[i] = c.times[2*i], min(c.lows[2*i], c.lows[2*i+1])
	}
	c.times, c.lows, c.every = c.times[:half], c.lows[:half], 2*c.every
}

// growth is that of a course that grows steadily and goes on to.
func (c *course) growth(what string) (g Growth, ok bool) {
	n := len(c.times)
	if n < pointsLeast || time.Duration(c.times[n-1]-c.times[0]) < leastOver {
		return g, false
	}
	curve := usage.Curve{}
	for i, at := range c.times {
		curve.X = append(curve.X, float64(at-c.times[0])/float64(time.Hour))
		curve.Y = append(curve.Y, float64(c.lows[i]))
	}
	t := usage.TrendOf(curve, usage.Noise{}, leastGrowth)
	if !t.Steady || t.Slope <= 0 {
		return g, false
	}
	return Growth{What: what, PerHour: int64(math.Round(t.Slope)), Error: int64(math.Ceil(t.Half)),
		Over: c.times[n-1] - c.times[0]}, true
}
