package telemetry

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
)

// IsSMI knows what nvidia-smi --query-gpu=timestamp,…,memory.used,… --format=csv prints, by its header.
func IsSMI(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("\n"))
	return bytes.Contains(line, []byte("memory.used")) && bytes.ContainsAny(line, ",;")
}

const smiCollector = "nvidia-smi"

// smiTime is how nvidia-smi writes a moment, in a zone that it does not name.
const smiTime = "2006/01/02 15:04:05.000"

// smiUnits are those that a header names.
var smiUnits = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// smiWhich are the columns that tell GPUs apart; any of them will do.
var smiWhich = []string{"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial"}

// ReadSMI reads such a table as a recording of what the devices had in use, whoever used it.
func ReadSMI(r io.Reader) (*mem.Run, error) {
	in := bufio.NewReader(r)
	if _, err := firstByte(in); err != nil {
		return nil, err
	}
	table := csv.NewReader(in)
	table.TrimLeadingSpace, table.ReuseRecord = true, true
	first, _ := in.Peek(4096) // what there is of it
	// as spreadsheets save it in some countries
	if line, _, _ := bytes.Cut(first, []byte("\n")); bytes.IndexByte(line, ';') >= 0 {
		table.Comma = ';'
	}
	header, err := table.Read()
	if err != nil {
		return nil, err
	}
	columns, err := smiColumns(header)
	if err != nil {
		return nil, err
	}
	events, names, err := columns.readRows(table)
	if err != nil {
		return nil, err
	}
	if lost := columns.lost; lost > 0 && len(events) == lost {
		return nil, fmt.Errorf("nvidia-smi had no figure for any of the %d readings", lost)
	}
	out, err := recordingOf(events)
	if err != nil {
		return nil, err
	}
	for i := range out.Info.Host.GPUs {
		if g := &out.Info.Host.GPUs[i]; names[g.Index] != "" {
			g.Name = names[g.Index]
		}
	}
	if n := columns.lost; n > 0 {
		_ = out.Add(mem.Event{Time: out.Info.StartMono, Kind: "unobserved",
			Text: fmt.Sprintf("%d of %d readings, for which nvidia-smi had no figure", n, len(events))})
	}
	if columns.cut {
		_ = out.Add(mem.Event{Time: out.Info.StartMono, Kind: "unobserved", Text: "the last line, which ends in the middle"})
	}
	if columns.which < 0 {
		_ = out.Add(mem.Event{Time: out.Info.StartMono, Kind: "unobserved",
			Text: "which GPU a row is of: the table has no column index, uuid or pci.bus_id, so all rows are taken for one " +
				"GPU's"})
	}
	return out, nil
}

// smiTable says which columns hold what; -1: none.
type smiTable struct {
	time, used, total, free, name, which int
	usedUnit, totalUnit, freeUnit        int64

	header string // of the column of times
	lost   int    // readings that nvidia-smi had no figure for
	cut    bool   // the last row ends in the middle
}

func smiColumns(header []string) (t smiTable, err error) {
	t = smiTable{time: -1, used: -1, total: -1, free: -1, name: -1, which: -1}
	for i, text := range header {
		name, unit, _ := strings.Cut(strings.TrimSpace(text), " [")
		size := smiUnits[strings.TrimSuffix(unit, "]")]
		switch {
		case name == "timestamp" || name == "time" || name == "date":
			t.time, t.header = i, strings.Clone(text)
		case name == "memory.used":
			t.used, t.usedUnit = i, size
		case name == "memory.total":
			t.total, t.totalUnit = i, size
		case name == "memory.free" && size > 0:
			t.free, t.freeUnit = i, size
		case name == "name" || name == "gpu_name":
			t.name = i
		case t.which < 0 && slices.Contains(smiWhich, name):
			t.which = i
		}
	}
	switch {
	case t.used < 0:
		return t, errors.New("the header has no memory.used")
	case t.time < 0:
		return t, errors.New("the header has no timestamp: log with --query-gpu=timestamp,index,memory.used,memory.total")
	case t.usedUnit == 0 || t.total >= 0 && t.totalUnit == 0:
		return t, errors.New("the header has no unit that is known: write `memory.used [MiB]`, as nvidia-smi does")
	}
	return t, nil
}

