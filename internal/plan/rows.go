package plan

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// row computes what one GPU has of a use.
func (f *facts) row(g *gpus.GPU) Row {
	n := float64(f.gpus())
	r := Row{GPU: g.Slug, Name: g.Name, Label: mem.Estimated, Total: g.Total, Price: g.Price * n, Source: g.PriceSource,
		Date: g.PriceDate}
	r.Budget = Estimate{cmp.Or(g.Lowest, g.Total), g.Total, g.Total}
	r.Budget.Low = min(r.Budget.Low, g.Total)
	if f.serves() {
		f.serve(&r, g)
	} else {
		f.run(&r, g)
	}
	r.Verdict = verdictOf(r.Room)
	if r.Note = f.against(g); r.Note != "" {
		r.Verdict = No
	}
	return r
}

// serve fills in what a server holds.
func (f *facts) serve(r *Row, g *gpus.GPU) {
	u := f.use.Utilization
	r.Budget = r.Budget.times(u, u, u)
	r.Parts = f.serveParts(g)
	left := r.Budget.minus(sum(r.Parts))
	one := f.sequence(f.seq())
	users := float64(f.use.Users)
	cache := one.times(users, users, users)
	r.Cache = &cache
	r.Room = left.minus(cache)
	if one.Low > 0 {
		low, high := float64(left.Low)/float64(one.High), float64(left.High)/float64(one.Low)
		r.Users = &Range{whole(low), whole(high)}
		const block = 16 // tokens that servers keep together
		tokens := float64(f.seq())
		r.Tokens = &Range{whole(low*tokens) / block * block, whole(high*tokens) / block * block}
	}
}

// run fills in what another use takes.
func (f *facts) run(r *Row, g *gpus.GPU) {
	fixed, each := f.fixedParts(g), f.batchParts()
	b := float64(f.batch())
	for i := range each {
		r.Parts = append(r.Parts, each[i])
		r.Parts[i].Estimate = each[i].times(b, b, b)
	}
	r.Parts = append(fixed, r.Parts...)
	if f.trains() {
		r.Parts = append(r.Parts, allocator(sum(r.Parts)))
	}
	r.Room = r.Budget.minus(sum(r.Parts))
	budget, one := r.Budget, sum(each)
	if f.trains() {
		budget = budget.times(1/(1+wasteHigh), 1/(1+wasteMid), 1)
	}
	left := budget.minus(sum(fixed))
	if one.Low > 0 {
		r.Batch = &Range{whole(float64(left.Low) / float64(one.High)), whole(float64(left.High) / float64(one.Low))}
	}
}

// What a caching allocator keeps beyond what is allocated, as a part of that.
const (
	wasteMid  = 0.02
	wasteHigh = 0.08
)

func allocator(all Estimate) Part {
	return Part{"kept by the allocator", mem.Estimated, all.times(0, wasteMid, wasteHigh),
		"reserved beyond what is allocated: 0 to 8 %, 2 % as a rule"}
}

func sum(parts []Part) (e Estimate) {
	for _, p := range parts {
		e = e.plus(p.Estimate)
	}
	return e
}

// against is what keeps a use from running on a GPU, whatever its memory; "": nothing known.
func (f *facts) against(g *gpus.GPU) string {
	major, minor, nvidia := g.Capability()
	nvidia = nvidia && g.CUDA()
	switch {
	case f.gguf():
		return ""
	case nvidia && f.serves() && major < 7:
		return fmt.Sprintf("vLLM needs compute capability 7.0, it has %s", g.Compute)
	case nvidia && f.use.Weights == "fp8" && major < 8:
		return fmt.Sprintf("weights in fp8 need compute capability 8.0, it has %s", g.Compute)
	case nvidia && f.use.Cache == "fp8" && f.serves() && (major < 8 || major == 8 && minor < 9):
		return fmt.Sprintf("a cache in fp8 is planned from compute capability 8.9 on, it has %s", g.Compute)
	}
	return ""
}

// rank orders verdicts.
var rank = map[Verdict]int{Fits: 0, Likely: 1, Unlikely: 2, No: 3}

// sortRows puts what fits first, of those the cheapest; a GPU whose price is not known stands behind, the smallest first.
// Of what does not fit, that stands first which lacks least.
func sortRows(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		if a.Verdict == No && b.Verdict == No {
			return cmp.Or(cmp.Compare(a.Note, b.Note), cmp.Compare(b.Room.High, a.Room.High))
		}
		return cmp.Or(cmp.Compare(rank[a.Verdict], rank[b.Verdict]), comparePrice(a.Price, b.Price), cmp.Compare(a.Total, b.Total))
	})
}

// comparePrice puts what is not known behind.
func comparePrice(a, b float64) int {
	if (a > 0) != (b > 0) {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}
