package tui

import (
	"fmt"
	"strings"
	"syscall"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// signalling is the question whether to send a signal.
type signalling struct {
	key     procKey
	command string
	chosen  int
	sure    bool // asked for the second time
}

// signals lists those that can be sent, the mildest first.
var signals = []struct {
	signal     syscall.Signal
	name, does string
}{
	{syscall.SIGINT, "SIGINT", "interrupt it, as Ctrl-C does"},
	{syscall.SIGTERM, "SIGTERM", "ask it to end"},
	{syscall.SIGKILL, "SIGKILL", "end it at once; it saves nothing"},
	{system.SIGSTOP, "SIGSTOP", "stop it until SIGCONT"},
	{system.SIGCONT, "SIGCONT", "let it go on"},
	{syscall.SIGHUP, "SIGHUP", "hang up"},
	{system.SIGUSR1, "SIGUSR1", "what the program makes of it"},
	{system.SIGUSR2, "SIGUSR2", "what the program makes of it"},
}

func openSignals(s *State) []ask {
	p := s.process()
	if p == nil {
		s.Message = "choose a process first, with the arrow keys"
		return nil
	}
	s.Dialog = signalDialog
	s.Signal = signalling{key: procKey{p.PID, p.StartTicks}, command: firstOf(commandOf(p.Command), p.Name), chosen: 1}
	return nil
}

func openEnv(s *State) []ask {
	p := s.process()
	if p == nil {
		s.Message = "choose a process first, with the arrow keys"
		return nil
	}
	s.Dialog = envDialog
	s.Env = environment{pid: p.PID, title: fmt.Sprintf("process %d, %s", p.PID, firstOf(commandOf(p.Command), p.Name))}
	return []ask{askEnviron{procKey{p.PID, p.StartTicks}}}
}

// dialogKey does what a key does while a dialog is open.
func (s *State) dialogKey(name string) []ask {
	switch s.Dialog {
	case signalDialog:
		return s.signalKey(name)
	case processDialog:
		return s.processKey(name)
	}
	switch name {
	case "esc", "q", "enter", "?", "h", "e":
		s.Dialog = noDialog
	default:
		if move, ok := moves[name]; ok {
			s.Env.top = min(max(s.Env.top+move(s.Height), 0), max(len(s.Env.values)-1, 0))
		}
	}
	return nil
}

// signalKey chooses, asks once more, and only then sends.
func (s *State) signalKey(name string) []ask {
	g := &s.Signal
	switch {
	case name == "esc" || name == "q" || g.sure && name == "n":
		s.Dialog = noDialog
	case g.sure && name == "y":
		s.Dialog = noDialog
		of := signals[g.chosen]
		return []ask{askSignal{g.key, of.signal, of.name}}
	case g.sure:
	case name == "enter":
		g.sure = true
	default:
		if move, ok := moves[name]; ok {
			g.chosen = min(max(g.chosen+move(len(signals)), 0), len(signals)-1)
		}
	}
	return nil
}

func sentText(m Sent) string {
	if m.Err != nil {
		return m.Err.Error()
	}
	return fmt.Sprintf("%s was sent to process %d", m.Name, m.PID)
}

func signalView(s *State, width int) []string {
	g := &s.Signal
	lines := []string{"", paint(strong, fmt.Sprintf("  Send process %d a signal", g.key.pid)), "  " +
		paint(faint, pad(g.command, width-4, false)), ""}
	for i, of := range signals {
		line := pad(fmt.Sprintf("  %-8s  %s", of.name, of.does), width-2, false)
		if i == g.chosen {
			line = paint(chosen, "▸"+line[1:])
		}
		lines = append(lines, " "+line)
	}
	rowSpots(lines[len(lines)-len(signals):], -g.chosen)
	lines = append(lines, "")
	if g.sure {
		return append(lines, paint(yellow, fmt.Sprintf("  Send %s to process %d? y: yes, n: no", signals[g.chosen].name,
			g.key.pid)))
	}
	return append(lines, paint(faint, "  ↑↓ choose, Enter goes on to a question, Esc leaves"))
}

func envView(s *State, width int) []string {
	lines := []string{"", paint(strong, "  Environment of "+pad(s.Env.title, width-18, false)),
		paint(faint, "  as it was when the program began; secrets are masked"), ""}
	switch {
	case s.Env.err != "":
		return append(lines, "  "+clean(s.Env.err))
	case !s.Env.ready:
		return append(lines, paint(faint, "  reading …"))
	case len(s.Env.values) == 0:
		return append(lines, "  It has none.")
	}
	longest := 0
	for _, v := range s.Env.values {
		longest = max(longest, min(len(v.Name), width/3))
	}
	for _, v := range s.Env.values[min(s.Env.top, len(s.Env.values)-1):] {
		lines = append(lines, "  "+paint(cyan, pad(clean(v.Name), longest, false))+"  "+envValue(v))
	}
	return lines
}

func envValue(v mem.Variable) string {
	if v.Value == mem.Masked {
		return paint(faint, v.Value)
	}
	return clean(v.Value)
}

// help lists the keys, in as many columns as fit.
func help(s *State, width, height int) []string {
	var entries []string
	last := ""
	for _, b := range bindings() {
		if b.tab == "Output" && !s.Launching {
			continue
		}
		if b.tab != last {
			entries = append(entries, paint(strong, b.tab))
			last = b.tab
		}
		entries = append(entries, pad(b.shown, 9, false)+" "+b.does)
	}
	entries = append(entries, pad("↑↓ j k", 9, false)+" up and down", pad("PgUp PgDn", 9, false)+" by a page",
		pad("g G", 9, false)+" to the first, the last")
	lines := []string{"", paint(strong, "  Keys")}
	columns := max(min(width/40, (len(entries)+height-3)/max(height-2, 1)), 1)
	rows := (len(entries) + columns - 1) / columns
	for r := range rows {
		line := "  "
		for c := range columns {
			if i := c*rows + r; i < len(entries) {
				line += pad(entries[i], width/columns-2, false)
			}
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}
