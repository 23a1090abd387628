package tui

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
)

// detail is the process that is looked at alone.
type detail struct {
	key   procKey
	last  sampler.Seen // as it was seen last, also once it has ended
	ended bool
	busy  live.Curve // thousandths of a core, since it is looked at
	facts *sampler.Details
	err   string
	asked bool // and not answered
}

// openProcess looks at a process alone.
func openProcess(s *State, p *sampler.Seen) []ask {
	s.Dialog = processDialog
	if key := (procKey{p.PID, p.StartTicks}); s.Process.key != key {
		s.Process = detail{key: key}
	}
	return s.watchProcess()
}

// watchProcess takes in what is new of the process that is looked at, and asks for what the picture of the machine
// does not have.
func (s *State) watchProcess() []ask {
	d := &s.Process
	if s.Dialog != processDialog {
		return nil
	}
	at := slices.IndexFunc(s.Machine.Processes, func(p sampler.Seen) bool { return procKey{p.PID, p.StartTicks} == d.key })
	if d.ended = at < 0; d.ended {
		return nil
	}
	d.last = s.Machine.Processes[at]
	if busy, ok := d.last.Busy.Get(); ok {
		d.busy.Add(s.Machine.Time, busy)
	}
	if d.asked {
		return nil
	}
	d.asked = true
	return []ask{askDetails{d.key}}
}

func (s *State) detailed(m Detailed) {
	d := &s.Process
	if d.key.pid != m.PID {
		return
	}
	if d.asked, d.err = false, ""; m.Err != nil {
		d.err = m.Err.Error()
		return
	}
	d.facts = m.Facts
}

// processKey does what a key does while a process is looked at.
func (s *State) processKey(name string) []ask {
	switch name {
	case "e":
		return openEnv(s)
	case "x", "f9":
		return openSignals(s)
	case "enter":
		if p := s.process(); p != nil {
			if id, _ := s.runOf(p); id != "" {
				s.Dialog = noDialog
				return append(s.show(id), s.openTab(numberOf("Timeline"))...)
			}
		}
		s.Message = "no run records this process; hightide attach PID does"
	case "esc", "q":
		s.Dialog = noDialog
	}
	return nil
}

// processStates are the kernel's letters in words.
var processStates = map[string]string{"R": "running", "S": "sleeping", "D": "waiting for a disk", "T": "stopped",
	"t": "stopped by a debugger", "Z": "ended, not yet waited for", "I": "idle"}

// processView is one process: what it is, what its memory is, and how both went.
func processView(s *State, width, height int) []string {
	d := &s.Process
	p := &d.last
	lines := []string{"", paint(strong, fmt.Sprintf("  Process %d  ", p.PID)) + firstOf(commandOf(p.Command), p.Name)}
	add := func(parts ...string) {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		if len(parts) > 0 {
			lines = append(lines, wrap(strings.Join(parts, ", "), width-2, "  ")...)
		}
	}
	state := firstOf(processStates[p.State], p.State)
	if d.ended {
		state = "it has ended; as it was last"
	}
	facts := d.facts
	if facts == nil {
		facts = &sampler.Details{}
	}
	add("RSS "+sizeOf(p.RSS), known("at most ", facts.Peak, sizeOf), known("PSS ", facts.PSS, sizeOf),
		known("USS ", facts.USS, sizeOf), known("swapped ", facts.Swap, sizeOf))
	add(known("its own ", facts.Anon, sizeOf), known("mapped files ", facts.File, sizeOf),
		known("shared memory ", facts.Shmem, sizeOf), "address space "+sizeOf(p.VMS))
	for _, on := range p.Devices {
		add("on " + clean(on.Device) + " " + sizeOf(on.Bytes))
	}
	add(state, "user "+s.user(p.User), s.parentOf(p), report.Counted(p.Threads, "thread"),
		known("began ", facts.Age, func(ns int64) string { return clock(ns) + " ago" }))
	add(s.roleOf(p), "processor time "+strings.TrimSpace(clock(p.CPU)),
		known("", facts.OpenFiles, func(n int64) string { return report.Counted(n, "open file") }),
		report.Counted(p.Faults, "major fault"), clean(facts.Folder))
	switch {
	case d.err != "" && !d.ended:
		add(clean(d.err))
	case d.facts == nil && !d.ended:
		lines = append(lines, paint(faint, "  reading …"))
	}
	const margin = 11
	each := (height - len(lines) - 4) / 2
	if memory := s.History[d.key]; memory != nil && each >= 2 {
		lines = append(lines, "", paint(strong, "  RSS")+paint(faint, ", since hightide top looks"))
		lines = append(lines, plotted(memory, mem.UnitBytes, 1, width, margin, each)...)
	}
	if busy, ok := d.busy.Last().Get(); ok && each >= 2 {
		lines = append(lines, "", paint(strong, "  CPU ")+fmt.Sprintf("%.1f %%", float64(busy)/10)+paint(faint,
			" of a core, since this process is looked at"))
		lines = append(lines, plotted(&d.busy, mem.UnitMilli, 1000, width, margin, each)...)
	}
	return lines
}

// plotted is all of a curve, up to its highest or at least so high.
func plotted(c *live.Curve, unit mem.Unit, least int64, width, margin, height int) []string {
	all := c.All()
	values := c.Highest(all[0].Time, all[len(all)-1].Time, max(width-margin-2, 1))
	return scaled(values, max(slices.Max(values), least), unit, margin, height)
}

// parentOf names the process that began it.
func (s *State) parentOf(p *sampler.Seen) string {
	for i := range s.Machine.Processes {
		if of := &s.Machine.Processes[i]; of.PID == p.Parent {
			return fmt.Sprintf("child of %d %s", of.PID, clean(of.Name))
		}
	}
	return ""
}

// roleOf says which run records it, and as what.
func (s *State) roleOf(p *sampler.Seen) string {
	id, as := s.runOf(p)
	if id == "" {
		return ""
	}
	return "recorded by run " + id + " as " + who(as)
}

// known writes a figure where there is one.
func known(lead string, o mem.Optional, in func(int64) string) string {
	value, ok := o.Get()
	if !ok {
		return ""
	}
	return lead + in(value)
}

func sizeOf(n int64) string { return mem.Bytes(n).String() }