// readRows gives the readings, and the names of the GPUs.
func (t *smiTable) readRows(table *csv.Reader) (events []Event, names map[int]string, err error) {
	numbers := map[string]int64{} // of GPUs that have no index, in the order they come
	names = map[int]string{}
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return events, names, nil
		}
		if errors.Is(err, csv.ErrFieldCount) && len(events) > 0 {
			if _, after := table.Read(); errors.Is(after, io.EOF) {
				t.cut = true
				return events, names, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
		if row[t.time] == t.header { // of a log that was appended to
			continue
		}
		line, _ := table.FieldPos(0)
		at, ok := smiMoment(row[t.time])
		if !ok {
			return nil, nil, fmt.Errorf("line %d: %q is not a moment as nvidia-smi writes it, nor seconds since 1970", line,
				row[t.time])
		}
		moment := whole(at)
		e := Event{Time: &moment, Collector: smiCollector, Device: size(0)}
		if t.which >= 0 {
			n, err := strconv.ParseInt(row[t.which], 10, 10)
			if err != nil {
				known := false
				if n, known = numbers[row[t.which]]; !known {
					n = int64(len(numbers))
					numbers[strings.Clone(row[t.which])] = n
				}
			}
			e.Device = size(n)
		} else if len(events) > 0 && *events[len(events)-1].Time == moment {
			return nil, nil,
				fmt.Errorf("line %d: two rows of one moment, and no column says of which GPU: add index to --query-gpu", line)
		}
		if e.Used, err = smiSize(row[t.used], t.usedUnit); err == nil && t.total >= 0 {
			e.Total, err = smiSize(row[t.total], t.totalUnit)
		} else if err == nil && t.free >= 0 && e.Used != nil { // what the driver keeps for itself is in neither
			var free *whole
			if free, err = smiSize(row[t.free], t.freeUnit); free != nil {
				e.Total = size(int64(*e.Used + *free))
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		if e.Used == nil {
			t.lost++
		}
		if t.name >= 0 && names[int(*e.Device)] == "" {
			names[int(*e.Device)] = strings.Clone(row[t.name])
		}
		if events = append(events, e); len(events) > maxEvents {
			return nil, nil, fmt.Errorf("more than %d rows", maxEvents)
		}
	}
}

// smiMoment reads nvidia-smi's way to write a moment, ISO 8601, and the time since 1970 in s, ms, µs or ns, as
// scripts around it write it.
func smiMoment(text string) (ns int64, ok bool) {
	// fractions are read with each
	for _, layout := range []string{smiTime, time.DateTime, "2006-01-02T15:04:05", time.RFC3339, "2006/01/02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixNano(), at.Year() >= 1970
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) {
		return 0, false
	}
	for _, scale := range []float64{1e9, 1e6, 1e3, 1} {
		if n*scale < 1<<62 && n*scale >= 1e17 && n*scale < 1e19 { // from 1973 on
			return int64(n * scale), true
		}
	}
	return 0, false
}

// smiSize reads "20000 MiB", or "20000" of --format=csv,nounits; nil for "[N/A]".
func smiSize(text string, unit int64) (*whole, error) {
	if strings.HasPrefix(text, "[") || text == "N/A" {
		return nil, nil
	}
	number, own, _ := strings.Cut(text, " ")
	if own != "" {
		unit = smiUnits[own]
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || unit == 0 || !(n >= 0 && n <= float64(mem.MaxSize)/float64(unit)) {
		return nil, fmt.Errorf("%q is not a size", text)
	}
	return size(int64(math.Round(n * float64(unit)))), nil
}
