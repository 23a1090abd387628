package tui

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// diagnostics shows the ranks side by side, what could not be observed, what was lost, and what hightide itself takes.
func diagnostics(s *State, width, height int) []string {
	lines := s.runLine(width)
	_, view := s.shownRun()
	if view == nil {
		return append(append(lines, ""), s.machineNotes(width)...)
	}
	lines = append(lines, rankTable(view, width, max(height/2, 4))...)
	lines = append(lines, "", paint(strong, "  Recording"))
	lines = append(lines, wrap(ownCost(view), width-4, "  ")...)
	lines = append(lines, losses(view, width)...)
	lines = append(lines, "", paint(strong, "  Alerts, and what could not be observed"))
	said := 0
	for _, e := range slices.Backward(view.Events) {
		if e.Kind == "unobserved" || e.Kind == "alert" || e.Kind == "oom" || e.Kind == "kill" {
			lines = append(lines, wrap(report.Duration(e.Time-view.Info.StartMono)+"  "+e.Kind+": "+e.Text, width-4, "  ")...)
			said++
		}
	}
	if said == 0 {
		lines = append(lines, paint(faint, "  none"))
	}
	lines = append(lines, s.machineNotes(width)...)
	from := min(s.Curves.top, max(len(lines)-height, 0))
	return append(lines[:2:2], lines[min(2+from, len(lines)):]...)
}

func moveDiagnostics(s *State, by int) []ask {
	s.Curves.top = min(max(s.Curves.top+by, 0), 500)
	return nil
}

func (s *State) machineNotes(width int) (lines []string) {
	for _, n := range s.Machine.Notes {
		lines = append(lines, wrap(n, width-4, "  ")...)
	}
	return lines
}

// rankTable holds the processes of a run beside each other. What differs most from the others stands out.
func rankTable(view *live.Run, width, height int) []string {
	columns := []column{{title: "PROCESS", width: 12}, {title: "PID", width: 7, right: true}, {title: "STATE", width: 8},
		{title: "STEPS", width: 7, right: true},
		{title: "STEP", width: 8, right: true}, {title: "RSS", width: 8, right: true},
		{title: "DEVICE", width: 8, right: true}, {title: "DROPPED", width: 7, right: true, least: 90},
		{title: "COMMAND", width: 6, grows: true}}
	all := slices.Clone(view.Processes)
	slices.SortStableFunc(all, func(a, b *mem.Process) int { return int(a.Rank.Or(1<<20) - b.Rank.Or(1<<20)) })
	slowest := slowestRank(view)
	var rows [][]cell
	for _, p := range all[:min(len(all), height)] {
		state, look := "running", green
		if p.End.Known() {
			state, look = endOf(p)
		}
		pace, stands := stepTime(view, p.ID), plain
		if p.ID == slowest {
			stands = yellow
		}
		rows = append(rows, []cell{inked(stands, who(p)), text(fmt.Sprint(p.PID)), inked(look, state),
			text(report.Count(int64(view.Totals[p.ID].Steps))), inked(stands, pace),
			text(size(view.Last(p.ID, mem.SeriesRSS))), text(size(deviceOf(view, p.ID))),
			text(report.Count(int64(dropped(view, p.ID)))), dimmed(commandOf(p.Command))})
	}
	lines := rowsOf(columns, rows, width, -1, "")
	if len(all) > height {
		lines = append(lines, paint(faint, fmt.Sprintf("  and %d more", len(all)-height)))
	}
	return lines
}

func endOf(p *mem.Process) (string, ink) {
	if signal, ok := p.Signal.Get(); ok {
		return report.SignalName(signal), red
	}
	if code := p.ExitCode.Or(0); code != 0 {
		return fmt.Sprintf("exit %d", code), red
	}
	return "ended", faint
}

// deviceOf is what a process holds on devices, as the vendor or its frameworks tell.
func deviceOf(view *live.Run, process uint32) mem.Optional {
	return cmp.Or(view.Last(process, mem.SeriesDeviceProcess), view.Last(process, mem.SeriesReserved))
}

// stepTimes are the median durations of the newest steps by process, ns.
func stepTimes(view *live.Run) map[uint32]int64 {
	all := map[uint32][]int64{}
	for _, s := range view.Steps {
		if s.Duration > 0 {
			all[s.Process] = append(all[s.Process], s.Duration)
		}
	}
	medians := map[uint32]int64{}
	for id, times := range all {
		slices.Sort(times)
		medians[id] = times[len(times)/2]
	}
	return medians
}

func stepTime(view *live.Run, process uint32) string {
	if t, ok := stepTimes(view)[process]; ok {
		return report.Duration(t)
	}
	return "-"
}

// slowestRank is the one whose steps take a tenth longer than those of the next; 0 where none does.
func slowestRank(view *live.Run) uint32 {
	var first, second int64
	var slowest uint32
	for id, t := range stepTimes(view) {
		switch {
		case t > first:
			first, second, slowest = t, first, id
		case t > second:
			second = t
		}
	}
	if second == 0 || first*10 < second*11 {
		return 0
	}
	return slowest
}

func dropped(view *live.Run, process uint32) (n uint64) {
	for _, d := range view.Drops {
		if d.Process == process {
			n += d.Records
		}
	}
	return n
}

// ownCost is what recording takes.
func ownCost(view *live.Run) string {
	text := "hightide " + view.Info.Version + " records"
	if cpu, ok := view.Last(0, mem.SeriesOwnCPU).Get(); ok && view.Elapsed() > 0 {
		text += fmt.Sprintf("; it takes %.2f %% of a core", float64(cpu)*100/float64(view.Elapsed()))
	}
	if rss, ok := view.Last(0, mem.SeriesOwnRSS).Get(); ok {
		text += " and " + mem.Bytes(rss).String()
	}
	if every := view.Info.Options["interval"]; every != "" {
		text += ", with a reading every " + every
	}
	if view.End != nil {
		text = "recorded by hightide " + view.Info.Version + "; the run has ended (" + firstOf(view.End.Reason, "exit") + ")"
	}
	return text + "."
}

// losses are what is not in the recording.
func losses(view *live.Run, width int) (lines []string) {
	for _, d := range view.Drops {
		if d.Records > 0 {
			lines = append(lines, paint(yellow, fmt.Sprintf("  %s lost by %s", report.Counted(int64(d.Records), "record"),
				clean(d.Place))))
		}
	}
	for _, d := range view.Damage {
		lines = append(lines, paint(yellow, pad(fmt.Sprintf("  damaged at byte %d: %s", d.Offset, clean(d.Text)), width,
			false)))
	}
	if len(lines) == 0 {
		lines = append(lines, paint(faint, "  nothing was lost"))
	}
	return lines
}
