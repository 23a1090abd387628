package telemetry

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
)

// IsXPU knows what xpu-smi dump prints, by its header: Timestamp, DeviceId and metrics with their units.
func IsXPU(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("\n"))
	return bytes.HasPrefix(line, []byte("Timestamp,")) && bytes.Contains(line, []byte("DeviceId"))
}

const xpuUsed = "GPU Memory Used (MiB)"

// ReadXPU reads such a table: what each of Intel's GPUs had in use. Times are of day, with --date of the calendar.
func ReadXPU(r io.Reader) (*mem.Run, error) {
	in := bufio.NewReader(r)
	if _, err := firstByte(in); err != nil {
		return nil, err
	}
	table := csv.NewReader(in)
	table.TrimLeadingSpace, table.ReuseRecord = true, true
	header, err := table.Read()
	if err != nil {
		return nil, err
	}
	for i := range header {
		header[i] = strings.TrimSpace(strings.Clone(header[i]))
	}
	used, device := slices.Index(header, xpuUsed), slices.Index(header, "DeviceId")
	if used < 0 || device < 0 {
		return nil, fmt.Errorf("this table of xpu-smi dump has no column %q: dump it with -m 18", xpuUsed)
	}
	var events []Event
	var days days
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return recordingOf(events)
		}
		if err != nil {
			return nil, err
		}
		line, _ := table.FieldPos(0)
		at, err := xpuMoment(strings.TrimSpace(row[0]), &days)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(row[device]), 10, 10)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("line %d: %q is not the number of a device", line, row[device])
		}
		e := Event{Time: size(at), Collector: smiCollector, Device: size(n)}
		if text := strings.TrimSpace(row[used]); text != "" && text != "N/A" {
			mib, err := strconv.ParseFloat(text, 64)
			if err != nil || !(mib >= 0 && mib < float64(mem.MaxSize>>20)) {
				return nil, fmt.Errorf("line %d: %q is not a size", line, text)
			}
			e.Used = size(int64(mib * (1 << 20)))
		}
		if events = append(events, e); len(events) > maxEvents {
			return nil, fmt.Errorf("more than %d rows", maxEvents)
		}
	}
}

func xpuMoment(text string, d *days) (int64, error) {
	if at, err := time.Parse("2006-01-02 15:04:05", text); err == nil && at.Year() >= 1970 {
		return at.UnixNano(), nil
	}
	at, err := time.Parse("2006-01-02 15:04:05", "1970-01-02 "+text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a moment as xpu-smi writes it", text)
	}
	return d.at(at.UnixNano()), nil
}
