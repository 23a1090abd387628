package tune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"hightide/internal/mem"
)

// conclude sorts the points and recommends one.
func (s *search) conclude() {
	r := s.result
	if s.Host > 0 {
		s.merge()
	}
	r.Points = slices.SortedFunc(maps.Values(s.ran), func(a, b *Point) int {
		return cmp.Or(cheaper(a, b), cmp.Compare(a.What, b.What))
	})
	lowest := int64(-1)
	for _, p := range r.Points {
		if used, ok := p.Verdict.Used.Get(); ok && p.Verdict.Fits() && (lowest < 0 || used < lowest) {
			p.Best, lowest = true, used
		}
	}
	best := s.found()
	if s.Host == 0 {
		best = s.pick()
	}
	if best != nil && r.Goal == fitGoal && best.Verdict.Verdict == mem.VerdictTight {
		r.Notes = append(r.Notes, fmt.Sprintf("%s leaves %v, less than the figures are sure of: the fit is tight", best.What,
			mem.Bytes(best.Verdict.Headroom.Or(0))))
	}
	if best != nil && best.Verdict.Verdict == mem.VerdictConditional {
		r.Notes = append(r.Notes, "it fits on a condition: hightide imagine --plan says on which")
	}
	if told := cmp.Or(best, r.Smallest); told != nil && told.left != "" {
		r.Notes = append(r.Notes, told.left)
	}
	if best != nil && best.Within.Known() {
		r.Notes = append(r.Notes, fmt.Sprintf("%s leaves %v free at its peak, and ran in %v as well: the allocator "+
			"gives back what it keeps idle where memory is short", best.What,
			mem.Bytes(best.Verdict.Headroom.Or(0)), mem.Bytes(best.Within.Or(0))))
	}
	if best != nil {
		r.Recommended, r.Verdict, best.Chosen = best.Plan, best.Verdict.Verdict, true
	}
}

// merge has the points of runs apart in the place of others of the same plan, which were not looked at for the host.
func (s *search) merge() {
	for _, p := range s.ran {
		p.Enough = false
	}
	maps.Copy(s.ran, s.apart)
}
