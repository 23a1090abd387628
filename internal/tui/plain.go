package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/engine"
	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"
)

// Snapshot is what hightide top shows, once: for --once in lines that a screen reader reads well, and as JSON.
type Snapshot struct {
	Version int             `json:"version"`
	Machine sampler.Picture `json:"machine"`
	Runs    []RunNow        `json:"runs"` // that run, newest first
}

// RunNow is a run at this moment. Absent figures are not known.
type RunNow struct {
	store.Run
	Elapsed int64        `json:"elapsed_ns"`
	Step    uint64       `json:"step"`
	Phase   mem.Phase    `json:"phase,omitempty"` // that ended last
	Host    mem.Optional `json:"host_bytes,omitzero"`
	Device  mem.Optional `json:"device_bytes,omitzero"`
	PIDs    []int        `json:"pids"`
	Alerts  []string     `json:"alerts"`
	Cards   []live.Card  `json:"imagined_devices,omitempty"`
}

// between two looks, from which the load of processors follows.
const between = 500 * time.Millisecond

// Once looks at the machine and its runs.
func Once(ctx context.Context, e *engine.Engine) (*Snapshot, error) {
	runs, err := e.Runs(ctx, store.Filter{State: store.Running})
	if err != nil {
		return nil, err
	}
	out := &Snapshot{Version: 1, Runs: []RunNow{}}
	looks := 0
	for picture := range e.Machine(ctx, between) {
		if out.Machine = picture; looks == 1 {
			break
		}
		looks++
	}
	slices.SortFunc(out.Machine.Processes, func(a, b sampler.Seen) int {
		return cmp.Or(cmp.Compare(b.RSS, a.RSS),
			cmp.Compare(a.PID, b.PID))
	})
	if out.Machine.GPUs == nil {
		out.Machine.GPUs = []sampler.Card{}
	}
	for _, r := range runs {
		_, recorded, err := e.Load(ctx, r.ID)
		if err != nil {
			continue // it was removed meanwhile
		}
		out.Runs = append(out.Runs, runNow(r, live.Of(recorded), e.Runtime.Time()))
	}
	return out, ctx.Err()
}

func runNow(r store.Run, view *live.Run, at time.Time) RunNow {
	r.Command = runCommand(&r, view)
	now := RunNow{Run: r, Elapsed: elapsed(&r, nil, at), Step: view.StepCount(), Phase: view.Phase(),
		Host: treeNow(view), Device: view.Device(), PIDs: []int{}, Alerts: []string{}, Cards: view.Cards()}
	for _, p := range view.Alive() {
		now.PIDs = append(now.PIDs, p.PID)
	}
	for _, event := range view.Events {
		if event.Kind == "alert" {
			now.Alerts = append(now.Alerts, event.Text)
		}
	}
	return now
}

// plainProcesses is how many processes are read out.
const plainProcesses = 10

// Text is the snapshot in sentences, one fact a line: no bars, no columns, no colours.
func (s *Snapshot) Text(filter string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	m := &s.Machine
	say("Machine %s, %s.", clean(m.Host), report.Counted(int64(m.Cores), "core"))
	if used := usedMemory(m); used.Known() {
		say("Memory: %s of %s in use, %s.", size(used), size(m.Total), percent(share(used, m.Total).Or(0)))
	}
	if busy, ok := m.Busy.Get(); ok {
		say("Processors: %s busy, load %s.", percent(busy), m.Load)
	}
	for i := range m.GPUs {
		g := cardGauge(&m.GPUs[i])
		say("%s: %s.", g.name, g.figure)
	}
	if len(m.GPUs) == 0 {
		say("GPUs: none seen.")
	}
	s.sayRuns(say, filter)
	s.sayProcesses(say, filter)
	return b.String()
}

func (s *Snapshot) sayRuns(say func(string, ...any), filter string) {
	say("")
	say("%s.", report.UpperFirst(strings.Replace(report.Counted(int64(len(s.Runs)), "run"), "0 runs", "no run",
		1))+" being recorded")
	for i := range s.Runs {
		r := &s.Runs[i]
		if !matches(filter, r.ID+" "+r.Name+" "+commandOf(r.Command)) {
			continue
		}
		say("Run %s: %s.", firstOf(r.Name, r.ID), commandOf(r.Command))
		line := "  " + report.Duration(r.Elapsed) + ", step " + report.Count(int64(r.Step))
		if r.Phase != "" {
			line += ", last phase " + string(r.Phase)
		}
		say("%s, host %s, device %s.", line, size(r.Host), size(r.Device))
		for _, c := range r.Cards {
			say("  Imaginary GPU %s, %s: %s in use.", c.Device, c.GPU, ofSizes(c.Used, mem.Some(int64(c.Total))))
		}
		for _, alert := range r.Alerts {
			say("  Alert: %s", clean(alert))
		}
	}
}

func (s *Snapshot) sayProcesses(say func(string, ...any), filter string) {
	say("")
	say("Processes, the largest first.")
	said := 0
	for i := range s.Machine.Processes {
		p := &s.Machine.Processes[i]
		name := firstOf(commandOf(p.Command), p.Name)
		if said == plainProcesses || !matches(filter, fmt.Sprint(p.PID, " ", name)) {
			continue
		}
		said++
		line := fmt.Sprintf("Process %d: %s resident", p.PID, strings.TrimSpace(size(mem.Some(p.RSS))))
		if busy, ok := p.Busy.Get(); ok {
			line += ", processor " + percent(busy)
		}
		if p.Device.Known() {
			line += ", device " + size(p.Device)
		}
		say("%s, %s", line, report.Shorten(name, 100))
	}
}
