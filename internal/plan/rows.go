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
	r := Row{GPU: g.Slug, Name: g.Name, Count: int(f.gpus()), Label: mem.Estimated, Total: g.Total, Price: g.Price * n, Source: g.PriceSource,
		Date: g.PriceDate}
	r.Budget = Estimate{cmp.Or(g.Lowest, g.Total), g.Total, g.Total}
	if r.Budget.Low = min(r.Budget.Low, g.Total); g.Label() == mem.Estimated {
		r.Budget.Low = min(r.Budget.Low, g.Total/100*97) // nobody has seen it
	}
	if f.serves() {
		f.serve(&r, g)
	} else {
		f.run(&r, g)
	}
	if r.Verdict = verdictOf(r.Room); r.Verdict == Fits && (len(f.shape.Unknown) > 0 || f.untried()) {
		r.Verdict = Likely // something is not counted, or taken as other models have it
	}
	f.note(&r, g)
	return r
}

// note says what else there is to know of a GPU.
func (f *facts) note(r *Row, g *gpus.GPU) {
	old := f.notAll(g)
	if old != "" && r.Verdict == Fits {
		r.Verdict = Likely
	}
	switch r.barred = f.against(g); {
	case r.barred != "":
		r.Note, r.Verdict = r.barred, No
		for _, n := range []*Range{r.Users, r.Tokens, r.Batch} {
			if n != nil {
				*n = Range{} // whatever would have room
			}
		}
	case f.needsHalf(g):
		r.Note = "vLLM takes fp16 in place of bf16 before compute capability 8.0"
		if old != "" {
			r.Note += "; " + old
		}
	case old != "":
		r.Note = old
	case f.tables(g):
		r.Note = "in bf16 attention keeps its scores"
	}
}

// serve fills in what a server holds.
func (f *facts) serve(r *Row, g *gpus.GPU) {
	r.Budget = f.shared(r.Budget, g)
	r.Parts = f.serveParts(g)
	left := r.Budget.minus(sum(r.Parts))
	one := f.sequence(f.seq())
	users := float64(f.use.Users)
	cache := one.times(users, users, users)
	if !f.blind() {
		r.Cache = &cache
	}
	r.Room = left.minus(cache)
	if one.Low > 0 {
		low, mid, high := float64(left.Low)/float64(one.High), float64(left.Bytes)/float64(one.Bytes),
			float64(left.High)/float64(one.Low)
		r.Users = &Range{whole(low), whole(mid), whole(high)}
		const block = 16 // tokens that servers keep together
		n := float64(f.seq()) / block
		r.Tokens = &Range{whole(low*n) * block, whole(mid*n) * block, whole(high*n) * block}
	}
}

// run fills in what another use takes.
func (f *facts) run(r *Row, g *gpus.GPU) {
	room := func(n int64) Estimate { return r.Budget.minus(sum(f.batchParts(g, n))) }
	r.Parts = f.batchParts(g, f.batch())
	r.Room = r.Budget.minus(sum(r.Parts))
	if f.blind() {
		return
	}
	r.Batch = &Range{largest(func(n int64) bool { return room(n).Low >= 0 }),
		largest(func(n int64) bool { return room(n).Bytes >= 0 }), largest(func(n int64) bool { return room(n).High >= 0 })}
}

// largest is the largest number for which something holds that holds for all smaller ones; 0: for none.
func largest(holds func(int64) bool) int64 {
	high := int64(1)
	for holds(high) && high < mostOfAny {
		high *= 2
	}
	low := high / 2
	for low+1 < high {
		if middle := (low + high) / 2; holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// against is what keeps a use from running on a GPU, whatever its memory; "": nothing known.
func (f *facts) against(g *gpus.GPU) string {
	major, minor, nvidia := g.Capability()
	nvidia = nvidia && g.CUDA()
	switch {
	case f.gguf():
		return ""
	case f.use.SGLang && (!nvidia || major < 7 || major == 7 && minor < 5):
		return fmt.Sprintf("SGLang needs compute capability 7.5, it has %s", cmp.Or(g.Compute, "none"))
	case f.use.SGLang:
		return ""
	case g.Vendor == "Apple" && f.serves():
		return "vLLM does not run on it; plan a GGUF"
	case g.Vendor == "Apple" && f.trains():
		return "trainings are not planned for it"
	case nvidia && f.serves():
		return f.refused(g)
	case nvidia && f.use.For == Infer:
		return f.unpacks(g)
	case nvidia && f.use.Weights == "fp8" && major < 8:
		return fmt.Sprintf("weights in fp8 need compute capability 8.0, it has %s", g.Compute)
	}
	return ""
}

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
