package observe

import (
	"strconv"

	"hightide/internal/launch"
	"hightide/internal/system"
)

// procAlive says whether the process of that identity still runs; a zombie does not.
func procAlive(pid int, start uint64) bool {
	fields := launch.StatFields(pid)
	return len(fields) >= 20 && fields[0] != "Z" && fields[0] != "X" && fields[19] == strconv.FormatUint(start, 10)
}

// ticksToMono turns clock ticks since boot into CLOCK_MONOTONIC ns. The ticks count time asleep
// too, which the monotonic clock leaves out.
func ticksToMono(ticks uint64) int64 {
	asleep := system.SinceBoot() - system.Monotonic()
	return int64(ticks)*(1e9/userHZ) - asleep
}

const userHZ = 100 // clock ticks a second, on every Linux we build for
