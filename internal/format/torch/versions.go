package torch

// versionSigns are what tells a snapshot's PyTorch version, which no file states.
type versionSigns struct {
	history     bool // blocks with a history instead of frames
	annotations bool // external_annotations
	context     bool // compile_context on events
	metadata    bool // user_metadata on events
	maxRound    bool // max_round_threshold among the settings
	host        bool // host_segments or host_traces
}

// versions is the range of PyTorch versions that write these fields; empty where no event could
// show the difference.
func (s versionSigns) versions(b *torchBuilder) string {
	events := b.rows.n > 0
	switch {
	case s.host:
		return "2.14 or later"
	case s.maxRound:
		return "2.12 to 2.14"
	case s.metadata:
		return "2.10 to 2.12"
	case s.context:
		return "2.9"
	case s.history:
		return "2.0 or older"
	case events && b.rows.untimed:
		return "2.2 or older"
	case events && !s.annotations:
		return "2.3 to 2.5"
	case events:
		return "2.6 to 2.8"
	}
	return ""
}
