package sampler

import (
	"bytes"
	"errors"
)

// The parsers below read the kernel's text without allocating. None trusts its input's shape: a
// file that does not parse is an error, never a panic.

var errFormat = errors.New("not in the kernel's format")

// stat is what we use of /proc/PID/stat; see proc_pid_stat(5).
type stat struct {
	state       byte
	parent      int64
	minorFaults int64
	majorFaults int64
	cpuTicks    int64 // user + system, 1/100 s
	threads     int64
	start       int64 // ticks since boot
	vms         int64 // bytes
	rssPages    int64
	// where its stack begins, at random: another after exec, a forked child's is its parent's; 0 where we may not know
	image int64
	comm  []byte // aliases the input
}

func parseStat(text []byte) (s stat, err error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')') // the name may hold both
	if open < 0 || end < open || end+2 >= len(text) {
		return s, errFormat
	}
	s.comm = text[open+1 : end]
	text = text[end+2:]
	s.state = text[0]
	field := 2
	for len(text) > 0 {
		var word []byte
		word, text, _ = bytes.Cut(text, []byte{' '})
		field++
		switch field {
		case 4:
			s.parent = number(word)
		case 10:
			s.minorFaults = number(word)
		case 12:
			s.majorFaults = number(word)
		case 14, 15:
			s.cpuTicks += number(word)
		case 20:
			s.threads = number(word)
		case 22:
			s.start = number(word)
		case 23:
			s.vms = number(word)
		case 24:
			s.rssPages = number(word)
		case 28:
			s.image = number(word)
			return s, nil
		}
	}
	if field < 24 {
		return s, errFormat
	}
	return s, nil
}

// status is what we use of /proc/PID/status, in bytes; see proc_pid_status(5). 0: not there.
type status struct {
	rss, peak  int64
	locked     int64
	parts      parts // from Linux 4.5
	partsKnown bool
	swap       int64
	swapKnown  bool
}

func parseStatus(text []byte) (s status) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || line[0] != 'V' && line[0] != 'R' {
			continue
		}
		switch string(line[:colon]) {
		case "VmLck":
			s.locked, _ = quantity(line[colon+1:])
		case "VmHWM":
			s.peak, _ = quantity(line[colon+1:])
		case "VmRSS":
			s.rss, _ = quantity(line[colon+1:])
		case "RssAnon":
			s.parts.anon, s.partsKnown = quantity(line[colon+1:])
		case "RssFile":
			s.parts.file, _ = quantity(line[colon+1:])
		case "RssShmem":
			s.parts.shared, _ = quantity(line[colon+1:])
		case "VmSwap":
			s.swap, s.swapKnown = quantity(line[colon+1:])
			return s
		}
	}
	return s
}

// parseQueued is how long a thread could run and waited for a processor, in ns: the second figure of
// /proc/PID/schedstat, see sched-stats.rst of the kernel.
func parseQueued(text []byte) (ns int64, ok bool) {
	_, rest, ok := bytes.Cut(text, []byte{' '})
	if !ok || len(rest) == 0 || rest[0] < '0' || rest[0] > '9' {
		return 0, false
	}
	return number(rest), true
}

// number reads leading decimal digits; what is none or overflows is 0.
func number(text []byte) int64 {
	var value int64
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		if value > (1<<63-1-9)/10 {
			return 0
		}
		value = value*10 + int64(c-'0')
	}
	return value
}

// field finds "Key:   123 kB" (or without unit) in a file of such lines; bytes where there is a unit.
func field(text []byte, key string) (int64, bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) > len(key) && line[len(key)] == ':' && string(line[:len(key)]) == key {
			return quantity(line[len(key)+1:])
		}
	}
	return 0, false
}

// quantity reads "  123 kB", "123 KiB", "123 MiB" or "123".
func quantity(text []byte) (int64, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	value, unit := number(text), int64(1)
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		switch string(text[i+1:]) {
		case "kB", "KiB":
			unit = 1 << 10
		case "MiB":
			unit = 1 << 20
		}
	}
	if value > (1<<63-1)/unit {
		return 0, false
	}
	return value * unit, true
}
