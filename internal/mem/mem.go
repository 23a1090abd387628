// Package mem holds the nouns of hightide: what a recording of a run says about memory.
//
//	wire, shm, format ──▶ Frame ──▶ Run ──▶ usage, analyze, format, report, web
//	  (decoders)        (one fact)  (all of them, in columns)
//
// A recording is a sequence of Frames, each a fact that stands on its own once the definitions
// before it are known. A Run is what they add up to (see Run.Add). Everything here is a plain
// value: no file, network, clock, environment or log is touched. Sizes are integers in bytes,
// times are nanoseconds of the host's monotonic clock; an observation that was not made is absent,
// never zero. Start reading at Run in run.go, then the frames in frame.go.
package mem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size or a difference of sizes; negative means freed.
type Bytes int64

const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// String writes b for people, with binary prefixes and about three significant digits: "1.27 GiB".
func (b Bytes) String() string {
	sign, magnitude := "", float64(b)
	if b < 0 {
		sign, magnitude = "-", -magnitude
	}
	for _, unit := range []struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if magnitude < float64(unit.size)*0.9995 {
			continue
		}
		value := magnitude / float64(unit.size)
		decimals := 2
		if value >= 99.95 {
			decimals = 0
		} else if value >= 9.995 {
			decimals = 1
		}
		return sign + strconv.FormatFloat(value, 'f', decimals, 64) + " " + unit.name
	}
	return sign + strconv.FormatFloat(magnitude, 'f', 0, 64) + " B"
}

// Rounded is a rate or an estimate in whole bytes.
func Rounded(bytes float64) Bytes { return Bytes(math.Round(bytes)) }

// Label says where a figure comes from. Every figure shown to a person carries one.
type Label string

const (
	Measured  Label = "measured"  // observed on the real thing
	Sampled   Label = "sampled"   // measured on a random sample; carries an error
	Imagined  Label = "imagined"  // observed on an imaginary GPU
	Replayed  Label = "replayed"  // recomputed by an allocator model
	Estimated Label = "estimated" // computed otherwise; carries an error
)

// Unit says what an integer counts.
type Unit string

const (
	UnitBytes       Unit = "bytes"
	UnitNanoseconds Unit = "ns"
	UnitCount       Unit = "count"
	UnitMilli       Unit = "milli"   // thousandths, as in milli-percent-free ratios: 1000 is one whole
	UnitCelsius     Unit = "celsius" // degrees
	UnitMilliwatts  Unit = "mW"
	UnitEvents      Unit = "event" // the number of an event in an allocator's trace: an axis, not a size
)

// Phase names what a training is doing. Frameworks map their own words to these; a user's own
// span keeps its name in Span.Name with phase "user".
type Phase string

const (
	PhaseNone       Phase = ""
	PhaseStep       Phase = "step"
	PhaseData       Phase = "data"
	PhaseForward    Phase = "forward"
	PhaseBackward   Phase = "backward"
	PhaseOptimizer  Phase = "optimizer"
	PhaseEvaluation Phase = "evaluation"
	PhaseCheckpoint Phase = "checkpoint"
	PhaseModule     Phase = "module"
	PhaseUser       Phase = "user"
)

// Phases lists the phases in the order of their numbers on the channel (enum ht_phase).
var Phases = []Phase{PhaseNone, PhaseStep, PhaseData, PhaseForward, PhaseBackward, PhaseOptimizer,
	PhaseEvaluation, PhaseCheckpoint, PhaseModule, PhaseUser}

// MomentText says when something was: "in backward of step 2"; "" where that is not known. Step is how many steps were
// completed before, done how many there were in all; 0: not known.
func MomentText(phase Phase, step Optional, done int64) string {
	n, stepped := step.Get()
	between := phase == PhaseEvaluation || phase == PhaseCheckpoint
	switch {
	case between && stepped && n > 0:
		return fmt.Sprintf("in the %s after step %d", phase, n)
	case between && stepped:
		return fmt.Sprintf("in the %s before step 1", phase)
	case phase != "" && phase != PhaseStep && stepped:
		return fmt.Sprintf("in %s of step %d", phase, n+1)
	case stepped && n > 0 && n == done: // another one may have begun: nothing tells
		return fmt.Sprintf("after step %d", n)
	case stepped:
		return fmt.Sprintf("in step %d", n+1)
	case phase != "":
		return fmt.Sprintf("in %s", phase)
	}
	return ""
}

// Optional is an integer that may not have been observed. The zero value is absent.
type Optional struct {
	value int64
	known bool
}

// Some is an observed value; zero is a value like any other.
func Some(value int64) Optional { return Optional{value, true} }

// Get returns the value and whether it was observed.
func (o Optional) Get() (int64, bool) { return o.value, o.known }

// Or returns the value, or otherwise where it is absent.
func (o Optional) Or(otherwise int64) int64 {
	if o.known {
		return o.value
	}
	return otherwise
}

// Known says whether the value was observed.
func (o Optional) Known() bool { return o.known }

// Raise keeps the larger of two observations; an absent one counts for nothing.
func (o *Optional) Raise(value Optional) {
	if v, ok := value.Get(); ok && (!o.known || v > o.value) {
		*o = value
	}
}

// Plus adds what is known; absent plus absent is absent.
func (o Optional) Plus(value Optional) Optional {
	if v, ok := value.Get(); ok {
		return Some(o.Or(0) + v)
	}
	return o
}

// MarshalJSON writes null for an absent value; with `omitzero` the field is left out.
func (o Optional) MarshalJSON() ([]byte, error) {
	if !o.known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, o.value, 10), nil
}

// UnmarshalJSON reads null as absent.
func (o *Optional) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = Optional{}
		return nil
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return err
	}
	*o = Some(value)
	return nil
}

var units = map[string]float64{"b": 1, "bytes": 1,
	"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

// MaxSize is more than any machine has: 64 PiB. A file that says more is wrong.
const MaxSize = Bytes(1) << 56

// ParseBytes reads "24GiB", "23.5 GiB", "80G" (binary), "80GB" (decimal) or "512B", in letters of any case. A number
// alone is refused: nobody who writes 10 means ten bytes.
func ParseBytes(text string) (Bytes, error) {
	s := strings.TrimSpace(strings.ToLower(text))
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := units[strings.TrimSpace(s[len(number):])]
	value, err := strconv.ParseFloat(number, 64)
	if err == nil && number == s && s != "" {
		return 0, fmt.Errorf("%q has no unit; write it as %sMiB or %sGiB", text, s, s)
	}
	if err != nil || !ok || value < 0 || math.IsNaN(value) || value*unit > 1<<60 {
		return 0, fmt.Errorf("%q is not a size; write it as 24GiB", text)
	}
	return Bytes(value * unit), nil
}

// Tally sums what belongs together under one key. The zero value is empty.
type Tally[K comparable, V any] struct {
	All   []V // in the order in which their keys were first met
	index map[K]int
}

// At is the sum under a key, zero at first sight; the pointer holds until the next call.
func (t *Tally[K, V]) At(key K) *V {
	i, ok := t.index[key]
	if !ok {
		if t.index == nil {
			t.index = map[K]int{}
		}
		i = len(t.All)
		t.index[key] = i
		t.All = append(t.All, *new(V))
	}
	return &t.All[i]
}
