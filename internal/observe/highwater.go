package observe

import (
	"syscall"

	"hightide/internal/mem"
)

// highWater gives the kernel's high-water mark to the process whose it is. On the command's end the kernel tells
// the largest one of the command and of all below it that somebody waited for, not which: where it is more than any
// was seen with, it belongs to one that ended between two looks. One that an agent watched to an orderly end has told
// its own mark, so of the others it is the largest.
func (r *Recorder) highWater(main *process, kernel int64) {
	if kernel <= ownMaxRSS() {
		return // it starts with what we had when the command was made of us, before it became its own program
	}
	if !main.bye && r.isLargest(main) {
		main.raise(kernel)
		return
	}
	var owner *process
	for _, p := range r.order {
		if p.MaxRSS.Or(0) >= kernel {
			return
		}
		if p.gone && !p.bye && (owner == nil || p.MaxRSS.Or(0) > owner.MaxRSS.Or(0)) {
			owner = p
		}
	}
	if owner != nil {
		owner.raise(kernel)
	}
}

func (p *process) raise(mark int64) {
	p.MaxRSS.Raise(mem.Some(mark))
	p.dirty = true
}

// ownMaxRSS is the most that hightide itself has had resident, in bytes.
func ownMaxRSS() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss << 10
}

// isLargest says whether no other process was seen to take more.
func (r *Recorder) isLargest(p *process) bool {
	for _, other := range r.order {
		if other != p && other.MaxRSS.Or(0) >= p.MaxRSS.Or(0) {
			return false
		}
	}
	return true
}
