package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hightide/internal/event"
	"hightide/internal/fit"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
	"hightide/internal/system"
)

// view shows a run in brief at the foot of the terminal, and nothing where standard error is no
// terminal. The foot is kept out of the scrolling region, so the program's own output, progress
// bars included, runs above it undisturbed.
type view struct {
	out    *os.File // nil: not a terminal, or not wanted
	plain  io.Writer
	height int // lines of the foot
	rows   int // of the terminal while the foot is set up; 0: it is not
	live   bool
	quiet  bool
	told   int64   // minutes of compiling that were told last, where there is no terminal
	curve  []int64 // RSS of the tree, one a status, for the live view
}

const (
	saveCursor    = "\x1b7"
	restoreCursor = "\x1b8"
	clearLine     = "\x1b[2K"
	dim           = "\x1b[2m"
	plainText     = "\x1b[0m"
	liveProcesses = 4
	curvePoints   = 400
)

func newView(stderr io.Writer, quiet, live bool) *view {
	v := &view{plain: stderr, live: live, quiet: quiet, height: 1}
	if live {
		v.height = 3 + liveProcesses
	}
	if !quiet && !plainTerminal() {
		v.out = terminal(stderr)
	}
	return v
}

// showEvent shows what happens.
func (v *view) showEvent(e event.Event) {
	switch e := e.(type) {
	case observe.Status:
		v.status(e)
	case event.Alert:
		v.printAbove(e.Text)
	case event.Paused, event.Reporting:
		v.hide()
	case event.Progress:
		v.hide()
		v.progress(e)
	case fit.Ready:
		v.printAbove(readyLine(e))
	case fit.Trial:
		v.printAbove(trialLine(e))
	}
}

// progress shows how far a long work is: on a terminal in one line, elsewhere now and then.
func (v *view) progress(p event.Progress) {
	onTerminal := terminal(v.plain) != nil
	switch {
	case v.quiet:
	case onTerminal && p.Done < p.All:
		fmt.Fprintf(v.plain, "\r\x1b[2Khightide: %d of %d  %s", p.Done, p.All, report.Clean(p.Text))
	case onTerminal:
		fmt.Fprint(v.plain, "\r\x1b[2K")
	case p.Done == p.All: // as far as is known: what these say may bring more
		fmt.Fprintf(v.plain, "hightide: %d imagined, %s\n", p.Done, report.Clean(p.Text))
	case p.Done%8 == 0:
		fmt.Fprintf(v.plain, "hightide: %d of %d imagined, %s\n", p.Done, p.All, report.Clean(p.Text))
	}
}

// status draws the foot. In the background it must not: the terminal would stop the whole job.
func (v *view) status(s observe.Status) {
	v.compiling(s)
	if v.out == nil || !v.foreground() {
		return
	}
	columns, rows := system.TerminalSize(v.out)
	if rows <= v.height+2 || columns < 20 {
		return
	}
	if rss, ok := s.RSS.Get(); ok {
		v.curve = append(v.curve, rss)
		if len(v.curve) > curvePoints {
			v.curve = append(v.curve[:0], v.curve[len(v.curve)/2:]...)
		}
	}
	lines := []string{statusLine(s)}
	if v.live {
		lines = v.liveLines(s, columns)
	}
	var b strings.Builder
	if v.rows != rows {
		v.rows = rows
		// Scroll up to make room, then keep the foot out of the scrolling region.
		b.WriteString(strings.Repeat("\n", v.height) + fmt.Sprintf("\x1b[%dA", v.height))
		b.WriteString(saveCursor + fmt.Sprintf("\x1b[1;%dr", v.rows-v.height) + restoreCursor)
	}
	b.WriteString(saveCursor)
	for i := range v.height {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s%s%s%s", v.rows-v.height+1+i, clearLine, dim, report.Shorten(line, columns),
			plainText)
	}
	b.WriteString(restoreCursor)
	_, _ = v.out.WriteString(b.String())
}

// compiling says where there is no terminal that the program compiles: after one minute, two, four …
func (v *view) compiling(s observe.Status) {
	minutes := s.Compiling.For / int64(time.Minute)
	if s.Compiling.Since == 0 {
		v.told = 0
	} else if v.out == nil && !v.quiet && minutes > 0 && minutes >= 2*v.told {
		v.told = minutes
		v.printAbove(compilingText(s.Compiling))
	}
}

func compilingText(c observe.Compiling) string {
	took := report.Duration(c.For)
	if minutes := c.For / int64(time.Minute); minutes > 0 {
		took = fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("compiling: %s so far, %s", report.Counted(c.Kernels, "kernel"), took)
}

// hide takes the foot away and gives the whole screen back to scrolling.
func (v *view) hide() {
	if v.out == nil || v.rows == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(saveCursor + "\x1b[r")
	for i := range v.height {
		fmt.Fprintf(&b, "\x1b[%d;1H%s", v.rows-v.height+1+i, clearLine)
	}
	b.WriteString(restoreCursor)
	v.rows = 0
	if v.foreground() {
		_, _ = v.out.WriteString(b.String())
	}
}

// printAbove prints a message above the foot.
func (v *view) printAbove(text string) { fmt.Fprintf(v.plain, "hightide: %s\n", text) }

func (v *view) foreground() bool {
	return system.InForeground(v.out)
}

// statusLine is the run in one line.
func statusLine(s observe.Status) string {
	parts := []string{"hightide " + time.Duration(s.Elapsed).Round(time.Second).String()}
	if s.Steps > 0 {
		parts = append(parts, fmt.Sprintf("step %d", s.Steps))
	}
	if s.Phase != mem.PhaseNone {
		parts = append(parts, string(s.Phase))
	}
	if s.Compiling.Since != 0 {
		parts = append(parts, compilingText(s.Compiling))
	}
	add := func(name string, value mem.Optional) {
		if bytes, ok := value.Get(); ok {
			parts = append(parts, name+" "+mem.Bytes(bytes).String())
		}
	}
	add("RSS", s.RSS)
	add("PSS", s.PSS)
	add("peak", s.PeakRSS)
	add("heap ~", s.Heap)
	add("device", s.Device)
	if growth, ok := s.PerStep.Get(); ok && growth > 1<<10 {
		parts = append(parts, "+"+mem.Bytes(growth).String()+"/step")
	}
	if s.Processes > 1 {
		parts = append(parts, fmt.Sprintf("%d processes", s.Processes))
	}
	if s.Dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d dropped", s.Dropped))
	}
	return strings.Join(parts, " · ")
}

// liveLines is the fuller view: the line, a curve of RSS, and the largest processes.
func (v *view) liveLines(s observe.Status, width int) []string {
	lines := []string{strings.Repeat("─", width), statusLine(s), report.Sparkline(v.curve, width)}
	for i, p := range s.Busiest {
		if i == liveProcesses {
			break
		}
		line := fmt.Sprintf("%7d %-10s %10s", p.Process.PID, p.Process.Role, mem.Bytes(p.RSS.Or(0)))
		if heap, ok := p.Heap.Get(); ok {
			line += fmt.Sprintf("  heap ~ %10s", mem.Bytes(heap))
		}
		if p.Steps > 0 {
			line += fmt.Sprintf("  step %d %s", p.Steps, p.Phase)
		}
		lines = append(lines, line+"  "+mem.CommandLine(p.Process.Command))
	}
	return lines
}
