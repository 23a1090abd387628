package growth

import (
	"cmp"
	"math"
	"slices"
)

// merged puts the same cause in several processes together, as in every rank or every worker, or on several devices.
// What grows on the host and what grows on a device are never one.
func (in *Found) merged(causes []growing) []growing {
	type key struct {
		source  string
		file    string
		line    int
		holder  string
		minutes bool
	}
	alike := map[key][]growing{}
	var keys []key
	for _, g := range causes {
		at, holder := g.where(), ""
		if g.holder != nil {
			holder = g.holder.Name
		}
		k := key{g.source, at.File, at.Line, holder, g.minutes}
		if alike[k] == nil {
			keys = append(keys, k)
		}
		alike[k] = append(alike[k], g)
	}
	var out []growing
	for _, k := range keys {
		out = append(out, in.oneOf(alike[k]))
	}
	return out
}

// oneOf is a cause in several processes as one: what those have together that ran at once.
func (in *Found) oneOf(all []growing) growing {
	if len(all) == 1 {
		return all[0]
	}
	at, others := in.AtOnce(len(all), func(i int) (uint32, float64) { return all[i].process, all[i].slope })
	o := all[at[0]]
	for _, i := range at[1:] {
		g := &all[i]
		o.slope, o.kept = o.slope+g.slope, o.kept+g.kept
		o.half, o.keptHalf = math.Hypot(o.half, g.half), math.Hypot(o.keptHalf, g.keptHalf)
		if g.holder != nil {
			both := *o.holder
			both.PerStep += g.holder.PerStep
			o.holder = &both
		}
		o.shares = slices.Concat(o.shares, g.shares)
	}
	o.shares, o.others = in.passing(o.shares, others), len(others)
	o.lines = nil
	for _, g := range all { // those of other times are explained too
		o.lines = append(o.lines, g.lines...)
	}
	slices.SortStableFunc(o.lines, func(a, b growingLine) int { return cmp.Compare(b.Slope, a.Slope) })
	return o
}

// passing notes in which shares others of the same role grew so at other times.
func (in *Found) passing(shares []share, others []uint32) []share {
	role := func(id uint32) string {
		if p := in.Run.Process(id); p != nil {
			return p.Role
		}
		return ""
	}
	shares = slices.Clone(shares)
	for i := range shares {
		s := &shares[i]
		s.passing = s.passing || s.process != in.Leader &&
			slices.ContainsFunc(others, func(other uint32) bool { return role(other) == role(s.process) })
	}
	return shares
}

// sharesAtOnce are the shares of processes that ran at once.
func (in *Found) sharesAtOnce(all []share) []share {
	if len(all) == 0 {
		return nil
	}
	at, others := in.AtOnce(len(all), func(i int) (uint32, float64) { return all[i].process, all[i].slope })
	now := make([]share, 0, len(at))
	for _, i := range at {
		now = append(now, all[i])
	}
	return in.passing(now, others)
}
