package usage

// Rise is what each stack held at a moment beyond what it held at an earlier one. A stack that holds less is left out. The figures
// of a sample at both moments are of the same blocks where these are alive at both, so the error is that of the later one at most.
func Rise(h *History, from, to Moment) []Use {
	before := map[uint32]Use{}
	for _, use := range h.Held(from) {
		before[use.Stack] = use
	}
	var rise []Use
	for _, use := range h.Held(to) {
		was := before[use.Stack]
		if use.Bytes <= was.Bytes {
			continue
		}
		use.Variance *= float64(use.Bytes-was.Bytes) / float64(use.Bytes)
		use.Bytes -= was.Bytes
		use.Blocks -= min(was.Blocks, use.Blocks)
		rise = append(rise, use)
	}
	return rise
}
