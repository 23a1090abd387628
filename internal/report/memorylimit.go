package report

import "hightide/internal/mem"

// MemoryLimit is how a program went that was allowed so much host memory and no more.
type MemoryLimit struct {
	Limit   int64        `json:"limit_bytes" doc:"What it and all that it started were allowed, in bytes."`
	Verdict string       `json:"verdict" enum:"ran,in part,stopped,killed,failed,unknown" doc:"ran: to its end; in part: so, but processes of it were killed for want of memory; stopped: it stayed within the limit until it was stopped as asked; killed: for want of memory; failed: for another reason, or one that is not known; unknown: its end was not seen."`
	By      string       `json:"by" enum:"kernel,watching" doc:"Who held it to that: the kernel, in a control group of its own, or hightide, which looked at every interval."`
	Why     string       `json:"why,omitempty" doc:"Why the kernel did not."`
	Reached mem.Optional `json:"reached,omitzero" doc:"How often the kernel found it at the limit. It took back pages of files each time, or ended a process."`
	Highest mem.Optional `json:"highest_bytes,omitzero" doc:"Where it was watched: the most that was seen of what the kernel cannot take back, in bytes."`
}
