// Package telemetry reads and writes what trackers of memory save: readings and passed limits, one event each.
//
//	a list of events or tfmemprof's columns (JSON), a table (CSV) ──▶ Event ──▶ mem.Run
//	mem.Run ──▶ Event ──▶ JSON, CSV
//
// Stormlog (gpumemprof, tfmemprof) writes these, and hightide's own trackers do. Its documentation names the fields:
// docs/telemetry_schema.md of its repository. Sizes are bytes, times are nanoseconds since 1970. Fields that are not
// known are ignored; a size that is not given stays absent. Read event.go first.
package telemetry

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// maxEvents bounds what a file may hold.
const maxEvents = 1 << 22

// Is knows such a file by the names of its fields.
func Is(head []byte) bool {
	text := bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(text) == 0 {
		return false
	}
	if text[0] != '[' && text[0] != '{' {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		return isHeader(line)
	}
	if bytes.Contains(head, []byte(`"timestamps"`)) && bytes.Contains(head, []byte(`"memory_usage"`)) {
		return true
	}
	timed := bytes.Contains(head, []byte(`"timestamp_ns"`)) || bytes.Contains(head, []byte(`"timestamp"`))
	return timed && (bytes.Contains(head, []byte(`"allocator_allocated_bytes"`)) ||
		bytes.Contains(head, []byte(`"memory_allocated"`)))
}

func isHeader(line []byte) bool {
	timed := bytes.Contains(line, []byte("timestamp"))
	return timed && (bytes.Contains(line, []byte("allocator_allocated_bytes")) ||
		bytes.Contains(line, []byte("memory_allocated")))
}

// Read reads a file of either kind as a recording.
func Read(r io.Reader) (*mem.Run, error) {
	in := bufio.NewReader(r)
	first, err := firstByte(in)
	if err != nil {
		return nil, err
	}
	var events []Event
	switch first {
	case '[':
		events, err = readList(json.NewDecoder(in))
	case '{':
		events, err = readObject(json.NewDecoder(in))
	default:
		events, err = readTable(in)
	}
	if err != nil {
		return nil, err
	}
	return recordingOf(events)
}

// firstByte is the first that is not space.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\ufeff\xef\xbb\xbf", rune(c)) {
			return c, in.UnreadByte()
		}
	}
}

// readList reads events one by one.
func readList(in *json.Decoder) ([]Event, error) {
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	var events []Event
	for in.More() {
		var e Event
		if err := in.Decode(&e); err != nil {
			return nil, fmt.Errorf("event %d: %w", len(events)+1, err)
		}
		if events = append(events, e); len(events) > maxEvents {
			return nil, fmt.Errorf("more than %d events", maxEvents)
		}
	}
	_, err := in.Token()
	return events, err
}

// object is a file that is not a list: events under a name, or tfmemprof's columns, whose sizes are MiB.
type object struct {
	Events     []Event   `json:"events"`
	Usage      []float64 `json:"memory_usage"`
	Timestamps []float64 `json:"timestamps"`
}

func readObject(in *json.Decoder) ([]Event, error) {
	var o object
	if err := in.Decode(&o); err != nil {
		return nil, err
	}
	if len(o.Usage) != len(o.Timestamps) {
		return nil, fmt.Errorf("%d sizes but %d times", len(o.Usage), len(o.Timestamps))
	}
	if len(o.Events)+len(o.Usage) > maxEvents {
		return nil, fmt.Errorf("more than %d events", maxEvents)
	}
	for i, mib := range o.Usage {
		if !(mib >= 0 && mib < float64(mem.MaxSize>>20)) {
			return nil, fmt.Errorf("reading %d: %v MiB is not a size", i+1, mib)
		}
		bytes := whole(mib * (1 << 20))
		o.Events = append(o.Events, Event{Timestamp: o.Timestamps[i], Allocated: &bytes, Collector: "tfmemprof"})
	}
	return o.Events, nil
}

// readTable reads CSV, whose first line names the columns.
func readTable(r io.Reader) ([]Event, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = -1
	names, err := rows.Read()
	if err != nil {
		return nil, err
	}
	var events []Event
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		var e Event
		for i, text := range row[:min(len(row), len(names))] {
			if err := e.set(strings.TrimPrefix(names[i], "\ufeff"), text); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", line, names[i], err)
			}
		}
		if events = append(events, e); len(events) > maxEvents {
			return nil, fmt.Errorf("more than %d events", maxEvents)
		}
	}
}

// WriteJSON writes the readings of a recording as a list of events.
func WriteJSON(w io.Writer, r *mem.Run) error {
	out := bufio.NewWriter(w)
	before := "[\n"
	for _, e := range Events(r) {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s", before, text)
		before = ",\n"
	}
	if before == "[\n" {
		out.WriteString("[")
	}
	out.WriteString("\n]\n")
	return out.Flush()
}

// WriteCSV writes the same as a table.
func WriteCSV(w io.Writer, r *mem.Run) error {
	out := csv.NewWriter(w)
	_ = out.Write(columnNames) // Error tells
	for _, e := range Events(r) {
		_ = out.Write(e.cells())
	}
	out.Flush()
	return out.Error()
}

func numberText(n *whole) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}
