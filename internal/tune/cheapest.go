package tune

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// place is where a training may run: a GPU, as often as was asked for, or a machine that has so many.
type place struct {
	gpu     *gpus.GPU
	machine *gpus.Instance // nil: any
	price   float64        // in USD an hour, of all GPUs or of the machine
}

func (p *place) name() string {
	if p.machine != nil {
		return p.machine.Provider + "'s " + p.machine.Name
	}
	return p.gpu.Slug
}

// places are those that have a price, the cheapest first, and how many have none.
func (o *Options) places() (list []place, unpriced int, err error) {
	catalogue, err := gpus.Load(o.Catalogue...)
	if err != nil {
		return nil, 0, err
	}
	all, err := chosen(catalogue, o.GPU)
	if err != nil {
		return nil, 0, err
	}
	count := max(o.GPUs, 1)
	for i := range all {
		g := &all[i]
		switch {
		case o.Instances:
			for _, m := range gpus.Instances() {
				if m.GPU == g.Slug && m.Count >= count {
					list = append(list, place{g, &m, m.Price})
				}
			}
		case g.Price > 0:
			list = append(list, place{g, nil, g.Price * float64(count)})
		default:
			unpriced++
		}
	}
	slices.SortStableFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.gpu.Total, b.gpu.Total))
	})
	if len(list) == 0 {
		return nil, 0, fail.Input("hightide gpus lists prices; --gpu all looks at all of them",
			"no price is known of %s%s", o.GPU, map[bool]string{true: " in a machine with so many", false: ""}[o.Instances])
	}
	return list, unpriced, nil
}

// chosen are the GPUs of a list of names, or all that a CUDA build can use.
func chosen(catalogue *gpus.Catalogue, names string) (list []gpus.GPU, err error) {
	if names == allGPUs {
		return slices.DeleteFunc(catalogue.Common(), func(g gpus.GPU) bool { return !g.CUDA() }), nil
	}
	for _, name := range listed(names) {
		g, err := catalogue.Imaginable(name)
		if err != nil {
			return nil, err
		}
		list = append(list, *g)
	}
	return list, nil
}

// Cheapest finds the cheapest place where a plan fits. One scouting start on the cheapest GPU with plenty of memory says
// how small the peak gets; places that have less are passed over, and the others searched in the order of their price.
func Cheapest(ctx context.Context, o Options, open func(gpu string) (Host, error)) (*Result, error) {
	places, unpriced, err := o.places()
	if err != nil {
		return nil, err
	}
	host, err := open(places[0].gpu.Slug)
	if err != nil {
		return nil, err
	}
	scout := newSearch(o, host)
	scout.Goal, scout.plenty, scout.Events = "fit", true, nil
	if err := scout.begin(ctx); err != nil {
		return scout.result, err
	}
	least, what := scout.floor(ctx)
	least -= places[0].gpu.Overhead // of tensors and what the allocator keeps
	r, runs, passed := scout.result, scout.result.Runs, []place(nil)
	failed := map[string]bool{}
	for i := range places {
		p := &places[i]
		last := i == len(places)-1 && r == scout.result
		if failed[p.gpu.Slug] || !last && least+p.gpu.Overhead+p.gpu.Tight() > p.gpu.Total {
			passed = append(passed, *p)
			continue
		}
		at := o
		at.GPU, at.Goal = p.gpu.Slug, "fit"
		if host, err = open(p.gpu.Slug); err != nil {
			return nil, err
		}
		r, err = Find(ctx, at, host)
		runs += r.Runs
		r.Goal, r.Runs = Cost, runs
		if err != nil {
			return r, err
		}
		if r.Recommended != nil {
			r.at(p, len(places))
			break
		}
		failed[p.gpu.Slug] = true
		passed = append(passed, *p)
	}
	r.Notes = append(r.Notes, notes(passed, unpriced, least, what)...)
	return r, nil
}

// at says where the plan runs, and for how much.
func (r *Result) at(p *place, of int) {
	r.Price = p.price
	if p.machine != nil {
		r.Machine = p.name()
	}
	r.Answer += fmt.Sprintf(" That is %s for $%.2f an hour, the cheapest of %d whose price is known.", p.name(), p.price, of)
}

// notes are about the places that are cheaper, and what was not looked at.
func notes(passed []place, unpriced int, least mem.Bytes, what string) (said []string) {
	if len(passed) > 0 {
		which := fmt.Sprintf("%d cheaper ones were passed over, %s to %s", len(passed), passed[0].name(),
			passed[len(passed)-1].name())
		if len(passed) == 1 {
			which = passed[0].name() + " is cheaper and was passed over"
		}
		said = append(said, fmt.Sprintf("%s: the smallest peak that was reached is %v beside what a process takes, with %s",
			which, least, what))
	}
	if unpriced > 0 {
		which, were := "GPUs", "were"
		if unpriced == 1 {
			which, were = "GPU", "was"
		}
		said = append(said, fmt.Sprintf("%d %s whose price is not known %s not looked at", unpriced, which, were))
	}
	return said
}
