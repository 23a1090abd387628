package mem

import (
	"fmt"
	"strings"
)

// AllocConf is the environment variable that holds the settings of PyTorch's allocator, in every version.
const AllocConf = "PYTORCH_CUDA_ALLOC_CONF"

// Replayer replays a device's trace under other settings of its allocator.
type Replayer interface {
	// Advise says which settings would have served the device's last request that failed; nil: none failed, or the
	// trace cannot be replayed.
	Advise(s *AllocatorSnapshot, device int) *Advice
}

// Advice says which allocator settings would have served a request that ran out of memory, each
// verified by replaying the trace up to it. Figures are replayed.
type Advice struct {
	Event    int   `json:"event" doc:"The event of the request."`
	Asked    Bytes `json:"asked_bytes" doc:"Bytes that were asked for."`
	Capacity Bytes `json:"capacity_bytes" doc:"Bytes that the allocator had on the device then."` // that the allocator had on the device then
	// Limited says that the device had room: a memory limit was set, of which only bounds are known. The
	// lower bound is Capacity.
	Limited bool `json:"memory_limit" doc:"Whether the device had room: a memory limit was set, of which capacity_bytes is the lower bound."`
	// Exact says that the model places every block where the record has it; Reproduced, that it runs out
	// of memory at this very event under the recorded settings.
	Exact      bool `json:"exact" doc:"Whether the model places every block where the record has it."`
	Reproduced bool `json:"reproduced" doc:"Whether it runs out of memory at this very event under the recorded settings."`
	// Hopeless says that no setting can do: what is in use, in one piece, and the request are Lacking bytes
	// more than there are.
	Hopeless bool  `json:"hopeless" doc:"Whether no setting can do."`
	Lacking  Bytes `json:"lacking_bytes,omitempty" doc:"Where none can: bytes by which what is in use, in one piece, and the request are more than there are."`
	// Needed is the least capacity that serves the request under the recorded settings.
	Needed Bytes       `json:"needed_bytes" doc:"The least capacity that serves the request under the recorded settings, in bytes."`
	Tries  []AdviceTry `json:"tries" doc:"The settings that were tried, those that avoid it first, the simplest first."` // those that avoid it first, the simplest first
}

// AdviceTry is one line of settings and what it led to.
type AdviceTry struct {
	AllocConf string `json:"alloc_conf" doc:"The settings, as PYTORCH_CUDA_ALLOC_CONF has them."`
	Avoids    bool   `json:"avoids" doc:"Whether they avoid it, in every order in which addresses may turn out."` // in every order in which addresses may turn out
	// Depends says that it avoids it in some of those orders only.
	Depends  bool  `json:"depends_on_addresses,omitempty" doc:"Whether they avoid it in some of those orders only."`
	Reserved Bytes `json:"peak_reserved_bytes" doc:"Bytes reserved at most, up to the request."` // up to the request
	Calls    int64 `json:"segment_calls" doc:"How often the device was asked for segments or given them back."`
	Retries  int64 `json:"alloc_retries" doc:"How often the cache had to be emptied first."`
}

// LeastSpare is the part of the capacity, as its divisor, that settings must leave: with less the next request fails.
const LeastSpare = 100

// Narrow says that settings serve the request, and leave hardly anything.
func (a *Advice) Narrow(t *AdviceTry) bool { return a.Capacity-t.Reserved < a.Capacity/LeastSpare }

// Best is the simplest settings that avoid it, with room to spare if any do; nil: none do.
func (a *Advice) Best() *AdviceTry {
	if len(a.Tries) > 0 && a.Tries[0].Avoids {
		return &a.Tries[0]
	}
	return nil
}

// Text is the advice in words.
func (a *Advice) Text() string {
	var text strings.Builder
	if a.Limited {
		fmt.Fprintf(&text, "The device had room, so this holds if a limit of %v was reached, which the file does not say. ",
			a.Capacity)
	}
	switch best := a.Best(); {
	case a.Hopeless:
		fmt.Fprintf(&text,
			"No allocator setting avoids it (verified by replay): even without any fragmentation, %v are missing.", a.Lacking)
	case best != nil && a.Narrow(best):
		fmt.Fprintf(&text, "`%s=%s` serves this request (verified by replay), but leaves only %v of the %v that there "+
			"were: too little to go on.",
			AllocConf, best.AllocConf, a.Capacity-best.Reserved, a.Capacity)
	case best != nil:
		fmt.Fprintf(&text, "`%s=%s` avoids it (verified by replay): up to there it reserves %v of the %v that there were.",
			AllocConf, best.AllocConf, best.Reserved, a.Capacity)
	default:
		fmt.Fprintf(&text, "None of %d settings tried by replay avoids it.", len(a.Tries))
	}
	if a.Needed > a.Capacity {
		fmt.Fprintf(&text, " Under the settings it ran with, %v more memory would have been enough for this request.",
			a.Needed-a.Capacity)
	}
	if !a.Exact || !a.Reproduced {
		text.WriteString(" The replay is not exact here, so this is an estimate.")
	}
	return text.String()
}
