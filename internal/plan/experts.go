package plan

import (
	"hightide/internal/mem"
)

// What adapters over a model with experts take beyond others is estimated between two ends. At the least each expert
// has matrices of its own, as in transformers 4 (bitsandbytes packs those), and no adapters. At the most a layer has
// them in one piece, as in transformers 5, and peft's "all-linear" adapts them.

// unpackedExperts adds to weights in NF4 what experts take beyond. Peft casts what is not packed to 32 bits.
func (f *facts) unpackedExperts(p *Portion) {
	if f.experts == 0 {
		return
	}
	n := float64(f.experts)
	p.Estimate = p.plus(Estimate{0, mem.Rounded((2 - nf4) * n), mem.Rounded((4 - nf4) * n)})
	p.Basis += "; experts too, unless each has matrices of its own"
}

// adaptedExperts are adapters on experts, their gradients and the bytes that the optimizer keeps for each number. Those
// on one piece have for the two matrices that it joins twice the rank.
func (f *facts) adaptedExperts(states float64) Portion {
	n := float64(f.adapters * int64(f.use.Rank))
	return Portion{"experts' adapters", mem.Estimated, Estimate{0, mem.Rounded((4 + states) * n),
		mem.Rounded((8 + states) * n * 5 / 3)},
		"with optimizer, at most with gradients; none where experts are not adapted"}
}

// expertsAtWork are what peft makes of experts in one piece: them with what adapters add, for the layer that is
// computed again, or where none is for all layers; on the way back another two.
func (f *facts) expertsAtWork() Portion {
	layers := int64(max(1, f.shape.Layers))
	layer, kept, width := float64(f.experts/layers), float64(1), float64(2)
	if f.use.KeepAll {
		kept = float64(layers)
	}
	if f.use.For == QLoRA {
		width = 4
	}
	e := Estimate{0, mem.Rounded(2 * kept * layer), mem.Rounded(width * (kept + 2) * layer)}
	return Portion{"experts at work", mem.Estimated, e,
		"sums of experts and adapters, which peft keeps where a layer has them in one piece"}
}
