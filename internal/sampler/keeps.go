package sampler

// What a program cannot do without: pages that are of no file, and what it shares. The kernel takes back pages of files
// where memory is short, and reads them again.

// Keeps is what all processes together have of such pages, in bytes, as of the last tick: what they share counts in
// each. most is that of the process that has most. One whose kinds of memory are not known counts with all that it has
// resident.
func (s *Sampler) Keeps() (bytes, most int64) {
	for _, p := range s.tree.live {
		keeps := p.Usage.RSS
		if p.partsKnown {
			keeps = p.parts.anon + p.parts.shared
		}
		keeps += p.Usage.Swap.Or(0)
		bytes, most = bytes+keeps, max(most, keeps)
	}
	return bytes, most
}

// KeepsTogether counts what they share once, which takes the kernel up to 50 ms a GiB. A process whose pages may not be
// looked at counts as in Keeps, one that has ended meanwhile not at all.
func (s *Sampler) KeepsTogether() (bytes int64) {
	for _, p := range s.tree.live {
		pss, _, err := p.proportional()
		if err != nil && !p.gone(err) {
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
