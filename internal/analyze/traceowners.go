package analyze

import (
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// ownerCategories are what the program itself can say a tensor is: indexes of life.owner, 0 is nothing.
var ownerCategories = []string{"", "parameters", "gradients", "optimizer state", "buffers"}

// own gives blocks their owners: a block is its owner's if one of the moments at which the owner was
// seen lies in the block's life.
func (b *traceBooks) own() {
	byAddress := map[uint64][]mem.BlockOwner{}
	for _, o := range b.snapshot.Owners {
		if o.Device == b.device {
			byAddress[o.Address] = append(byAddress[o.Address], o)
		}
	}
	if len(byAddress) == 0 || len(b.trace.Time) == 0 {
		return
	}
	for i := range b.lives {
		l := &b.lives[i]
		for _, o := range byAddress[l.address] {
			if slices.ContainsFunc(o.Seen, func(t int64) bool { return b.covers(l, t) }) {
				l.owner = ownerCategory(o.Category)
			}
		}
	}
}

func ownerCategory(name string) uint8 {
	if name == "optimizer" {
		name = "optimizer state"
	}
	return uint8(max(slices.Index(ownerCategories, name), 0))
}

// covers says whether a time of the wall clock lies between a block's allocation and its end.
func (b *traceBooks) covers(l *life, t int64) bool {
	if l.born >= 0 && b.trace.Time[l.born] > t {
		return false
	}
	return l.freed >= never-1 || l.freed >= 0 && t <= b.trace.Time[l.freed]
}

// accuracy of the rules; nil where the program named no owner.
func (b *traceBooks) accuracy(at int, s *sorter) *report.Accuracy {
	if len(b.snapshot.Owners) == 0 {
		return nil
	}
	a := report.Accuracy{By: make([]report.CategoryAccuracy, 3)}
	b.aliveNumbers(at, func(n int) {
		l := &b.lives[n]
		if l.owner == 0 || ownerCategories[l.owner] == "buffers" {
			return
		}
		of := &a.By[l.owner-1]
		of.Category = ownerCategories[l.owner]
		of.Owned += l.size
		a.Owned += l.size
		a.OwnedBlocks++
		if s.byRules(n) == of.Category {
			of.Agreed += l.size
			a.Agreed += l.size
			a.AgreedBlocks++
		}
	})
	a.By = slices.DeleteFunc(a.By, func(c report.CategoryAccuracy) bool { return c.Owned == 0 })
	return &a
}
