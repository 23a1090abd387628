package live

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Card is an imaginary GPU of a run, as it stands now.
type Card struct {
	Device string       `json:"device"` // as its series are called
	GPU    string       `json:"gpu"`
	Used   mem.Optional `json:"used_bytes,omitzero"` // absent: nothing asked it for memory yet
	Total  mem.Bytes    `json:"total_bytes"`
	Label  mem.Label    `json:"label"`
}

// Cards are the imaginary GPUs of a run: what its living processes have in use on each. None of a run on real ones.
func (r *Run) Cards() (cards []Card) {
	if !r.Imagined || r.Setup.Count == 0 {
		return nil
	}
	add := func(device string) *Card {
		for i := range cards {
			if cards[i].Device == device {
				return &cards[i]
			}
		}
		cards = append(cards, Card{Device: device, GPU: r.Setup.Name, Total: r.Setup.Total, Label: mem.Imagined})
		return &cards[len(cards)-1]
	}
	if r.Setup.World == 0 { // of a larger cluster only those that are played have memory
		for i := range r.Setup.Count {
			add(fmt.Sprintf("nvidia:%d", i))
		}
	}
	for _, s := range r.Series {
		if s.Name != mem.SeriesDeviceUsed || s.Device == "" {
			continue
		}
		card := add(s.Device)
		if last, ok := s.Last().Get(); ok && r.lives(s.Process) {
			card.Used = mem.Some(card.Used.Or(0) + last)
		}
	}
	slices.SortStableFunc(cards, func(a, b Card) int {
		return cmp.Or(cmp.Compare(len(a.Device), len(b.Device)), cmp.Compare(a.Device, b.Device))
	})
	return cards
}

// lives says whether a process has not ended, as far as is known.
func (r *Run) lives(process uint32) bool {
	for _, p := range r.Processes {
		if p.ID == process {
			return !p.End.Known()
		}
	}
	return true
}
