package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

func analysisKeys() []binding {
	return []binding{{[]string{"r"}, "r", "analyze again now", "Analysis", func(s *State) []ask {
		if r, _ := s.shownRun(); r != nil {
			delete(s.Reports, r.ID)
		}
		return s.refresh()
	}}}
}

// analysisView shows the report's headline and its findings, one of them in full.
func analysisView(s *State, width, height int) []string {
	lines := s.runLine(width)
	r, _ := s.shownRun()
	if r == nil {
		return lines
	}
	a := s.Reports[r.ID]
	switch {
	case a == nil || a.report == nil && a.err == "":
		return append(lines, paint(faint, "  the recording is being read …"))
	case a.err != "":
		return append(lines, wrap(a.err, width-4, "  ")...)
	}
	for _, l := range wrap(a.report.Headline.Verdict, width-4, "") {
		lines = append(lines, "  "+paint(strong, l))
	}
	made := fmt.Sprintf("  analyzed %s ago, of what was recorded then", clock(int64(s.Now.Sub(a.made))))
	if a.report.Headline.Complete {
		made = "  of the whole recording"
	}
	lines = append(lines, paint(faint, made), "")
	return append(lines, findings(a.report, s.Finding, width, height-len(lines))...)
}

func moveAnalysis(s *State, by int) []ask {
	if r, _ := s.shownRun(); r != nil {
		if a := s.Reports[r.ID]; a != nil && a.report != nil {
			s.Finding = min(max(s.Finding+by, 0), max(len(a.report.Findings)-1, 0))
		}
	}
	return nil
}

// findings lists what was found, worst first, with the chosen one in full below its line.
func findings(of *report.Report, chosen, width, height int) (lines []string) {
	if len(of.Findings) == 0 {
		return wrap(cmp.Or(of.Headline.Nothing, strings.TrimSpace(cmp.Or(of.Headline.NotLooked,
			"No findings.")+" "+of.Headline.Looked)), width-4, "  ")
	}
	chosen = min(chosen, len(of.Findings)-1)
	from, to := window(len(of.Findings), max(height/3, 3), chosen)
	columns := []column{{title: "", width: 1}, {title: "FINDING", width: 13}, {title: "WHERE", width: 20},
		{title: "BYTES", width: 8, right: true},
		{title: "A STEP", width: 8, right: true, least: 70}, {title: "", grows: true, width: 8}}
	var rows [][]cell
	for _, f := range of.Findings[from:to] {
		mark, look := severity(f.Severity)
		rows = append(rows, []cell{inked(look, mark), inked(look, f.Kind), text(place(f.File, f.Line)), text(size(f.Bytes)),
			text(size(f.BytesPerStep)), text(clean(f.Title))})
	}
	lines = rowsOf(columns, rows, width, chosen-from, "")
	rowSpots(lines[1:], from-chosen)
	lines = append(lines, "")
	f := &of.Findings[chosen]
	lines = append(lines, wrap(f.Text, width-4, "  ")...)
	if f.Advice != "" {
		for i, l := range wrap(f.Advice, width-6, "") {
			lead := "    "
			if i == 0 {
				lead = "  → "
			}
			lines = append(lines, lead+paint(blue, l))
		}
	}
	if f.File != "" {
		lines = append(lines, "", paint(faint, "  "+clean(fmt.Sprintf("%s:%d", f.File, f.Line))))
	}
	return lines
}

func severity(of string) (string, ink) {
	switch of {
	case report.Critical:
		return "■", red
	case report.Warning:
		return "●", yellow
	}
	return "○", cyan
}

func place(file string, line int) string {
	if file == "" {
		return ""
	}
	return clean(mem.LineName(mem.Location{File: filepath.Clean(file), Line: line}))
}
