package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/sampler"
)

// order is what processes are sorted by.
type order int

const (
	byMemory order = iota
	byCPU
	byDevice
	byTime
	byPID
	byUser
	orders
)

func (o order) String() string {
	return [...]string{"memory", "CPU", "device", "time", "pid", "user"}[o]
}

// title is that of the column.
func (o order) title() string {
	return [...]string{"RSS", "CPU%", "DEVICE", "CPUTIME", "PID", "USER"}[o]
}

// compare puts first what people look for: the largest, and of numbers and names the smallest.
func (s *State) compare(a, b *sampler.Seen) int {
	by := [...]int{
		byMemory: cmp.Compare(b.RSS, a.RSS),
		byCPU:    cmp.Compare(b.Busy.Or(-1), a.Busy.Or(-1)),
		byDevice: cmp.Compare(b.Device.Or(-1), a.Device.Or(-1)),
		byTime:   cmp.Compare(b.CPU, a.CPU),
		byPID:    cmp.Compare(a.PID, b.PID),
		byUser:   strings.Compare(s.user(a.User), s.user(b.User)),
	}[s.Sort]
	if s.Reversed {
		by = -by
	}
	return cmp.Or(by, cmp.Compare(a.PID, b.PID))
}

// processRow is a process of the table, with the branch of the tree that it hangs on.
type processRow struct {
	*sampler.Seen
	branch string
}

func processKey(p *sampler.Seen) string { return fmt.Sprintf("process %d %d", p.PID, p.StartTicks) }

// processRows are those that the filter lets through, in order; as a tree, with those above them.
func (s *State) processRows() (rows []processRow) {
	var all []*sampler.Seen
	for i := range s.Machine.Processes {
		all = append(all, &s.Machine.Processes[i])
	}
	slices.SortFunc(all, s.compare)
	if s.Tree {
		return s.treeRows(all)
	}
	for _, p := range all {
		if s.lets(p) {
			rows = append(rows, processRow{p, ""})
		}
	}
	return rows
}

func (s *State) lets(p *sampler.Seen) bool {
	if s.Filter == "" {
		return true
	}
	id, _ := s.runOf(p)
	return matches(s.Filter, fmt.Sprint(p.PID, " ", s.user(p.User), " ", p.Name, " ", id, " ", commandOf(p.Command)))
}

// treeRows hang each process on its parent.
func (s *State) treeRows(sorted []*sampler.Seen) (rows []processRow) {
	there, children := map[int]bool{}, map[int][]*sampler.Seen{}
	for _, p := range sorted {
		there[p.PID] = true
	}
	for _, p := range sorted {
		parent := p.Parent
		if !there[parent] || parent == p.PID {
			parent = 0
		}
		children[parent] = append(children[parent], p)
	}
	var walk func(parent int) (rows []processRow)
	walk = func(parent int) (rows []processRow) {
		var below [][]processRow
		var kept []*sampler.Seen
		for _, p := range children[parent] {
			next := walk(p.PID)
			if s.lets(p) || len(next) > 0 {
				kept, below = append(kept, p), append(below, next)
			}
		}
		for i, p := range kept {
			branch, stem := "├ ", "│ "
			if i == len(kept)-1 {
				branch, stem = "└ ", "  "
			}
			if parent == 0 {
				branch, stem = "", ""
			}
			rows = append(rows, processRow{p, branch})
			for _, r := range below[i] {
				rows = append(rows, processRow{r.Seen, stem + r.branch})
			}
		}
		return rows
	}
	return walk(0)
}

func processColumns() []column {
	return []column{
		{title: "PID", key: "N", width: 7, right: true},
		{title: "USER", width: 8},
		{title: "RUN", width: 10, least: 110},
		{title: "ROLE", width: 10, least: 130},
		{title: "THR", width: 4, right: true, least: 100},
		{title: "CPU%", key: "P", width: 5, right: true},
		{title: "CPUTIME", key: "T", width: 8, right: true, least: 90},
		{title: "RSS", key: "M", width: 8, right: true},
		{title: "DEVICE", key: "D", width: 8, right: true, least: 70},
		{title: "TREND", width: 10, least: 100},
		{title: "COMMAND", width: 8, grows: true},
	}
}

// processTable draws as many processes as there is room for.
func (s *State) processTable(width, height int) []string {
	all := s.processRows()
	cursor := slices.IndexFunc(all, func(r processRow) bool { return processKey(r.Seen) == s.Cursor })
	from, to := window(len(all), height, cursor)
	var rows [][]cell
	for _, r := range all[from:to] {
		rows = append(rows, s.processCells(r))
	}
	lines := rowsOf(processColumns(), rows, width, cursor-from, s.Sort.title())
	rowSpots(lines[1:], from+len(s.listedRuns())-slices.Index(s.items(), s.Cursor))
	lines[0] = counted(lines[0], width, to-from, len(all))
	return lines
}

func (s *State) processCells(r processRow) []cell {
	p := r.Seen
	id, known := s.runOf(p)
	role, look := "", faint
	if known != nil {
		role, look = known.Role, plain
	}
	busy := "-"
	if milli, ok := p.Busy.Get(); ok {
		busy = fmt.Sprintf("%.1f", float64(milli)/10)
	}
	name := commandOf(p.Command)
	if name == "" {
		name = "[" + clean(p.Name) + "]"
	}
	curve := s.History[procKey{p.PID, p.StartTicks}]
	trendText := ""
	if curve != nil {
		trendText = trend(curve, curve.Recent, 10)
	}
	return []cell{text(fmt.Sprint(p.PID)), text(clean(s.user(p.User))), inked(green, id), text(role),
		dimmed(fmt.Sprint(p.Threads)), inked(stateInk(p), busy),
		dimmed(clock(p.CPU)), text(size(mem.Some(p.RSS))), text(size(p.Device)), inked(cyan, trendText),
		inked(look, r.branch+name)}
}

// stateInk shows what does not run as it should: stopped, waiting for a disk, ended.
func stateInk(p *sampler.Seen) ink {
	switch p.State {
	case "D", "Z":
		return red
	case "T", "t":
		return yellow
	}
	return plain
}
