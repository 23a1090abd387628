package sampler

// What a program cannot do without: pages that are of no file, and what it shares. The kernel takes back pages of files
// where memory is short, and reads them again.

// Keeps is what all processes together have of such pages, in bytes, as of the last tick: what they share counts in
// each. A process whose kinds of memory are not known counts with all that it has resident.
func (s *Sampler) Keeps() (bytes int64) {
	for _, p := range s.tree.live {
		if !p.partsKnown {
			bytes += p.Usage.RSS
			continue
		}
		bytes += p.parts.anon + p.parts.shared
	}
	return bytes + s.swapped()
}

// KeepsTogether counts what they share once, which takes the kernel up to 50 ms a GiB. A process whose pages may not be
// looked at counts as in Keeps.
func (s *Sampler) KeepsTogether() (bytes int64) {
	for _, p := range s.tree.live {
		pss, _, err := p.proportional()
		if err != nil {
			pss = p.parts
		}
		bytes += pss.anon + pss.shared
	}
	return bytes + s.swapped()
}

func (s *Sampler) swapped() (bytes int64) {
	for _, p := range s.tree.live {
		bytes += p.Usage.Swap.Or(0)
	}
	return bytes
}
