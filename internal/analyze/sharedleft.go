package analyze

import (
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// leastLeft is how much of /dev/shm must be left behind to be told.
const leastLeft = 16 * mem.MiB

// sharedLeft says which blocks of /dev/shm nobody uses any more: their memory stays until somebody removes them, and
// no process has it.
func sharedLeft(in *Input, r *report.Report) {
	for _, e := range in.Run.Events {
		if e.Kind != mem.EventSharedLeft {
			continue
		}
		before, _ := strconv.ParseInt(e.Facts["before_bytes"], 10, 64)
		if fresh := mem.Bytes(e.Bytes.Or(0)); fresh >= leastLeft {
			joined(r, leftFinding(fresh, e.Facts["blocks"], e.Facts["largest"], "made or written to while the program ran",
				"Call unlink() of each multiprocessing.shared_memory.SharedMemory when it is done, in one process; close() "+
					"alone keeps its memory. A program that is killed leaves its blocks behind."))
		}
		if mem.Bytes(before) >= leastLeft {
			r.Findings = append(r.Findings, leftFinding(mem.Bytes(before), e.Facts["before_blocks"], e.Facts["before_largest"],
				"there before the program began",
				"They are most likely left by programs that were killed. Look at them with ls -l /dev/shm, and remove those "+
					"that nothing will open by name any more."))
		}
	}
}

// joined adds a finding, to that of the growth of shared memory where there is one.
func joined(r *report.Report, left report.Finding) {
	for i := range r.Findings {
		if grows := &r.Findings[i]; grows.Kind == report.KindResource && strings.HasPrefix(grows.Title, sharedMemory) {
			grows.Text += " " + left.Text
			grows.Bytes = left.Bytes
			return
		}
	}
	r.Findings = append(r.Findings, left)
}

func leftFinding(bytes mem.Bytes, blocks, largest, when, advice string) report.Finding {
	n, _ := strconv.ParseInt(blocks, 10, 64)
	return report.Finding{Kind: report.KindResource, Severity: report.Warning, Label: mem.Measured,
		Bytes: mem.Some(int64(bytes)), Advice: advice,
		Title: fmt.Sprintf("%v of /dev/shm are left that no process uses", bytes),
		Text: fmt.Sprintf("%v of memory (measured at the end) are in %s of /dev/shm, %s, that no process which could be "+
			"looked at maps or has open. The largest is `%s`. They take memory until they are removed.",
			bytes, report.Counted(n, "block"), when, largest)}
}
