package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Pin is a place whose blocks keep mostly empty segments from going back to the device at the end.
type Pin struct {
	Name   string    `json:"name"`
	Bytes  mem.Bytes `json:"bytes"` // of the blocks
	Blocks int       `json:"blocks"`
	Pinned mem.Bytes `json:"pinned_bytes"` // cached in the segments where these blocks are the largest
}

// pinShare is the part of a segment, as its divisor, that may be in use where it counts as mostly empty.
const pinShare = 4

// pins lists places by what they pin, most first. A segment's cached bytes are laid at the door of its
// largest block, so that the pinned bytes of all rows add up. Expandable segments give back the pages
// between their blocks: nothing pins them.
func (b *traceBooks) pins() []Pin {
	byName, places := map[string]*Pin{}, newPlaces(nil)
	for _, s := range b.snapshot.Segments {
		if s.Device != b.device || s.Expandable {
			continue
		}
		var used mem.Bytes
		var largest mem.Block
		for _, block := range s.Blocks {
			if block.State != mem.BlockInactive {
				used += block.Size
				if block.Size > largest.Size {
					largest = block
				}
			}
		}
		if used == 0 || used > s.Size/pinShare {
			continue
		}
		name := lineName(places.search(b.snapshot.Stacks.Frames(largest.Stack)).Location)
		p := byName[name]
		if p == nil {
			p = &Pin{Name: name}
			byName[name] = p
		}
		p.Bytes += largest.Size
		p.Blocks++
		p.Pinned += s.Size - used
	}
	all := make([]Pin, 0, len(byName))
	for _, p := range byName {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(p, q Pin) int { return cmp.Or(cmp.Compare(q.Pinned, p.Pinned), cmp.Compare(p.Name, q.Name)) })
	return all
}
