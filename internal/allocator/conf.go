package allocator

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hightide/internal/mem"
)

// ConfError says what is wrong with a line of settings.
type ConfError struct {
	Option string // its key; "" where there is none
	Text   string // what was written
	Reason string
}

func (e *ConfError) Error() string {
	switch {
	case e.Option == "":
		return fmt.Sprintf("allocator settings: %q: %s", e.Text, e.Reason)
	case e.Text == "":
		return fmt.Sprintf("allocator settings: %s: %s", e.Option, e.Reason)
	}
	return fmt.Sprintf("allocator settings: %s: %q %s", e.Option, e.Text, e.Reason)
}

// option is one key of the line; set stores its value or says why it cannot.
type option struct {
	name string
	set  func(s *Settings, value string) string
}

// options are all keys PyTorch 2.15 knows, those that move no memory included.
var options = []option{
	{"backend", setBackend},
	{"max_split_size_mb", func(s *Settings, v string) string { return megabytes(&s.MaxSplit, v, 0) }},
	{"max_non_split_rounding_mb", func(s *Settings, v string) string { return megabytes(&s.MaxNonSplitRound, v, 0) }},
	{"garbage_collection_threshold", setThreshold},
	{"roundup_power2_divisions", setDivisions},
	{"expandable_segments", func(s *Settings, v string) string { return boolean(&s.Expandable, v) }},
	{"large_segment_size_mb", func(s *Settings, v string) string { return megabytes(&s.LargeSegment, v, 11) }},
	{"per_process_memory_fraction", setFraction},
	{"throw_on_cudamalloc_oom", func(s *Settings, v string) string { return boolean(&s.ThrowOnCudaMalloc, v) }},
	{"expandable_segments_reserve", setReserve},
	{"expandable_segments_reserve_by_class", anything},
	{"graph_capture_record_stream_reuse", flag},
	{"release_lock_on_cudamalloc", flag},
	{"release_lock_on_hipmalloc", flag},
	{"pinned_use_cuda_host_register", flag},
	{"pinned_use_hip_host_register", flag},
	{"pinned_use_background_threads", flag},
	{"pinned_free_catch_all", flag},
	{"pinned_num_register_threads", count},
	{"pinned_reserve_segment_size_mb", count},
	{"pinned_max_round_threshold_mb", count},
	{"pinned_max_cached_size_mb", count},
}

// Parse reads a line as PYTORCH_CUDA_ALLOC_CONF has it, key:value,key:value, and as a version with these rules
// reads it. Errors are *ConfError.
func (r Rules) Parse(line string) (Settings, error) {
	var s Settings
	line = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, line)
	for _, pair := range pairs(line) {
		name, value, ok := strings.Cut(pair, ":")
		if !ok {
			return Settings{}, &ConfError{"", pair, "is not key:value" + insteadOfEquals(pair)}
		}
		if value == "" {
			return Settings{}, &ConfError{name, "", "has no value"}
		}
		o := slices.IndexFunc(options, func(o option) bool { return o.name == name })
		if o < 0 {
			return Settings{}, &ConfError{"", name, "is not an option that PyTorch knows" + nearest(name)}
		}
		if r.RestFromLast {
			value = restFromLast(value)
		}
		if reason := options[o].set(&s, value); reason != "" {
			return Settings{}, &ConfError{name, value, reason}
		}
	}
	return s, s.Check()
}

// restFromLast repeats what ">" stands for at the last size named before it, where older parsers begin.
func restFromLast(value string) string {
	before, rest, ok := strings.Cut(value, ",>:")
	if !ok || !strings.HasPrefix(value, "[") {
		return value
	}
	last := before[max(strings.LastIndexByte(before, ','), 0)+1:]
	bound, _, _ := strings.Cut(last, ":")
	return before + "," + bound + ":" + rest[:len(rest)-1] + ",>:" + rest
}

// Check compares options with each other; the error is a *ConfError.
func (s *Settings) Check() error {
	least := s.largeSegment()
	if s.MaxSplit > 0 && s.MaxSplit < least {
		return &ConfError{"max_split_size_mb", "", fmt.Sprintf("must be at least %d, the size of large segments",
			least/mem.MiB)}
	}
	if s.MaxNonSplitRound > 0 && s.MaxNonSplitRound < least {
		return &ConfError{"max_non_split_rounding_mb", "", fmt.Sprintf("must be at least %d, the size of large segments",
			least/mem.MiB)}
	}
	return nil
}

// pairs cuts at commas outside brackets; a comma at the end adds nothing.
func pairs(line string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || line[i] == ',' && depth == 0:
			if i > start {
				out = append(out, line[start:i])
			}
			start = i + 1
		case line[i] == '[':
			depth++
		case line[i] == ']':
			depth--
		}
	}
	return out
}

