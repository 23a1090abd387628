package analyze

import (
	"slices"

	"hightide/internal/mem"
)

// ownerCategories are what the program itself can say a tensor is: indexes of life.owner, 0 is nothing.
var ownerCategories = []string{"", "parameters", "gradients", "optimizer state", "buffers"}

// Accuracy compares what the rules say with what the program said, for the blocks whose owner it named
// among those alive at the moment explained. Buffers are left out: no rule tells them.
type Accuracy struct {
	Owned        mem.Bytes `json:"owned_bytes"`
	Agreed       mem.Bytes `json:"agreed_bytes"`
	OwnedBlocks  int       `json:"owned_blocks"`
	AgreedBlocks int       `json:"agreed_blocks"`
}

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
func (b *traceBooks) accuracy(at int, rules []CategoryRule) *Accuracy {
	if len(b.snapshot.Owners) == 0 {
		return nil
	}
	var a Accuracy
	s, last, later := newSorter(&b.snapshot.Stacks, rules), b.trace.Len()-1, b.eighth()
	b.alive(at, func(l *life) {
		if l.owner == 0 || ownerCategories[l.owner] == "buffers" {
			return
		}
		next := int32(0)
		if l.born >= 0 {
			next = later[l.born]
		}
		a.Owned += l.size
		a.OwnedBlocks++
		if s.byRules(l, last, next) == ownerCategories[l.owner] {
			a.Agreed += l.size
			a.AgreedBlocks++
		}
	})
	return &a
}
