package usage

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// FromBefore compares what was there before a trace, and of which no stack tells, with the gradients of the trace.
// Parameters, and the states that an optimizer keeps of each, have their sizes.
type FromBefore struct {
	Bytes mem.Bytes // that were there before
	Like  mem.Bytes // of these, one block for each gradient of the same size
}

// mostly is how much of the bytes must agree, in percent.
const mostly = 90

// Parameters says that each block has its gradient: then they are the parameters, and nothing else is among them.
func (b FromBefore) Parameters() bool { return b.Like > 0 && b.Like*100 >= b.Bytes*mostly }

// Times is how many blocks of each size there are for a gradient, as 3 where an optimizer keeps two states; 0:
// gradients do not tell.
func (b FromBefore) Times() int {
	if b.Like == 0 {
		return 0
	}
	times := int((b.Bytes + b.Like/2) / b.Like)
	off := b.Bytes - mem.Bytes(times)*b.Like
	if max(off, -off)*100 > b.Bytes*(100-mostly) {
		return 0
	}
	return times
}

// FromBefore is that of the trace whose blocks are sorted.
func (s *Categories) FromBefore() FromBefore { return s.before() }

func (s *Categories) compareBefore() FromBefore {
	var b FromBefore
	before := map[mem.Bytes]int{}
	born := 0 // the first that the trace allocates
	for ; born < s.d.Len() && s.d.From[born] < 0; born++ {
		if s.byRules(born) == BeforeTrace {
			b.Bytes += s.d.Bytes[born]
			before[s.d.RequestedOf(born)]++
		}
	}
	if len(before) == 0 { // the rest is looked at only for what has their sizes
		return b
	}
	gradients := map[mem.Bytes][]int32{} // by size: 1 + event for each that comes, the negative for each that goes
	for i := born; i < s.d.Len(); i++ {
		size := s.d.RequestedOf(i)
		if before[size] == 0 || s.byRules(i) != "gradients" {
			continue
		}
		gradients[size] = append(gradients[size], s.d.From[i]+1)
		if to := s.d.To[i]; to != int32(Never) {
			gradients[size] = append(gradients[size], -to-1)
		}
	}
	for size, n := range before {
		b.Like += mem.Bytes(min(n, mostAtOnce(gradients[size]))) * size
	}
	return b
}

// mostAtOnce is how many of what comes and goes are there together at most.
func mostAtOnce(events []int32) (most int) {
	slices.SortFunc(events, func(p, q int32) int { return cmp.Or(cmp.Compare(max(p, -p), max(q, -q)), cmp.Compare(p, q)) })
	now := 0
	for _, e := range events {
		if e > 0 {
			now++
		} else {
			now--
		}
		most = max(most, now)
	}
	return most
}
