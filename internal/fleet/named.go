package fleet

import (
	"fmt"
	"math"
	"time"

	"hightide/internal/mem"
)

// find names what there is to look at on a machine.
func (m *Node) find(v *Overview, idle time.Duration) {
	for i := range m.State.Holders {
		h := &m.State.Holders[i]
		m.idle(v, h, idle)
		m.leaks(v, h)
		m.largeCards(v, h)
	}
	for _, g := range m.State.Groups {
		m.largeGroup(v, &g)
	}
}

func (m *Node) named(h *Holder, what string, bytes int64) Named {
	return Named{Machine: m.Name, PID: h.PID, Person: h.Person, Job: m.job(h), Program: h.Program, Run: h.Run, What: what,
		Bytes: bytes}
}

// idle names a process that holds memory and does nothing.
func (m *Node) idle(v *Overview, h *Holder, least time.Duration) {
	since, is := h.IdleSince.Get()
	held, what := h.Device.Or(0), DeviceMemory
	if held == 0 {
		held, what = h.RSS, HostMemory
	}
	passed := time.Duration(m.State.Time - since)
	if !is || passed < least || what == HostMemory && held < leastIdle {
		return
	}
	n := m.named(h, what, held)
	n.For = mem.Some(int64(passed))
	n.Text = fmt.Sprintf("holds %v %s and has done nothing for %s, by %s", mem.Bytes(held), ofMemory(what), about(passed),
		h.IdleBy)
	v.Idle = append(v.Idle, n)
}

func ofMemory(what string) string {
	if what == DeviceMemory {
		return "of GPUs"
	}
	return "resident"
}

// leaks names what grows, with the time that is left.
func (m *Node) leaks(v *Overview, h *Holder) {
	for _, g := range h.Grows {
		held := h.RSS
		if g.What == DeviceMemory {
			held = h.Device.Or(0)
		}
		n := m.named(h, g.What, held)
		n.Text = fmt.Sprintf("grows by %v ± %v an hour, over %s", mem.Bytes(g.PerHour), mem.Bytes(g.Error),
			about(time.Duration(g.Over)))
		room, of, known := m.room(h, g.What)
		if !known {
			n.Text += "; how much room is left is not known"
			v.Leaks = append(v.Leaks, n)
			continue
		}
		n.For = hours(room, float64(g.PerHour))
		n.Least = hours(room, float64(g.PerHour+g.Error))
		n.Most = hours(room, float64(g.PerHour-g.Error))
		left := fmt.Sprintf("%s to %s", about(time.Duration(n.Least.Or(0))), about(time.Duration(n.Most.Or(0))))
		if !n.Most.Known() {
			left = "at least " + about(time.Duration(n.Least.Or(0)))
		}
		n.Text += fmt.Sprintf("; %v of %s are left: %s if it goes on so", mem.Bytes(room), of, left)
		v.Leaks = append(v.Leaks, n)
	}
}

// hours are those in which room is taken at a rate an hour, in ns; absent: never, or in more than a year.
func hours(room int64, rate float64) mem.Optional {
	if rate <= 0 {
		return mem.Optional{}
	}
	ns := float64(room) / rate * float64(time.Hour)
	if ns > float64(365*24*time.Hour) {
		return mem.Optional{}
	}
	return mem.Some(int64(math.Max(ns, 0)))
}

// room is what a process can still take, and of what.
func (m *Node) room(h *Holder, what string) (room int64, of string, known bool) {
	if what == DeviceMemory {
		for _, on := range h.On {
			card := m.card(on.Device)
			total, known1 := card.Memory.Get()
			used, known2 := card.Used.Get()
			if left := max(total-used, 0); known1 && known2 && (!known || left < room) {
				room, of, known = left, on.Device, true
			}
		}
		return room, of, known
	}
	room, known = m.State.Available.Get()
	of = "the host's memory"
	if g := m.group(h.Group); g != nil {
		limit, limited := g.Limit.Get()
		used, told := g.Used.Get()
		if left := max(limit-used+g.Cache.Or(0), 0); limited && told && (!known || left < room) {
			room, of, known = left, "its group's limit", true
		}
	}
	return room, of, known
}

func (m *Node) card(device string) Card { return (&Look{Cards: m.State.Cards}).card(device) }

func (m *Node) group(id string) *Group {
	for i := range m.State.Groups {
		if g := &m.State.Groups[i]; g.ID == id && id != "" {
			return g
		}
	}
	return nil
}

// largeGroup names a job that has far more reserved than it ever took.
func (m *Node) largeGroup(v *Overview, g *Group) {
	limit, reserved, limited := g.reserved()
	peak, known := g.Peak.Get()
	var first *Holder
	for i := range m.State.Holders {
		if h := &m.State.Holders[i]; h.Group == g.ID && (first == nil || h.RSS > first.RSS) {
			first = h
		}
	}
	if !limited || !known || g.Kind == "" || first == nil || float64(peak) > farBelow*float64(limit) ||
		limit-peak < leastSpare {
		return
	}
	watched := time.Duration(m.State.Time - first.Began)
	if watched < watchedLong {
		return
	}
	n := m.named(first, HostMemory, limit-peak)
	n.PID, n.Of, n.For = 0, mem.Some(limit), mem.Some(int64(watched))
	n.Text = fmt.Sprintf("%s and was never charged with more than %v, the cache of files included; watched for %s",
		reserved, mem.Bytes(peak), about(watched))
	v.Oversized = append(v.Oversized, n)
}

// largeCards names a process that is alone on a GPU and takes little of it.
func (m *Node) largeCards(v *Overview, h *Holder) {
	watched := time.Duration(m.State.Time - max(h.Began, m.State.Since))
	peak, known := h.PeakDevice.Get()
	if len(h.On) != 1 || !known || watched < watchedLong {
		return
	}
	on := h.On[0]
	total, told := m.card(on.Device).Memory.Get()
	holders := 0
	for _, other := range m.State.Holders {
		for _, o := range other.On {
			if o.Device == on.Device {
				holders++
			}
		}
	}
	if !told || holders != 1 || float64(peak) > farBelowGPU*float64(total) {
		return
	}
	n := m.named(h, on.Device, total-peak)
	n.Of, n.For = mem.Some(total), mem.Some(int64(watched))
	n.Text = fmt.Sprintf("is alone on %s with %v and was not seen to hold more than %v; watched for %s", on.Device,
		mem.Bytes(total), mem.Bytes(peak), about(watched))
	v.Oversized = append(v.Oversized, n)
}