// nearest suggests an option that begins alike.
func nearest(name string) string {
	best, shared := "", 3
	for _, o := range options {
		n := 0
		for n < len(name) && n < len(o.name) && name[n] == o.name[n] {
			n++
		}
		if n > shared {
			best, shared = o.name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

func insteadOfEquals(pair string) string {
	if strings.Contains(pair, "=") {
		return ": write : instead of ="
	}
	return ""
}

func setBackend(s *Settings, v string) string {
	if v != "native" && v != "cudaMallocAsync" {
		return "is neither native nor cudaMallocAsync"
	}
	s.Backend = v
	return ""
}

func boolean(to *bool, v string) string {
	if v != "True" && v != "False" {
		return "is neither True nor False"
	}
	*to = v == "True"
	return ""
}

func flag(_ *Settings, v string) string { return boolean(new(bool), v) }

func anything(*Settings, string) string { return "" }

func count(_ *Settings, v string) string {
	if _, err := strconv.ParseUint(v, 10, 63); err != nil {
		return "is not a whole number"
	}
	return ""
}

func megabytes(to *mem.Bytes, v string, least mem.Bytes) string {
	n, err := strconv.ParseInt(v, 10, 40)
	if err != nil {
		return "is not a whole number of MiB"
	}
	if n < 0 { // read as a huge number
		*to = 0
		return ""
	}
	if mem.Bytes(n) < max(least, 1) {
		return fmt.Sprintf("is less than %d", max(least, 1))
	}
	*to = mem.Bytes(n) * mem.MiB
	return ""
}

func setThreshold(s *Settings, v string) string {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0 && x < 1) {
		return "is not between 0 and 1"
	}
	s.GCThreshold = x
	return ""
}

func setFraction(s *Settings, v string) string {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return "is not between 0 and 1"
	}
	s.Fraction = x
	return ""
}

// setReserve takes a part of the memory, or so many GiB.
func setReserve(s *Settings, v string) string {
	s.ReserveFraction, s.ReserveBytes = 0, 0
	if number, ok := strings.CutSuffix(v, "G"); ok {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !(x > 0 && x < 1<<20) {
			return "is not a number of GiB"
		}
		s.ReserveBytes = mem.Bytes(x * float64(mem.GiB))
		return ""
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0 && x < 100) {
		return "is neither a part of the memory nor a number of GiB such as 40G"
	}
	s.ReserveFraction = x
	return ""
}

// setDivisions takes one number for all sizes, or a list such as [256:1,512:2,>:4] by MiB.
func setDivisions(s *Settings, v string) string {
	s.Divisions = [16]int{}
	list, isList := strings.CutPrefix(v, "[")
	if !isList {
		d, ok := powerOfTwo(v)
		if !ok {
			return "is not a power of two"
		}
		for i := range s.Divisions {
			s.Divisions[i] = d
		}
		return ""
	}
	list, ok := strings.CutSuffix(list, "]")
	if !ok {
		return "has no ] at its end"
	}
	last := 0
	for i, pair := range pairs(list) {
		bound, value, ok := strings.Cut(pair, ":")
		if !ok {
			return "has a part " + strconv.Quote(pair) + " that is not size:divisions"
		}
		d, ok := powerOfTwo(value)
		if !ok && value != "0" {
			return "has divisions " + strconv.Quote(value) + " that are not a power of two"
		}
		if bound == ">" {
			for slot := last + 1; slot < len(s.Divisions); slot++ {
				s.Divisions[slot] = d
			}
			continue
		}
		b, ok := powerOfTwo(bound)
		if !ok {
			return "has a size " + strconv.Quote(bound) + " that is not a power of two"
		}
		last = min(bits.Len(uint(b))-1, len(s.Divisions)-1)
		first := last
		if i == 0 {
			first = 0
		}
		for slot := first; slot <= last; slot++ {
			s.Divisions[slot] = d
		}
	}
	return ""
}

func powerOfTwo(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil && n > 0 && n&(n-1) == 0
}

// String is the line that sets these settings; "" for the defaults.
func (s Settings) String() string {
	var parts []string
	add := func(name string, value any) { parts = append(parts, fmt.Sprintf("%s:%v", name, value)) }
	if s.Backend != "" && s.Backend != "native" {
		add("backend", s.Backend)
	}
	if s.Expandable {
		add("expandable_segments", "True")
	}
	if s.LargeSegment > 0 {
		add("large_segment_size_mb", int64(s.LargeSegment/mem.MiB))
	}
	if s.MaxSplit > 0 {
		add("max_split_size_mb", int64(s.MaxSplit/mem.MiB))
	}
	if s.MaxNonSplitRound > 0 {
		add("max_non_split_rounding_mb", int64(s.MaxNonSplitRound/mem.MiB))
	}
	if d := s.divisionsText(); d != "" {
		add("roundup_power2_divisions", d)
	}
	if s.GCThreshold > 0 {
		add("garbage_collection_threshold", s.GCThreshold)
	}
	if s.Fraction > 0 && s.Fraction < 1 {
		add("per_process_memory_fraction", s.Fraction)
	}
	if s.ThrowOnCudaMalloc {
		add("throw_on_cudamalloc_oom", "True")
	}
	switch {
	case s.ReserveBytes > 0:
		add("expandable_segments_reserve", strconv.FormatFloat(float64(s.ReserveBytes)/float64(mem.GiB), 'g', -1, 64)+"G")
	case s.ReserveFraction > 0:
		add("expandable_segments_reserve", s.ReserveFraction)
	}
	return strings.Join(parts, ",")
}

// divisionsText is one number where all are equal, else a list of all slots.
func (s *Settings) divisionsText() string {
	d := s.Divisions
	if d == ([16]int{}) {
		return ""
	}
	same := true
	var list []string
	for i, n := range d {
		same = same && n == d[0]
		list = append(list, fmt.Sprintf("%d:%d", 1<<i, n))
	}
	if same {
		return strconv.Itoa(d[0])
	}
	return "[" + strings.Join(list, ",") + "]"
}
