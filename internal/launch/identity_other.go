//go:build !linux

package launch

import (
	"hightide/internal/processes"
	"hightide/internal/processes/here"
	"hightide/internal/system"
)

// Identity is when a process began, in ms since 1970, and its parent; false: there is none of that number.
func Identity(pid int) (start uint64, parent int, ok bool) {
	p, ok := processes.Find(here.Table(), pid)
	return p.Start, p.Parent, ok
}

// Alive says whether the process of that identity still runs. One that does not know when it began says 0.
func Alive(pid int, start uint64) bool {
	began, _, ok := Identity(pid)
	return ok && (start == 0 || began == start)
}

// Began is the recording's clock in ns when a process of that identity began.
func Began(start uint64) int64 { return int64(start)*1e6 - system.WallClock() + system.Monotonic() }
