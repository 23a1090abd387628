package stacks

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// ErrMemray says that a file is a capture of memray, whose format only memray itself reads. Its
// exporter makes a table that can be read: memray transform csv FILE.
var ErrMemray = errors.New("is a capture that only memray itself reads")

// IsMemray knows a capture by its magic, plain or as the first bytes of an LZ4 frame.
func IsMemray(head []byte) bool {
	return bytes.HasPrefix(head, []byte("memray\x00")) ||
		bytes.HasPrefix(head, []byte("\x04\x22\x4d\x18")) && bytes.Contains(head[:min(len(head), 32)], []byte("memr"))
}

// MemrayFormat is the version of a capture's format, which the memray that reads it must have too; 0: it is not told.
func MemrayFormat(head []byte) uint32 {
	_, version, found := bytes.Cut(head[:min(len(head), 64)], []byte("memray\x00"))
	if !found || len(version) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(version)
}

// MemrayHeader is the first line of memray transform csv.
const MemrayHeader = "allocator,num_allocations,size,tid,thread_name,stack_trace"

// IsMemrayTable knows such a table by its first line.
func IsMemrayTable(head []byte) bool { return bytes.HasPrefix(head, []byte(MemrayHeader)) }

// ReadMemrayTable reads the table of memray transform csv: what was held at the peak, by stack.
func ReadMemrayTable(r io.Reader) (*mem.Profile, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	rows.LazyQuotes = true
	rows.FieldsPerRecord = len(strings.Split(MemrayHeader, ","))
	if _, err := rows.Read(); err != nil {
		return nil, err
	}
	out := &mem.Profile{Label: mem.Measured, Default: 1, Notes: []string{"memray: held at the peak"},
		Kinds: []mem.ProfileKind{{Name: "allocations", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes}}}
	known := map[string]uint32{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		count, err1 := strconv.ParseInt(row[1], 10, 64)
		size, err2 := strconv.ParseInt(row[2], 10, 64)
		if err := errors.Join(err1, err2); err != nil || count < 0 || size < 0 || size > int64(mem.MaxSize) {
			return nil, fmt.Errorf("line %d: %q allocations of %q bytes: want two numbers", line, row[1], row[2])
		}
		stack, ok := known[row[5]]
		if !ok {
			stack = memrayStack(&out.Stacks, row[5])
			known[strings.Clone(row[5])] = stack
		}
		out.Samples = append(out.Samples, mem.ProfileSample{Stack: stack, Values: []int64{count, size},
			Labels: map[string]string{"allocator": strings.Clone(row[0]), "thread": strings.Clone(row[4])}})
	}
}

// memrayStack reads "function;file;line|function;file;line", innermost first.
func memrayStack(table *mem.StackTable, text string) uint32 {
	var locations []uint32
	for frame := range strings.SplitSeq(text, "|") {
		l := mem.Location{Function: strings.Clone(frame)}
		if name, place, ok := strings.Cut(frame, ";"); ok {
			if at := strings.LastIndexByte(place, ';'); at >= 0 {
				line, _ := strconv.Atoi(place[at+1:])
				l = mem.Location{Function: strings.Clone(name), File: strings.Clone(place[:at]), Line: line}
				l.Native = path.Ext(l.File) != ".py"
			}
		}
		locations = append(locations, table.Location(l))
	}
	return table.Add(locations)
}
