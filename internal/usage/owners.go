package usage

import (
	"slices"

	"hightide/internal/mem"
)

// ownerCategories are what the program itself can say a tensor is: indexes of Blocks.owner, 0 is nothing.
var ownerCategories = []string{"", "parameters", "gradients", "optimizer state", "buffers", "KV cache"}

// own gives blocks their owners: a block is its owner's if one of the moments at which the owner was
// seen lies in the block's life.
func (d *Device) own() {
	byAddress := map[uint64][]mem.BlockOwner{}
	for _, o := range d.Snapshot.Owners {
		if o.Device == d.Number {
			byAddress[o.Address] = append(byAddress[o.Address], o)
		}
	}
	if len(byAddress) == 0 || len(d.Times) == 0 {
		return
	}
	d.Block.owner = make([]uint8, d.Len())
	for i := range d.Len() {
		for _, o := range byAddress[d.AddressOf(i)] {
			if d.Covers(i, o.Seen) {
				d.Block.owner[i] = ownerCategory(o.Category)
			}
		}
	}
}

func ownerCategory(name string) uint8 {
	switch name {
	case "optimizer":
		name = "optimizer state"
	case "kv_cache":
		name = "KV cache"
	}
	return uint8(max(slices.Index(ownerCategories, name), 0))
}

// Covers says whether one of some times of the wall clock lies in a block's life.
func (d *Device) Covers(span int, times []int64) bool {
	return slices.ContainsFunc(times, func(t int64) bool { return d.covers(span, t) })
}

// covers says whether a time of the wall clock lies between a block's allocation and its end.
func (d *Device) covers(span int, t int64) bool {
	from, to := int(d.From[span]), int(d.To[span])
	if from >= 0 && d.Times[from] > t {
		return false
	}
	return to == Never || to >= 0 && t <= d.Times[to]
}

// Owner is what the program itself said a block is for; "": nothing.
func (d *Device) Owner(span int) string {
	if d.Block.owner == nil {
		return ""
	}
	return ownerCategories[d.Block.owner[span]]
}
