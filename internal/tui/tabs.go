package tui

import (
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"

	"github.com/charmbracelet/x/ansi"
)

// tab is a view. To add one: a file, and a line in tabs.
type tab struct {
	title, short string
	view         func(s *State, width, height int) []string
	move         func(s *State, by int) []ask // of the cursor; nil: there is none
}

// tabs lists the views in the order of their keys.
func tabs() []tab {
	all := []tab{{"Overview", "Overview", overview, moveOverview}}
	for _, f := range frameworks.All() {
		if f.Short != "" {
			all = append(all, tab{f.Title, f.Short, frameworkView(f), nil})
		}
	}
	return append(all, []tab{
		{"Timeline", "Time", timeline, moveTimeline},
		{"Analysis", "Analysis", analysisView, moveAnalysis},
		{"Diagnostics", "Diag", diagnostics, moveDiagnostics},
		{"Heap", "Heap", heap, moveHeap},
		{"Output", "Output", output, moveOutput},
	}...)
}

// tab is the one in front.
func (s *State) tab() tab { return tabs()[s.Tab] }

// numberOf is where a view stands in the list.
func numberOf(title string) int {
	return slices.IndexFunc(tabs(), func(t tab) bool { return t.title == title })
}

// tabCount is how many there are: output only of a program that hightide runs.
func (s *State) tabCount() int {
	if s.Launching {
		return len(tabs())
	}
	return len(tabs()) - 1
}

// least is the smallest terminal that anything is drawn on.
const leastWidth, leastHeight = 40, 10

// Frame is what is on the screen: exactly Height lines, none wider than Width.
func (s *State) Frame() string { return spotMarks.ReplaceAllString(s.marked(), "") }

// marked is the frame with its spots.
func (s *State) marked() string {
	if s.Width < leastWidth || s.Height < leastHeight {
		return ansi.Truncate("hightide top needs 40 x 10", max(s.Width, 0), "")
	}
	body := s.Height - 2
	var lines []string
	switch s.Dialog {
	case helpDialog:
		lines = help(s, s.Width, body)
	case envDialog:
		lines = envView(s, s.Width)
	case signalDialog:
		lines = signalView(s, s.Width)
	case processDialog:
		lines = processView(s, s.Width, body)
	default:
		lines = s.tab().view(s, s.Width, body)
	}
	if len(lines) > body {
		lines = lines[:body]
	}
	all := append([]string{s.tabBar()}, lines...)
	for len(all) < s.Height-1 {
		all = append(all, "")
	}
	all = append(all, s.foot())
	for i := range all {
		all[i] = ansi.Truncate(all[i], s.Width, "…")
	}
	return strings.Join(all, "\n")
}

// tabBar names the views; where there is no room in short, and in the end only the one in front.
func (s *State) tabBar() (bar string) {
	for short := range 3 {
		width := 0
		bar = ""
		for i, t := range tabs()[:s.tabCount()] {
			label := " " + string(rune('1'+i)) + " "
			switch {
			case short == 0:
				label += t.title + " "
			case short == 1:
				label += t.short + " "
			case i == s.Tab:
				label += t.title + " "
			}
			width += len(label)
			look := faint
			if i == s.Tab {
				look = chosen
			}
			bar += spot(strconv.Itoa(i+1), paint(look, label))
		}
		if width <= s.Width {
			break
		}
	}
	return bar
}

// foot is the last line: what was said, what is typed, or the keys that are good to know here.
func (s *State) foot() string {
	switch {
	case s.Typing:
		return paint(strong, " filter: ") + s.Filter + paint(chosen, " ") + paint(faint, "  Enter keeps it, Esc clears it")
	case s.Message != "":
		return paint(yellow, " "+clean(s.Message))
	}
	left := ""
	if s.Filter != "" {
		left = paint(strong, " filter: "+s.Filter+" ")
	}
	if s.Paused {
		left += paint(yellow, " held still ")
	}
	hints := s.hints()
	for i, hint := range hints {
		hints[i] = hintSpot(hint)
	}
	return left + paint(faint, " "+strings.Join(hints, "  "))
}

// hintSpot makes a hint clickable that begins with one key.
func hintSpot(hint string) string {
	key, _, _ := strings.Cut(hint, " ")
	if named, ok := map[string]string{"?keys": "?", "/filter": "/", "Enter": "enter", "Esc": "esc", "→": "right",
		"←": "left"}[key]; ok {
		key = named
	} else if len(key) != 1 {
		return hint
	}
	return spot(key, hint)
}

// hints are keys that are good to know.
func (s *State) hints() []string {
	switch s.Dialog {
	case noDialog:
	case processDialog:
		hints := []string{"Esc close", "e environment", "x signal"}
		if id, _ := s.runOf(&s.Process.last); id != "" {
			hints = append(hints, "Enter its run")
		}
		return hints
	default:
		return []string{"Esc close"}
	}
	switch s.tab().title {
	case "Overview":
		return []string{"?keys", "/filter", "s sort:" + s.Sort.String(), "t tree", "Enter open", "e environment",
			"x signal", "q quit"}
	case "Timeline":
		return []string{"?keys", "↑↓ series", "+- zoom", "0 all", "[ ] run", "q quit"}
	case "Analysis":
		return []string{"?keys", "↑↓ finding", "r again", "[ ] run", "q quit"}
	case "Heap":
		return []string{"?keys", "→ open", "← close", "m measure", "d device", "i inverted", "/filter", "q quit"}
	}
	if s.Launching {
		return []string{"?keys", "1…8 views", "↑↓ scroll", "Ctrl-C interrupt the program", "q leave the view: it goes on"}
	}
	return []string{"?keys", "[ ] run", "q quit"}
}

// runLine says which run a view is about.
func (s *State) runLine(width int) []string {
	r, view := s.shownRun()
	if r == nil && view == nil && !s.Launching {
		return append([]string{"", "  No run yet. Record one in another terminal:", ""},
			"    hightide run -- python train.py")
	}
	if r == nil {
		return []string{paint(strong, " the run begins …"), ""}
	}
	line := " " + paint(strong, firstOf(r.Name, r.ID)) + "  " + stateText(r, view)
	if view != nil && view.Phase() != "" && view.End == nil {
		line += "  " + string(view.Phase())
	}
	return []string{pad(line+"  "+paint(faint, commandOf(runCommand(r, view))), width, false), ""}
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return clean(w)
		}
	}
	return ""
}
