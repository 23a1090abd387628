package telemetry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
)

// IsMonitor knows what nvidia-smi dmon and pmon print: columns of blanks, below a header that begins with "# gpu", or
// with "#Date" by -o.
func IsMonitor(head []byte) bool {
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		if fields := bytes.Fields(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("#"))); len(fields) > 0 {
			return bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) &&
				slices.ContainsFunc(fields[:min(3, len(fields))], func(f []byte) bool { return string(f) == "gpu" })
		}
	}
	return false
}

// monitor is the header of such a table: where its columns are.
type monitor struct {
	columns []string
	rows    int    // without a time: how often there was the GPU (and process) that came first,
	first   string // which is this
	days    days
}

// days makes times of day go on at midnight, where no date is written.
type days struct{ last, passed int64 }

func (d *days) at(time int64) int64 {
	const half, day = 12 * 3600e9, 24 * 3600e9
	if time+d.passed < d.last-half {
		d.passed += day
	}
	d.last = time + d.passed
	return d.last
}

func (m *monitor) at(name string) int { return slices.Index(m.columns, name) }

const (
	dmonCollector = "nvidia-smi" // as a query's: of devices alone
	pmonCollector = "nvidia-smi pmon"
	monitorTime   = "20060102 15:04:05"
)

// ReadMonitor reads such a table: what each GPU had in use (dmon -s m), or each process on it (pmon -s m). Sizes are
// MiB. Without -o DT there are no times, and a row a second is taken, as both print unless -d says otherwise.
func ReadMonitor(r io.Reader) (*mem.Run, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	var m monitor
	var events []Event
	for number := 1; in.Scan(); number++ {
		line := strings.TrimSpace(in.Text())
		if header, ok := strings.CutPrefix(line, "#"); ok {
			if fields := strings.Fields(header); slices.Contains(fields, "gpu") {
				m.columns = fields
			}
			continue
		}
		if line == "" {
			continue
		}
		if m.at("fb") < 0 {
			return nil, errors.New("this table of nvidia-smi dmon or pmon has no column of memory (fb): write it with -s m, " +
				"best with -o DT")
		}
		e, err := m.event(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if e == nil {
			continue
		}
		if events = append(events, *e); len(events) > maxEvents {
			return nil, fmt.Errorf("more than %d rows", maxEvents)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	out, err := recordingOf(events)
	if err == nil && m.at("Time") < 0 {
		_ = out.Add(mem.Event{Time: out.Info.StartMono, Kind: "unobserved",
			Text: "the times of the readings: without -o DT nvidia-smi writes none, so one reading a second is assumed"})
	}
	return out, err
}

// event is a row; nil: one of no process.
func (m *monitor) event(row []string) (*Event, error) {
	command := m.at("command")
	if len(row) < len(m.columns) || command < 0 && len(row) > len(m.columns) {
		return nil, fmt.Errorf("%d columns where the header has %d", len(row), len(m.columns))
	}
	gpu, err := strconv.ParseInt(row[m.at("gpu")], 10, 10)
	if err != nil || gpu < 0 {
		return nil, fmt.Errorf("%q is not the number of a GPU", row[m.at("gpu")])
	}
	at, err := m.moment(row)
	if err != nil {
		return nil, err
	}
	e := &Event{Time: size(at), Collector: dmonCollector, Device: size(gpu)}
	used := row[m.at("fb")]
	if pid := m.at("pid"); pid >= 0 {
		if row[pid] == "-" {
			return nil, nil
		}
		n, err := strconv.ParseInt(row[pid], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not the number of a process", row[pid])
		}
		e.Collector, e.PID = pmonCollector, size(n)
		if command >= 0 {
			e.Context = strings.Join(row[command:], " ")
		}
	}
	if used != "-" {
		e.Used, err = smiSize(used, 1<<20)
	}
	return e, err
}

// moment of a row; by the count of rows where there are no times.
func (m *monitor) moment(row []string) (int64, error) {
	day, clock := m.at("Date"), m.at("Time")
	if clock < 0 {
		which := row[m.at("gpu")]
		if pid := m.at("pid"); pid >= 0 {
			which += " " + row[pid]
		}
		if m.first == "" {
			m.first = which
		}
		if which == m.first {
			m.rows++
		}
		return int64(m.rows) * int64(time.Second), nil
	}
	text := "19700102 " + row[clock]
	if day >= 0 {
		text = row[day] + " " + row[clock]
	}
	at, err := time.Parse(monitorTime, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a moment as nvidia-smi writes it", text)
	}
	if day < 0 {
		return m.days.at(at.UnixNano()), nil
	}
	return at.UnixNano(), nil
}
