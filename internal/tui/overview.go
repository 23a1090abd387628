package tui

import (
	"slices"
	"strings"
	"time"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// overview shows the machine, its GPUs, the runs, and all processes.
func overview(s *State, width, height int) []string {
	var between []string // of the tables; where there is little room, rows are worth more
	if height > 12 {
		between = []string{""}
	}
	lines := append(s.gaugeLines(width, max(height/2-1, 3)), between...)
	runs := s.listedRuns()
	room := height - len(lines)
	if s.RunsErr != "" {
		lines = append(lines, paint(red, " the runs cannot be read: "+clean(s.RunsErr)))
	}
	runRows := min(len(runs), max(room/3, 2))
	lines = append(lines, s.runTable(runs, width, runRows)...)
	lines = append(lines, between...)
	return append(lines, s.processTable(width, height-len(lines)-1)...)
}

// listedRuns are those that run, then the others, newest first.
func (s *State) listedRuns() (runs []*store.Run) {
	for _, running := range []bool{true, false} {
		for i := range s.Runs {
			r := &s.Runs[i]
			if (r.State == store.Running) == running &&
				matches(s.Filter, r.ID+" "+r.Name+" "+commandOf(r.Command)+" "+tagText(r.Tags)) {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

func tagText(tags map[string]string) string {
	var all []string
	for key, value := range tags {
		all = append(all, key+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func runColumns() []column {
	return []column{
		{title: "RUN", width: 15},
		{title: "STATE", width: 13},
		{title: "TIME", width: 8, right: true, least: 60},
		{title: "STEP", width: 7, right: true, least: 70},
		{title: "PHASE", width: 9, least: 90},
		{title: "HOST", width: 8, right: true},
		{title: "DEVICE", width: 8, right: true, least: 50},
		{title: "TREND", width: 12, least: 110},
		{title: "COMMAND", width: 8, grows: true},
	}
}

// runTable draws some of the runs, the chosen one among them.
func (s *State) runTable(runs []*store.Run, width, height int) []string {
	cursor := slices.IndexFunc(runs, func(r *store.Run) bool { return runKey(r) == s.Cursor })
	from, to := window(len(runs), height, cursor)
	var rows [][]cell
	for _, r := range runs[from:to] {
		rows = append(rows, s.runCells(r))
	}
	lines := rowsOf(runColumns(), rows, width, cursor-from, "")
	rowSpots(lines[1:], from-slices.Index(s.items(), s.Cursor))
	lines[0] = counted(lines[0], width, to-from, len(runs))
	switch {
	case !s.Listed:
		return append(lines, paint(faint, "  reading …"))
	case len(s.Runs) == 0:
		return append(lines, paint(faint, "  none; record one: hightide run -- python train.py"))
	}
	return lines
}

func runKey(r *store.Run) string { return "run " + r.ID }

func (s *State) runCells(r *store.Run) []cell {
	view := s.Live[r.ID]
	host, device, steps, phase, curve := mem.Optional{}, mem.Optional{}, r.Steps, "", ""
	switch f := r.Figure; {
	case f.Source.OfDevice():
		device = mem.Some(f.Bytes)
	case f.Known():
		host = mem.Some(f.Bytes)
	}
	if view != nil && view.End == nil && r.State == store.Running {
		host, device, steps, phase = treeNow(view), view.Device(), view.StepCount(), string(view.Phase())
		curve = treeTrend(view, 12)
	}
	state, look := stateWord(r, view)
	count := "-"
	if steps > 0 {
		count = report.Count(int64(steps))
	}
	return []cell{text(firstOf(r.Name, r.ID)), inked(look, state), text(clock(elapsed(r, view, s.Now))), text(count),
		inked(phaseInk(mem.Phase(phase)), phase),
		text(size(host)), text(size(device)), inked(cyan, curve), dimmed(commandOf(runCommand(r, view)))}
}

// runCommand is what a run is of; the list of runs does not have it yet in its first moments.
func runCommand(r *store.Run, view *live.Run) []string {
	if len(r.Command) == 0 && view != nil {
		return view.Info.Command
	}
	return r.Command
}

// treeNow is what all processes of a run take: shared pages once, where that is known.
func treeNow(view *live.Run) mem.Optional {
	if pss := view.Last(0, mem.SeriesTreePSS); pss.Known() && len(view.Alive()) > 1 {
		return pss
	}
	return view.Last(0, mem.SeriesTreeRSS)
}

func treeTrend(view *live.Run, width int) string {
	if s := view.Find(0, mem.SeriesTreeRSS); s != nil {
		return spark(s.Highest(max(view.Now-int64(time.Minute), view.Info.StartMono), view.Now, width))
	}
	return ""
}

func elapsed(r *store.Run, view *live.Run, now time.Time) int64 {
	if r.State != store.Running {
		return r.Duration
	}
	if view != nil && view.Elapsed() > 0 {
		return view.Elapsed()
	}
	return max(now.UnixNano()-r.Start, 0)
}

// stateWord is how a run is, or how it ended.
func stateWord(r *store.Run, view *live.Run) (string, ink) {
	if r.State == store.Running && view != nil && view.End != nil {
		return "ending", green
	}
	return r.Ended.Text, toneInk[r.Ended.Kind.Tone()]
}

var toneInk = map[string]ink{"live": green, "good": plain, "bad": red, "unsure": yellow}

func stateText(r *store.Run, view *live.Run) string {
	word, look := stateWord(r, view)
	steps := r.Steps
	if view != nil {
		steps = max(steps, view.StepCount())
	}
	line := paint(look, word) + "  " + clock(elapsed(r, view, time.Unix(0, r.Start)))
	if steps > 0 {
		line += "  step " + report.Count(int64(steps))
	}
	return line
}

// commandOf is a command line with its program's name, without the folder.
func commandOf(command []string) string {
	return clean(mem.CommandLine(mem.Program(command)))
}

// phaseInk is the colour of a phase, the same everywhere.
func phaseInk(phase mem.Phase) ink {
	switch phase {
	case mem.PhaseForward:
		return green
	case mem.PhaseBackward:
		return blue
	case mem.PhaseOptimizer:
		return purple
	case mem.PhaseData:
		return yellow
	case mem.PhaseEvaluation:
		return cyan
	case mem.PhaseCheckpoint:
		return red
	}
	return plain
}
