package tui

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"

	"github.com/charmbracelet/x/ansi"
)

// ink is how text looks: one of the terminal's own sixteen colours, so that it reads on dark and light, and a weight.
type ink = ansi.Style

var (
	plain  = ansi.NewStyle()
	strong = ansi.NewStyle().Bold()
	faint  = ansi.NewStyle().Faint()
	red    = ansi.NewStyle().ForegroundColor(ansi.Red)
	yellow = ansi.NewStyle().ForegroundColor(ansi.Yellow)
	green  = ansi.NewStyle().ForegroundColor(ansi.Green)
	blue   = ansi.NewStyle().ForegroundColor(ansi.Blue)
	cyan   = ansi.NewStyle().ForegroundColor(ansi.Cyan)
	purple = ansi.NewStyle().ForegroundColor(ansi.Magenta)
	chosen = ansi.NewStyle().Reverse(true)
	head   = ansi.NewStyle().Bold().Underline(true)
)

// paint gives text a look.
func paint(i ink, text string) string {
	if text == "" || len(i) == 0 {
		return text
	}
	return i.Styled(text)
}

// pad cuts or fills text to a width; wide and styled letters count as they show.
func pad(text string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	n := ansi.StringWidth(text)
	if n > width {
		return ansi.Truncate(text, width, "…")
	}
	if right {
		return strings.Repeat(" ", width-n) + text
	}
	return text + strings.Repeat(" ", width-n)
}

// size is a figure whose unit stands in the same columns wherever it is right-aligned.
func size(o mem.Optional) string {
	value, ok := o.Get()
	if !ok {
		return "-"
	}
	if text := mem.Bytes(value).String(); !strings.HasSuffix(text, " B") {
		return text
	}
	return fmt.Sprintf("%d B  ", value)
}

// percent of a whole, in thousandths.
func percent(milli int64) string { return fmt.Sprintf("%d %%", (milli+5)/10) }

// clock is a time in a width that does not change: "  42 s", "12:05", "3:12:05", "2d 04h".
func clock(ns int64) string {
	s := ns / 1e9
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s/3600%24)
}

var partial = []rune(" ▏▎▍▌▋▊▉█")

// bar fills a width by a share in thousandths, in the colour of how full it is.
func bar(milli int64, width int) string {
	milli = min(max(milli, 0), 1000)
	eighths := int(milli) * width * 8 / 1000
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string(partial[rest])
	}
	return paint(heat(milli), full) + paint(faint, strings.Repeat("·", max(width-ansi.StringWidth(full), 0)))
}

// heat is the colour of a share in use.
func heat(milli int64) ink {
	switch {
	case milli >= 900:
		return red
	case milli >= 750:
		return yellow
	}
	return green
}

var levels = []rune("▁▂▃▄▅▆▇█")

// spark draws values above zero, to the highest of them; -1 is a gap.
func spark(values []int64) string {
	return sparkTo(values, slices.Max(append(values, 1)))
}

// sparkTo is the same, to a height that is given.
func sparkTo(values []int64, high int64) string {
	out := make([]rune, len(values))
	for i, v := range values {
		if out[i] = ' '; v >= 0 {
			out[i] = levels[min(int(float64(v)/float64(high)*8), 7)]
		}
	}
	return string(out)
}

// chart draws values as columns of a height, lines from the top; -1 is a gap.
func chart(values []int64, high int64, height int) []string {
	lines := make([]string, height)
	for row := range lines {
		base := (height - 1 - row) * 8
		out := make([]rune, len(values))
		for i, v := range values {
			level := 0
			if v > 0 && high > 0 {
				level = min(max(int(float64(v)/float64(high)*float64(8*height)+0.5)-base, 0), 8)
			}
			if out[i] = ' '; level > 0 {
				out[i] = levels[level-1]
			}
		}
		lines[row] = string(out)
	}
	return lines
}

// clean is text from outside, safe to show: a command or a message may hold escape sequences.
func clean(text string) string { return report.Clean(text) }

// asciiOnly stands for what a terminal without Unicode can show.
var asciiOnly = strings.NewReplacer("█", "#", "▉", "#", "▊", "#", "▋", "+", "▌", "+", "▍", "+", "▎", "-", "▏", "-",
	"·", ".",
	"▁", "_", "▂", ".", "▃", "-", "▄", "=", "▅", "+", "▆", "*", "▇", "%", "●", "*", "○", "o", "■", "#", "▾", "v", "▸", ">",
	"│", "|", "─", "-", "├", "+", "└", "`", "┌", "+", "┐", "+", "┘", "+", "┤", "+", "…", "~", "→", ">", "±", "+-", "↑", "^", "↓", "v", "←", "<", "×", "x", "–", "-", "µ", "u", "²", "2", "°", " ")

// consoleOnly stands for what the fonts of the kernel's own console have: the signs of code page 437.
var consoleOnly = strings.NewReplacer("▉", "█", "▊", "█", "▋", "▌", "▍", "▌", "▎", " ", "▏", " ", "▁", "_", "▂", "_",
	"▃", "▄", "▅", "▄", "▆", "█", "▇", "█",
	"●", "•", "▾", "▼", "▸", "►", "…", "~", "×", "x", "–", "-", "\u00a0", " ")

// wrap breaks a text and gives each line a lead.
func wrap(text string, width int, lead string) (lines []string) {
	for _, l := range report.Wrap(clean(text), width-ansi.StringWidth(lead)) {
		lines = append(lines, lead+l)
	}
	return lines
}
