package engine

import (
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Summary is what `run --json` prints; docs/formats/json.md documents it. What was not observed is
// absent, never 0.
type Summary struct {
	Version   int              `json:"version"`
	RunID     string           `json:"run_id"`
	Name      string           `json:"name,omitempty"`
	ExitCode  mem.Optional     `json:"exit_code"` // null where a signal ended it
	Signal    mem.Optional     `json:"signal,omitzero"`
	Duration  int64            `json:"duration_ns"`
	Steps     uint64           `json:"steps"`
	Peak      SummaryPeak      `json:"peak"`
	PerStep   mem.Optional     `json:"growth_bytes_per_step,omitzero"`
	StepTime  mem.Optional     `json:"step_time_ns,omitzero"`
	Findings  []report.Finding `json:"findings"`
	Dropped   uint64           `json:"dropped"`
	Label     mem.Label        `json:"label"`
	Complete  bool             `json:"complete"`
	Recording string           `json:"recording,omitempty"`
	HTML      string           `json:"html,omitempty"`
	Notes     []string         `json:"notes,omitempty"`
}

// SummaryPeak holds the high-water marks.
type SummaryPeak struct {
	HostRSS    mem.Optional `json:"host_rss_bytes,omitzero"`
	HostPSS    mem.Optional `json:"host_pss_bytes,omitzero"`
	Heap       mem.Optional `json:"heap_bytes,omitzero"`
	DeviceUsed mem.Optional `json:"device_used_bytes,omitzero"`
	Allocated  mem.Optional `json:"allocated_bytes,omitzero"`
	Reserved   mem.Optional `json:"reserved_bytes,omitzero"`
}

// Summary of a run that ended.
func (r *RunResult) Summary() Summary {
	s := Summary{
		Version: report.Version, RunID: r.ID, ExitCode: r.Outcome.ExitCode, Signal: r.Outcome.Signal,
		Findings: []report.Finding{}, Label: mem.Measured, Recording: r.File, HTML: r.HTML, Notes: r.Notes,
	}
	if r.Report == nil {
		return s
	}
	head := r.Report.Headline
	s.Name, s.Duration, s.Steps, s.Complete = r.Report.Run.Name, head.Duration, head.Steps, head.Complete
	s.Peak = SummaryPeak{head.Peak.HostRSS, head.Peak.HostPSS, head.Peak.Heap, head.Peak.DeviceUsed, head.Peak.Allocated, head.Peak.Reserved}
	s.PerStep, s.StepTime = head.Growth, head.StepTime
	s.Findings = append(s.Findings, r.Report.Findings...)
	s.Dropped, s.Label = r.Report.Dropped, head.Peak.Label
	s.Notes = append(s.Notes, r.Report.Notes...)
	return s
}
