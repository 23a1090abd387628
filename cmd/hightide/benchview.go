package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"hightide/internal/event"
	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/system"
)

// benchView shows how far a matrix is: on a terminal a table of its cells that stays below what was printed,
// elsewhere a line for each trial.
type benchView struct {
	out   *os.File // nil: no terminal
	plain io.Writer
	quiet bool

	lock  sync.Mutex
	last  matrix.Progress
	cells benchCells
	lines int           // that the table has now
	stop  chan struct{} // ends the clock
}

func newBenchView(stderr io.Writer, quiet bool) *benchView {
	v := &benchView{plain: stderr, quiet: quiet}
	if !quiet && !plainTerminal() {
		v.out = terminal(stderr)
	}
	if v.out != nil {
		v.stop = make(chan struct{})
		go v.clock()
	}
	return v
}

// clock draws the table anew every second: times run on.
func (v *benchView) clock() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-v.stop:
			return
		case <-ticker.C:
			v.lock.Lock()
			if v.last.Cells > 0 {
				v.draw()
			}
			v.lock.Unlock()
		}
	}
}

func (v *benchView) showEvent(e event.Event) {
	p, ok := e.(matrix.Progress)
	if !ok || v.quiet {
		return
	}
	v.lock.Lock()
	defer v.lock.Unlock()
	v.last = p
	v.cells.takeRows(p.Rows)
	if v.out == nil {
		if p.Last != nil {
			fmt.Fprintln(v.plain, v.trialLine(p.Last)+v.farLine())
		}
		return
	}
	v.clear()
	if p.Last != nil && p.Last.State != matrix.Done { // why stays on the screen; figures are in the table
		fmt.Fprintln(v.out, v.trialLine(p.Last))
	}
	v.draw()
}

// hide takes the table away.
func (v *benchView) hide() {
	if v.out == nil {
		return
	}
	close(v.stop)
	v.lock.Lock()
	defer v.lock.Unlock()
	v.clear()
	v.last.Cells = 0
}

func (v *benchView) clear() {
	if v.lines > 0 {
		fmt.Fprintf(v.out, "\r\x1b[%dA\x1b[J", v.lines)
		v.lines = 0
	}
}

func (v *benchView) draw() {
	width, rows := 80, 24
	if columns, high := system.TerminalSize(v.out); columns > 20 {
		width, rows = columns, high
	}
	lines := v.cells.lines(&v.last, strings.TrimPrefix(v.farLine(), "  "), time.Now(), rows-2)
	v.clear()
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%s%s%s\n", dim, report.Shorten(report.Clean(line), width-1), plainText)
	}
	v.lines = len(lines)
	_, _ = v.out.WriteString(b.String())
}

// trialLine is a trial that ended, in one line.
func (v *benchView) trialLine(t *matrix.Trial) string {
	line := fmt.Sprintf("%-11s %s, repeat %d", t.State, t.Cell, t.Repeat)
	if t.Reason != "" {
		line += ": " + report.Shorten(t.Reason, 120)
	}
	if t.State == matrix.Done {
		if s, ok := t.Figures[matrix.DeviceUsed]; ok {
			line += fmt.Sprintf(": %v on the device", mem.Bytes(s.Max))
		} else if s, ok := t.Figures[matrix.RSS]; ok {
			line += fmt.Sprintf(": %v RSS", mem.Bytes(s.Max))
		}
		line += ", " + shortDuration(time.Duration(t.Duration))
	}
	return report.Clean(line)
}

// farLine says how far the matrix is.
func (v *benchView) farLine() string {
	p := &v.last
	about := ""
	if p.Done < p.All {
		about = "about "
	}
	line := fmt.Sprintf("  %d of %s%s", p.Done, about, report.Counted(int64(p.All), "trial"))
	if left := p.Left.Round(time.Second); left > 0 && p.Done < p.All {
		line += fmt.Sprintf(", about %s left", shortDuration(left))
	}
	for _, state := range []matrix.State{matrix.Failed, matrix.OutOfMemory, matrix.TimedOut, matrix.Unavailable,
		matrix.Lost} {
		if n := p.States[state]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return line
}
