package plan

import (
	"fmt"
	"slices"

	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// Place is where a use is planned: on GPUs of a kind, as many as the use says, or on a machine with its own.
type Place struct {
	GPU     *gpus.GPU
	Machine *gpus.Instance // nil: any host
}

// placesOf are the GPUs, or the machines that have such: where several GPUs were asked for, those with as many or more.
func placesOf(chosen []gpus.GPU, machines bool, count int) (places []Place) {
	if !machines {
		for i := range chosen {
			places = append(places, Place{GPU: &chosen[i]})
		}
		return places
	}
	for _, m := range gpus.Instances() {
		if m.Count < count {
			continue
		}
		if i := slices.IndexFunc(chosen, func(g gpus.GPU) bool { return g.Slug == m.GPU }); i >= 0 {
			places = append(places, Place{&chosen[i], &m})
		}
	}
	return places
}

// at is the row of a place. On a machine as many of its GPUs are used as were asked for; where that is one, as many as
// a model can be split among.
func (f *facts) at(p *Place) Row {
	m := p.Machine
	if m == nil {
		return f.row(p.GPU)
	}
	use := f.use
	if use.GPUs <= 1 {
		use.GPUs = m.Count
	}
	for ; use.GPUs > 1 && f.of(use).possible() != nil; use.GPUs-- {
	}
	f = f.of(use)
	r := f.row(p.GPU)
	r.Price, r.Source, r.Date = m.Price, m.Source, m.Date
	host := f.host()
	r.Machine = &Rental{m.Name, m.Provider, m.Count, m.VCPUs, m.Memory, host, m.Notes}
	left := exactly(m.Memory - m.Memory/20).minus(host.Estimate) // the system has a part
	if v := verdictOf(left); rank[v] > rank[r.Verdict] {
		r.Verdict = v
		r.Note = fmt.Sprintf("host memory: %v, and the processes take %s", m.Memory, host.text())
	}
	return r
}

// host is what the processes take of the host's memory: a process for each GPU, with its libraries, and weights while
// they are loaded.
func (f *facts) host() Portion {
	n := mem.Bytes(f.gpus())
	e := Estimate{2*mem.GiB + n*mem.GiB, 3*mem.GiB + 3*n*mem.GiB, 4*mem.GiB + 6*n*mem.GiB}
	basis := "a process for each GPU, 1 to 6 GiB each; weights are mapped from their files"
	if f.trains() {
		split, whole := f.heldAs("auto")
		weights := split + whole
		if !f.adapts() && !f.pure() {
			weights = mem.Bytes(4 * f.elements)
		}
		e = e.plus(Estimate{0, weights, n * weights})
		basis = "a process for each GPU, 1 to 6 GiB each; one or all of them hold the weights while they load"
	}
	return Portion{"host memory", mem.Estimated, e, basis}
}
