package tui

import (
	"bytes"
	"strings"

	"hightide/internal/live"
	"hightide/internal/mem"

	"github.com/charmbracelet/x/ansi"
)

// terminalText is the newest of what the program wrote, in lines, as a terminal would show them: what a carriage
// return takes back, as a progress bar does, is gone.
type terminalText struct {
	lines []string
	last  string // not ended yet
	up    int    // lines scrolled back
	pend  []byte // a letter or an escape sequence that is not whole yet
}

const (
	keptLines   = 2000
	outputFrame = 5 // lines of the screen that are not the program's
)

// write takes in more.
func (o *terminalText) write(data []byte) {
	data = append(o.pend, data...)
	cut := len(data)
	if at := bytes.LastIndexByte(data, '\n'); len(data)-at < 256 { // hold back what may go on
		if esc := bytes.LastIndexByte(data, 0x1b); esc > at && ansi.StringWidth(string(data[esc:])) == 0 &&
			!bytes.ContainsAny(data[esc:], "mKJHABCD") {
			cut = esc
		}
	}
	for i := 1; i <= min(3, cut); i++ { // of a letter of several bytes
		if b := data[cut-i]; b >= 0xc0 {
			if need := map[bool]int{true: 2}[b < 0xe0] + map[bool]int{true: 3}[b >= 0xe0 && b < 0xf0] +
				map[bool]int{true: 4}[b >= 0xf0]; need > i {
				cut -= i
			}
			break
		}
	}
	o.pend = bytes.Clone(data[cut:])
	for _, piece := range strings.SplitAfter(string(data[:cut]), "\n") {
		line, ended := strings.CutSuffix(piece, "\n")
		o.last += line
		if ended {
			o.lines = append(o.lines, overwritten(o.last))
			o.last = ""
			if o.up > 0 {
				o.up++
			}
		}
	}
	if at := strings.LastIndexByte(o.last, '\r'); at > 1<<12 {
		o.last = overwritten(o.last)
	}
	if len(o.lines) > 2*keptLines {
		o.lines = append(o.lines[:0], o.lines[len(o.lines)-keptLines:]...)
	}
}

// overwritten is a line after its carriage returns.
func overwritten(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// tail are the newest lines that fit, the colours kept and all that moves a cursor taken out.
func (o *terminalText) tail(width, height int) (lines []string) {
	all := o.lines
	if o.last != "" {
		all = append(all[:len(all):len(all)], overwritten(o.last))
	}
	end := max(len(all)-o.up, min(height, len(all)))
	for _, l := range all[max(end-height, 0):end] {
		lines = append(lines, ansi.Truncate(onlyColours(l), width, "…")+"\x1b[m")
	}
	return lines
}

// onlyColours takes out control characters and escape sequences other than those of colours.
func onlyColours(line string) string {
	var b strings.Builder
	var state byte
	for len(line) > 0 {
		seq, width, n, next := ansi.DecodeSequence(line, state, nil)
		if width > 0 || strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") {
			b.WriteString(seq)
		} else if seq == "\t" {
			b.WriteString("    ")
		}
		state, line = next, line[n:]
	}
	return b.String()
}

func outputKeys() []binding { return nil }

// output shows the run in two lines, and below them what the program wrote.
func output(s *State, width, height int) []string {
	lines := s.runLine(width)
	if _, view := s.shownRun(); view != nil {
		lines = append(lines[:1], s.figures(view, width), paint(faint, strings.Repeat("─", width)))
	}
	if len(s.Output.lines) == 0 && s.Output.last == "" {
		return append(lines, paint(faint, "  The program has written nothing yet."))
	}
	return append(lines, s.Output.tail(width, height-len(lines))...)
}

// figures are what a run takes now, in one line.
func (s *State) figures(view *live.Run, width int) string {
	line := " host " + pad(size(treeNow(view)), 8, true) + "  device " + pad(size(view.Device()), 8, true)
	if use, ok := view.Heap[view.Leader()]; ok {
		line += "  heap ~ " + pad(size(mem.Some(int64(use.Live))), 8, true)
	}
	return line + "  " + paint(cyan, treeTrend(view, max(width-ansi.StringWidth(line)-4, 4)))
}

func moveOutput(s *State, by int) []ask {
	s.Output.up = min(max(s.Output.up-by, 0), len(s.Output.lines))
	return nil
}
