package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// UpperFirst begins a sentence.
func UpperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// LowerFirst goes on with a sentence after a comma or a colon.
func LowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// TitleLength is how long the title of a finding may be that is a text of the recording.
const TitleLength = 120

// FirstLine is the first line of a text, without its full stop and not longer than limit.
func FirstLine(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit-1]) + "…"
	}
	return strings.TrimSuffix(s, ".")
}

// AfterEvent is "after event 1,000", "at the beginning" before the first.
func AfterEvent(event int) string {
	if event < 0 {
		return "at the beginning"
	}
	return "after event " + Count(int64(event))
}

// Count writes an integer with its thousands apart.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// About writes a number with two significant digits and thousands apart: "7,400".
func About(v float64) string {
	if v > 1e15 {
		return "more than 10^15"
	}
	unit := math.Pow(10, max(math.Floor(math.Log10(max(v, 1)))-1, 0))
	return Count(int64(math.Round(v/unit) * unit))
}

// Counted is "1 step", "3 steps", "2 processes".
func Counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") {
		one += "e"
	}
	return Count(n) + " " + one + "s"
}

// Duration writes nanoseconds for people, with about three digits: "1.53 s", "4 min 12 s".
func Duration(ns int64) string {
	switch d := time.Duration(ns); {
	case d < 0:
		return "-" + Duration(-max(ns, -math.MaxInt64))
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	case d < 100*time.Second:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// signal is one that ends programs: its name on Linux, and what it most often means.
type signal struct{ name, means string }

var signals = map[int64]signal{
	1: {"SIGHUP", "its terminal went away"},
	2: {"SIGINT", "somebody interrupted it, as Ctrl-C does"},
	3: {"SIGQUIT", "somebody interrupted it, as Ctrl-\\ does"},
	4: {"SIGILL", "an instruction that this machine's processor lacks"},
	6: {"SIGABRT", "it ended itself, as C++ does over an exception that nobody catches or a failed assertion; its " +
		"last words say which"},
	7: {"SIGBUS", "a file or a shared memory that it had mapped has no room left, often /dev/shm"},
	8: {"SIGFPE", "a division by zero in compiled code"},
	9: {"SIGKILL", "most often the kernel, for lack of host memory, or a batch system over its limit"},
	11: {"SIGSEGV",
		"compiled code went to memory that is not its own: a fault in an extension, or a stack that overflowed"},
	13: {"SIGPIPE", "whoever read its output went away"},
	15: {"SIGTERM", "somebody asked it to end, as timeout and batch systems do"},
	24: {"SIGXCPU", "its limit of processor time is used up"},
	25: {"SIGXFSZ", "a file grew over its limit"},
}

// SignalText is a signal's name with what it most often means: "SIGKILL: most often the kernel, …".
func SignalText(number int64) string {
	if s, ok := signals[number]; ok {
		return s.name + ": " + s.means
	}
	return fmt.Sprintf("signal %d", number)
}

// KnownSignal says whether SignalText has more than the number to say.
func KnownSignal(number int64) bool {
	_, ok := signals[number]
	return ok
}

// SignalName is "SIGKILL", "signal 35" for one without a name of its own.
func SignalName(number int64) string {
	if s, ok := signals[number]; ok {
		return s.name
	}
	return fmt.Sprintf("signal %d", number)
}

// Times is "once", "3 times".
func Times(n int64) string {
	if n == 1 {
		return "once"
	}
	return Count(n) + " times"
}
