package telemetry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Event is a reading, or a limit that was passed. A nil size is not known.
type Event struct {
	Version   int     `json:"schema_version,omitempty"`
	Time      *whole  `json:"timestamp_ns,omitempty"`
	Timestamp float64 `json:"timestamp,omitempty"` // seconds: of older versions
	Type      string  `json:"event_type,omitempty"`
	OldType   string  `json:"type,omitempty"`
	Collector string  `json:"collector,omitempty"` // who read it: with cpu or host in it, sizes are of the process
	Interval  *whole  `json:"sampling_interval_ms,omitempty"`
	PID       *whole  `json:"pid,omitempty"`
	Host      string  `json:"host,omitempty"`
	Rank      *whole  `json:"rank,omitempty"`
	Device    *whole  `json:"device_id,omitempty"` // -1: none

	Allocated    *whole `json:"allocator_allocated_bytes"`
	OldAllocated *whole `json:"memory_allocated,omitempty"`
	Reserved     *whole `json:"allocator_reserved_bytes"`
	OldReserved  *whole `json:"memory_reserved,omitempty"`
	Active       *whole `json:"allocator_active_bytes"`
	Inactive     *whole `json:"allocator_inactive_bytes"`
	Used         *whole `json:"device_used_bytes"`
	Free         *whole `json:"device_free_bytes"`
	Total        *whole `json:"device_total_bytes"`

	Context string `json:"context,omitempty"`
}

// hostCollector and deviceCollector are what our own events name.
const (
	hostCollector   = "hightide.host"
	deviceCollector = "hightide.device"
)

// limits are the types of events that say that a limit was passed.
var limits = []string{"warning", "critical", "threshold", "alert", "error", "oom"}

// whole is a whole number; one written with a point is read as well, null and "" are not.
type whole int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *whole) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	return n.parse(string(text))
}

func (n *whole) parse(text string) error {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = whole(i)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) >= 1<<62 || f != f {
		return fmt.Errorf("%q is not a whole number", text)
	}
	*n = whole(f)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n whole) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

var _ json.Unmarshaler = (*whole)(nil)

// sizes are the fields that hold bytes.
func (e *Event) sizes() []**whole {
	return []**whole{&e.Allocated, &e.Reserved, &e.Active, &e.Inactive, &e.Used, &e.Free, &e.Total, &e.OldAllocated,
		&e.OldReserved}
}

// numbers are the fields of a table that hold whole numbers, by the names of columns.
func (e *Event) numbers() map[string]**whole {
	return map[string]**whole{
		"timestamp_ns": &e.Time, "sampling_interval_ms": &e.Interval, "pid": &e.PID, "rank": &e.Rank, "device_id": &e.Device,
		"allocator_allocated_bytes": &e.Allocated, "memory_allocated": &e.OldAllocated,
		"allocator_reserved_bytes": &e.Reserved,
		"memory_reserved":          &e.OldReserved, "allocator_active_bytes": &e.Active, "allocator_inactive_bytes": &e.Inactive,
		"device_used_bytes": &e.Used, "device_free_bytes": &e.Free, "device_total_bytes": &e.Total,
	}
}

// set takes in a cell of a table.
func (e *Event) set(column, text string) (err error) {
	if text == "" {
		return nil
	}
	if to := e.numbers()[column]; to != nil {
		*to = new(whole)
		return (*to).parse(text)
	}
	words := map[string]*string{"event_type": &e.Type, "type": &e.OldType, "collector": &e.Collector, "host": &e.Host,
		"context": &e.Context}
	switch to := words[column]; {
	case to != nil:
		*to = text
	case column == "timestamp":
		e.Timestamp, err = strconv.ParseFloat(text, 64)
	}
	return err
}

// columnNames of the table that is written.
var columnNames = []string{"schema_version", "timestamp_ns", "event_type", "collector", "sampling_interval_ms", "pid",
	"host", "device_id",
	"allocator_allocated_bytes", "allocator_reserved_bytes", "allocator_active_bytes", "allocator_inactive_bytes",
	"device_used_bytes",
	"device_free_bytes", "device_total_bytes", "context"}

func (e *Event) cells() []string {
	return []string{strconv.Itoa(e.Version), numberText(e.Time), e.Type, e.Collector, numberText(e.Interval),
		numberText(e.PID), e.Host, numberText(e.Device),
		numberText(e.Allocated), numberText(e.Reserved), numberText(e.Active), numberText(e.Inactive), numberText(e.Used),
		numberText(e.Free), numberText(e.Total), e.Context}
}

// check makes old names new ones, and refuses what cannot be.
func (e *Event) check() error {
	if e.Time == nil {
		if !(e.Timestamp > 0 && e.Timestamp < 1<<33) {
			return fmt.Errorf("it has no time")
		}
		ns := whole(e.Timestamp * 1e9)
		e.Time = &ns
	}
	if *e.Time <= 0 {
		return fmt.Errorf("%d is not a time", *e.Time)
	}
	for _, size := range e.sizes() {
		if *size != nil && (**size < 0 || mem.Bytes(**size) > mem.MaxSize) {
			return fmt.Errorf("%d bytes is not a size", **size)
		}
	}
	e.Allocated = cmp.Or(e.Allocated, e.OldAllocated)
	e.Reserved = cmp.Or(e.Reserved, e.OldReserved)
	e.Type = cmp.Or(e.Type, e.OldType)
	return nil
}

// ofHost says whether the sizes are of the process's memory on the host.
func (e *Event) ofHost() bool {
	return strings.Contains(e.Collector, "cpu") || strings.Contains(e.Collector, "host")
}

// passed says whether a limit was passed.
func (e *Event) passed() bool { return slices.Contains(limits, e.Type) }
