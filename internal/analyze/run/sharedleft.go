package run

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// leastLeft is how much of /dev/shm must be left behind to be told.
const leastLeft = 16 * mem.MiB

// sharedLeft says which blocks of /dev/shm nobody uses any more: their memory stays until somebody removes them, and
// no process has it. Where shared memory grows, that finding tells of the blocks of the run.
func sharedLeft(in *Input) (r report.Part) {
	if !slices.ContainsFunc(in.ending, func(d deadline) bool { return d.name == sharedMemory }) {
		r.Findings = append(r.Findings, in.sharedLeft()...)
	}
	for _, e := range in.Run.Events {
		before := mem.Bytes(e.Numbers["before_bytes"])
		if e.Kind == mem.EventSharedLeft && before >= leastLeft {
			r.Findings = append(r.Findings, leftFinding(before, e.Numbers["before_blocks"], e.Facts["before_largest"],
				"there before the program began",
				"They are most likely left by programs that were killed. Look at them with ls -l /dev/shm, and remove those "+
					"that nothing will open by name any more."))
		}
	}
	return r
}

// sharedLeft are the blocks that the run left.
func (in *Input) sharedLeft() (found []report.Finding) {
	for _, e := range in.Run.Events {
		if fresh := mem.Bytes(e.Bytes.Or(0)); e.Kind == mem.EventSharedLeft && fresh >= leastLeft {
			found = append(found, leftFinding(fresh, e.Numbers["blocks"], e.Facts["largest"],
				"made or written to while the program ran",
				"Remove each when it is done: a file, or by unlink() a multiprocessing.shared_memory.SharedMemory, in one "+
					"process; close() alone keeps its memory. A program that is killed leaves its blocks behind."))
		}
	}
	return found
}

func leftFinding(bytes mem.Bytes, blocks int64, largest, when, advice string) report.Finding {
	return report.Finding{Kind: report.KindResource, Severity: report.Warning, Label: mem.Measured,
		Bytes: mem.Some(int64(bytes)), Advice: advice,
		Title: fmt.Sprintf("%v of /dev/shm are left that no process uses", bytes),
		Text: fmt.Sprintf("%v of memory (measured at the end) are in %s of /dev/shm, %s, that no process which could be "+
			"looked at maps or has open. The largest is `%s`. They take memory until they are removed.",
			bytes, report.Counted(blocks, "block"), when, largest)}
}

// Names of supplies that are told apart.
const (
	sharedMemory = "shared memory (/dev/shm)"
	addressSpace = "address space"
)
