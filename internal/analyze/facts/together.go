package facts

import "slices"

// AtOnce are those of n amounts whose processes ran at once and come to most together, by number, and the processes of the
// rest: a DataLoader starts new workers for each epoch, and what one of them kept went with it.
func (in *Facts) AtOnce(n int, of func(i int) (process uint32, amount float64)) (at []int, others []uint32) {
	var most float64
	for i := range n {
		process, _ := of(i)
		from, to := in.life(process)
		var now []int
		var sum float64
		for j := range n {
			p, amount := of(j)
			if begin, end := in.life(p); i == j || begin <= from+(to-from)/2 && from+(to-from)/2 < end {
				now, sum = append(now, j), sum+amount
			}
		}
		if at == nil || sum > most {
			at, most = now, sum
		}
	}
	for i := range n {
		process, _ := of(i)
		if !slices.Contains(at, i) && !slices.Contains(others, process) {
			others = append(others, process)
		}
	}
	return at, others
}

// life is when a process began and ended, as far as it was seen.
func (in *Facts) life(process uint32) (from, to int64) {
	p := in.Run.Process(process)
	if p == nil {
		return in.Start, in.End
	}
	return max(p.Start, in.Start), p.End.Or(in.End)
}
