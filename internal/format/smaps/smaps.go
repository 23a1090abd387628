// Package smaps reads what Linux says of a process's mappings, /proc/PID/smaps.
package smaps

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
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
	"Private_Dirty": func(m *mem.Mapping) *mem.Optional { return &m.PrivateDirty },
	"Swap":          func(m *mem.Mapping) *mem.Optional { return &m.Swap },
}

const (
	maxMappings  = 1 << 20 // the kernel's own default limit is 65,530
	maxSmapsLine = 64 << 10
	rollup       = "[rollup]"
)

func Is(head []byte) bool {
	line, rest, _ := strings.Cut(string(head), "\n")
	return mappingLine.MatchString(strings.TrimRight(line, "\r")) &&
		(strings.Contains(rest, "Rss:") || strings.Contains(rest, "Size:"))
}

// Read reads /proc/PID/smaps or smaps_rollup as the kernel prints it, and sums the mappings of each file. Sizes are
// bytes.
func Read(r io.Reader) (*mem.Mappings, error) {
	sums := summing{by: map[string]*mem.Mapping{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), maxSmapsLine)
	number := 0
	for lines.Scan() {
		number++
		if err := sums.line(bytes.TrimRight(lines.Bytes(), "\r")); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	if sums.count == 0 {
		return nil, fmt.Errorf("no mappings")
	}
	if err := sums.end(); err != nil {
		return nil, err
	}
	return &mem.Mappings{Rollup: sums.rollup, List: slices.Collect(maps.Values(sums.by))}, nil
}

// summing is a smaps that is being read.
type summing struct {
	by      map[string]*mem.Mapping
	current mem.Mapping // its figures are still being read
	count   int
	rollup  bool
}

func (s *summing) line(line []byte) error {
	if at := mappingLine.Regexp().FindSubmatchIndex(line); at != nil {
		name, err := mapping(line, at)
		if err == nil && s.count == maxMappings {
			err = fmt.Errorf("more than %d mappings", maxMappings)
		}
		if err != nil {
			return err
		}
		if err := s.end(); err != nil {
			return err
		}
		s.count++
		s.current = mem.Mapping{Name: name}
		s.rollup = s.rollup || name == rollup
		return nil
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if s.count == 0 {
		return fmt.Errorf("a figure before the first mapping")
	}
	return smapsFigure(&s.current, line)
}

// end adds the mapping whose figures were read to those of the same name.
func (s *summing) end() error {
	if s.count == 0 {
		return nil
	}
	of, ok := s.by[s.current.Name]
	if !ok {
		of = &mem.Mapping{Name: s.current.Name}
		s.by[of.Name] = of
	}
	of.Count++
	for _, field := range smapsFields {
		if n, ok := field(&s.current).Get(); ok {
			sum := field(of)
			if n += sum.Or(0); n > int64(mem.MaxSize) {
				return fmt.Errorf("%.60q holds more than %v", s.current.Name, mem.MaxSize)
			}
			*sum = mem.Some(n)
		}
	}
	return nil
}

// mapping checks the first line of a mapping and returns what it is called.
func mapping(line []byte, at []int) (string, error) {
	var start, end, offset uint64
	for i, to := range []*uint64{1: &start, 2: &end, 4: &offset} {
		if to == nil {
			continue
		}
		text := string(line[at[2*i]:at[2*i+1]])
		value, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return "", fmt.Errorf("%q is not an address", text)
		}
		*to = value
	}
	name := string(line[at[14]:at[15]])
	if end < start || name != rollup && end-start > 1<<57 {
		return "", fmt.Errorf("a mapping from %#x to %#x", start, end)
	}
	if strings.HasPrefix(name, "/") {
		name = path.Base(name)
	}
	return name, nil
}

func smapsFigure(m *mem.Mapping, line []byte) error {
	name, rest, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return fmt.Errorf("%.60q is neither a mapping nor a figure", line)
	}
	to, known := smapsFields[string(name)]
	if !known {
		return nil
	}
	text := string(bytes.TrimSpace(rest))
	number, ok := strings.CutSuffix(text, " kB")
	value, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !ok || err != nil || value < 0 || value > int64(mem.MaxSize)/1024 {
		return fmt.Errorf("%s is %.60q, want kB", name, text)
	}
	*to(m) = mem.Some(value * 1024)
	return nil
}
