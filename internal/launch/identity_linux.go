package launch

import (
	"strconv"

	"hightide/internal/system"
)

// Identity is when a process began, in clock ticks since boot, and its parent; false: there is none of that number.
func Identity(pid int) (start uint64, parent int, ok bool) {
	fields := StatFields(pid)
	if len(fields) <= fieldStart {
		return 0, 0, false
	}
	start, _ = strconv.ParseUint(fields[fieldStart], 10, 64)
	parent, _ = strconv.Atoi(fields[fieldParent])
	return start, parent, true
}

// Alive says whether the process of that identity still runs; a zombie does not. One that does not know when it began
// says 0.
func Alive(pid int, start uint64) bool {
	fields := StatFields(pid)
	return len(fields) > fieldStart && fields[fieldState] != "Z" && fields[fieldState] != "X" &&
		(start == 0 || fields[fieldStart] == strconv.FormatUint(start, 10))
}

// Began is the recording's clock in ns when a process of that identity began. The ticks count time asleep, too, which
// that clock leaves out.
func Began(start uint64) int64 {
	asleep := system.SinceBoot() - system.Monotonic()
	return int64(start)*(1e9/userHZ) - asleep
}

const userHZ = 100 // clock ticks a second, on every Linux we build for
