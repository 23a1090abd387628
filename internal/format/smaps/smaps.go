// Package smaps reads what Linux says of a process's mappings, /proc/PID/smaps.
package smaps

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// mappingLine begins a mapping: 7f0c-7f1c r-xp 00000000 fd:01 1234   /usr/lib/x.so
var mappingLine = words.Lazy(`^([0-9a-f]+)-([0-9a-f]+) ([r-][w-][x-][ps-]) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) +(\d+) *(.*)$`)

// smapsFields are the lines of /proc/PID/smaps that are kept, in kB there.
var smapsFields = map[string]func(*mem.Mapping) *mem.Optional{
	"Rss":           func(m *mem.Mapping) *mem.Optional { return &m.RSS },
	"Pss":           func(m *mem.Mapping) *mem.Optional { return &m.PSS },
	"Shared_Clean":  func(m *mem.Mapping) *mem.Optional { return &m.SharedClean },
	"Shared_Dirty":  func(m *mem.Mapping) *mem.Optional { return &m.SharedDirty },
	"Private_Clean": func(m *mem.Mapping) *mem.Optional { return &m.PrivateClean },
	"Private_Dirty": func(m *mem.Mapping) *mem.Optional { return &m.PrivateDirty },
	"Anonymous":     func(m *mem.Mapping) *mem.Optional { return &m.Anonymous },
	"Swap":          func(m *mem.Mapping) *mem.Optional { return &m.Swap },
	"SwapPss":       func(m *mem.Mapping) *mem.Optional { return &m.SwapPSS },
	"AnonHugePages": func(m *mem.Mapping) *mem.Optional { return &m.HugePages },
	"Locked":        func(m *mem.Mapping) *mem.Optional { return &m.Locked },
}

const (
	maxMappings  = 1 << 20 // the kernel's own default limit is 65,530
	maxSmapsLine = 64 << 10
)

func Is(head []byte) bool {
	line, rest, _ := strings.Cut(string(head), "\n")
	return mappingLine.MatchString(strings.TrimRight(line, "\r")) && (strings.Contains(rest, "Rss:") || strings.Contains(rest, "Size:"))
}

// Read reads /proc/PID/smaps or smaps_rollup as the kernel prints it. Sizes are bytes.
func Read(r io.Reader) (*mem.Mappings, error) {
	out := &mem.Mappings{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), maxSmapsLine)
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimRight(lines.Text(), "\r")
		if found := mappingLine.FindStringSubmatch(line); found != nil {
			m, err := mapping(found)
			if err == nil && len(out.List) == maxMappings {
				err = fmt.Errorf("more than %d mappings", maxMappings)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			out.List = append(out.List, m)
			out.Rollup = out.Rollup || m.Path == "[rollup]"
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if len(out.List) == 0 {
			return nil, fmt.Errorf("line %d: a figure before the first mapping", number)
		}
		if err := smapsFigure(&out.List[len(out.List)-1], line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	if len(out.List) == 0 {
		return nil, fmt.Errorf("no mappings")
	}
	return out, nil
}

func mapping(found []string) (mem.Mapping, error) {
	m := mem.Mapping{Path: found[7]}
	for i, to := range map[int]*uint64{1: &m.Start, 2: &m.End, 4: &m.Offset} {
		value, err := strconv.ParseUint(found[i], 16, 64)
		if err != nil {
			return m, fmt.Errorf("%q is not an address", found[i])
		}
		*to = value
	}
	if m.End < m.Start || m.Path != "[rollup]" && m.End-m.Start > 1<<57 {
		return m, fmt.Errorf("a mapping from %#x to %#x", m.Start, m.End)
	}
	return m, nil
}

func smapsFigure(m *mem.Mapping, line string) error {
	name, text, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%.60q is neither a mapping nor a figure", line)
	}
	to, known := smapsFields[name]
	if !known {
		return nil
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text), " kB")
	value, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !ok || err != nil || value < 0 || value > int64(mem.MaxSize)/1024 {
		return fmt.Errorf("%s is %.60q, want kB", name, strings.TrimSpace(text))
	}
	*to(m) = mem.Some(value * 1024)
	return nil
}
