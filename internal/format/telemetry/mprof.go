package telemetry

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// IsMprof knows what memory_profiler's mprof writes (*.dat): lines that begin with a word in capitals, sizes in MiB,
// times in seconds.
func IsMprof(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(line, []byte("CMDLINE ")) {
		return bytes.Contains(head, []byte("\nMEM ")) || bytes.Contains(head, []byte("\nFUNC "))
	}
	_, err := parseMprof(strings.Fields(string(line)))
	return err == nil
}

// mprofLine is a reading of a process, or a call of a function.
type mprofLine struct {
	word       string // MEM, CHLD or FUNC
	pid        int64  // of CHLD
	name       string // of FUNC
	bytes, at  int64
	bytes2, to int64 // of FUNC
}

var errMprof = errors.New("not a line that mprof writes")

func parseMprof(fields []string) (l mprofLine, err error) {
	switch n := len(fields); {
	case n == 3 && fields[0] == "MEM":
		l.bytes, l.at, err = mprofReading(fields[1:])
	case n == 4 && fields[0] == "CHLD":
		if l.pid, err = strconv.ParseInt(fields[1], 10, 32); err == nil {
			l.bytes, l.at, err = mprofReading(fields[2:])
		}
	case (n == 6 || n == 7) && fields[0] == "FUNC":
		l.name = fields[1]
		if l.bytes, l.at, err = mprofReading(fields[2:]); err == nil {
			l.bytes2, l.to, err = mprofReading(fields[4:])
		}
	default:
		return l, errMprof
	}
	l.word = fields[0]
	return l, err
}

// mprofReading is a size and a time.
func mprofReading(fields []string) (bytes, at int64, err error) {
	mib, err1 := strconv.ParseFloat(fields[0], 64)
	seconds, err2 := strconv.ParseFloat(fields[1], 64)
	if err := cmp.Or(err1, err2); err != nil {
		return 0, 0, err
	}
	if !(mib >= 0 && mib < float64(mem.MaxSize>>20)) || !(seconds > 0 && seconds < 1<<33) {
		return 0, 0, fmt.Errorf("%s at %s is no reading", fields[0], fields[1])
	}
	return int64(math.Round(mib * (1 << 20))), int64(seconds * 1e9), nil
}

// ReadMprof reads such a file as a recording: the process, its children by -M, and the functions marked with
// @profile. mprof appends to a file that is there already; then the last run counts.
func ReadMprof(r io.Reader) (*mem.Run, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	var lines, calls []mprofLine
	command, runs, number := "", 0, 0
	for in.Scan() {
		number++
		text := strings.TrimSpace(in.Text())
		if rest, ok := strings.CutPrefix(text, "CMDLINE"); ok {
			command, runs, lines = strings.TrimSpace(rest), runs+1, nil
			continue
		}
		if text == "" {
			continue
		}
		l, err := parseMprof(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if l.word == "FUNC" {
			calls = append(calls, l)
		} else {
			lines = append(lines, l)
		}
		if len(lines)+len(calls) > maxEvents {
			return nil, fmt.Errorf("more than %d readings", maxEvents)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("it holds no readings")
	}
	return mprofRun(lines, calls, command, runs), nil
}

func mprofRun(lines, calls []mprofLine, command string, runs int) *mem.Run {
	slices.SortStableFunc(lines, func(a, b mprofLine) int { return cmp.Compare(a.at, b.at) })
	first, last := lines[0].at, lines[len(lines)-1].at
	calls = slices.DeleteFunc(calls, func(c mprofLine) bool {
		return c.at < first-int64(1e9) || c.at > last ||
			c.to < c.at
	})
	b := &builder{mem.NewRun(), map[int64]uint32{}, map[mem.SeriesDef]*mem.Samples{}, nil}
	info := mem.RunInfo{Verb: "telemetry", Label: mem.Measured, StartMono: first, StartWall: first}
	if command != "" {
		info.Command = mem.MaskArgs(strings.Fields(command))
	}
	b.add(info)
	children := slices.ContainsFunc(lines, func(l mprofLine) bool { return l.pid != 0 })
	for i := range lines {
		l := &lines[i]
		pid, moment, bytes := whole(l.pid), whole(l.at), whole(l.bytes)
		e := Event{PID: &pid, Time: &moment}
		id, known := b.processes[l.pid], b.processes[l.pid] != 0
		if !known {
			id = uint32(len(b.processes) + 1)
			b.processes[l.pid] = id
			p := mem.Process{ID: id, PID: int(l.pid), Role: "main", Start: l.at}
			if l.pid != 0 {
				p.Role, p.Parent = "child", 1
			}
			b.add(p)
		}
		b.sample(&e, mem.SeriesDef{Process: id, Name: mem.SeriesRSS}, &bytes)
		if !children {
			b.sample(&e, mem.SeriesDef{Name: mem.SeriesTreeRSS}, &bytes)
		}
	}
	if children {
		b.tree(lines)
	}
	b.samples()
	b.calls(calls)
	if runs > 1 {
		b.add(mem.Event{Time: first, Kind: "unobserved",
			Text: fmt.Sprintf("the runs before the last of %d in the file: mprof appended to it", runs)})
	}
	b.add(mem.End{Time: last, Reason: "left"})
	return b.out
}

// tree sums what the processes held at each reading of the main one.
func (b *builder) tree(lines []mprofLine) {
	var sum, at int64
	put := func() {
		if at != 0 {
			bytes, moment := whole(sum), whole(at)
			b.sample(&Event{Time: &moment}, mem.SeriesDef{Name: mem.SeriesTreeRSS}, &bytes)
		}
	}
	for i := range lines {
		if lines[i].word == "MEM" {
			put()
			sum, at = 0, lines[i].at
		}
		sum += lines[i].bytes
	}
	put()
}

// calls adds the marked functions as spans that the program named.
func (b *builder) calls(calls []mprofLine) {
	var sums mem.Tally[string, mem.PhaseStats]
	var spans mem.Spans
	for _, c := range calls {
		spans = append(spans, mem.Span{Process: 1, Phase: mem.PhaseUser, Name: c.name, Start: c.at, End: c.to,
			RSSStart: mem.Some(c.bytes), RSSEnd: mem.Some(c.bytes2)})
		s := sums.At(c.name)
		s.Process, s.Phase, s.Name, s.Count, s.Total = 1, mem.PhaseUser, c.name, s.Count+1, s.Total+c.to-c.at
		s.Max = max(s.Max, c.to-c.at)
		s.RSSPeak = mem.Some(max(s.RSSPeak.Or(0), c.bytes, c.bytes2))
		s.RSSNet = mem.Some(s.RSSNet.Or(0) + c.bytes2 - c.bytes)
		s.RSSMaxRise = mem.Some(max(s.RSSMaxRise.Or(0), c.bytes2-c.bytes))
	}
	if len(spans) > 0 {
		b.add(spans)
	}
	for _, s := range sums.All {
		b.add(s)
	}
}
