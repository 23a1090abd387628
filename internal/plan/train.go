package plan

import (
	"fmt"

	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// fixedParts are what a use other than serving takes on one GPU, whatever the batch.
func (f *facts) fixedParts(g *gpus.GPU) []Part {
	if f.use.For == Infer {
		return []Part{f.weights(f.use.Weights), process(g)}
	}
	var parts []Part
	if f.adapts() {
		parts = f.adapterParts()
	} else {
		parts = f.fullParts()
	}
	parts = append(parts, process(g))
	if f.gpus() > 1 {
		parts = append(parts, f.gathered())
	}
	return parts
}

// each is so many bytes for each of some numbers, split among the GPUs.
func (f *facts) each(numbers int64, low, mid, high float64) Estimate {
	n := float64(numbers) / float64(f.gpus())
	return Estimate{mem.Rounded(n * low), mem.Rounded(n * mid), mem.Rounded(n * high)}
}

// fullParts are those of a training of all weights. In 32 bits each takes 4 bytes, its gradient 4; autocast keeps a
// copy of the matrices in 16 bits, which frameworks with a copy of their own in 16 bits have in place of it.
func (f *facts) fullParts() []Part {
	pure := f.use.Weights == "bf16" || f.use.Weights == "fp16"
	weights := Part{"weights", Computed, f.each(f.elements, 4, 4, 4), "4 bytes each: trained in 32 bits"}
	grads := Part{"gradients", Computed, f.each(f.elements, 4, 4, 4), "4 bytes each"}
	if pure {
		weights = Part{"weights", Computed, f.each(f.elements, 2, 2, 2), "2 bytes each: trained in 16 bits alone"}
		grads = Part{"gradients", Computed, f.each(f.elements, 2, 2, 2), "2 bytes each"}
	}
	parts := []Part{weights, grads, f.states(f.elements, pure)}
	if !pure {
		parts = append(parts, Part{"autocast's copies", mem.Estimated, f.each(f.linear, 0, 2, 2),
			"2 bytes for each number of the layers' matrices, kept over a step; none with a copy in 16 bits beside the optimizer"})
	}
	if f.use.For == DPO {
		parts = append(parts, Part{"reference model", mem.Estimated, f.each(f.elements, 2, 4, 4),
			"a frozen copy in 16 or 32 bits; none where its answers are computed before"})
	}
	return parts
}

// states are what the optimizer keeps of so many numbers.
func (f *facts) states(numbers int64, pure bool) Part {
	p := Part{Name: "optimizer", Label: Computed}
	switch {
	case f.use.Optimizer == "sgd":
		p.Basis = "SGD without momentum keeps nothing"
	case f.use.Optimizer == "adamw-8bit":
		const byBlock = 1 + 4.0/256
		p.Estimate, p.Basis = f.each(numbers, 2*byBlock, 2*byBlock, 2*byBlock), "two averages of 8 bits, with a scale for 256 of them"
	case pure:
		p.Estimate, p.Basis = f.each(numbers, 4, 4, 4), "AdamW's two averages in 16 bits, as the weights"
	default:
		p.Estimate, p.Basis = f.each(numbers, 8, 8, 8), "AdamW's two averages in 32 bits"
	}
	return p
}

// adapterParts are those of a training of adapters over frozen weights.
func (f *facts) adapterParts() []Part {
	base := f.weights(f.use.Weights)
	base.Name = "frozen weights"
	if f.use.For == QLoRA {
		one := *f
		one.use.GPUs = 1 // each GPU has all of them
		base = one.weights("nf4")
		rest := mem.Bytes(f.elements - f.linear)
		base.Name, base.Label = "frozen weights", mem.Estimated
		base.High += 2 * rest
		base.Basis = "the layers' matrices in NF4 with double quantization; the rest in 16 bits, or at most in 32, as peft casts it"
	}
	numbers := f.adapter * int64(f.use.Rank)
	one := *f
	one.use.GPUs = 1 // adapters are small, and not split
	states := one.states(numbers, false)
	parts := []Part{base, {"adapters", Computed, one.each(numbers, 8, 8, 8),
		fmt.Sprintf("rank %d on every matrix of the layers but experts: %d numbers, with gradients, in 32 bits", f.use.Rank, numbers)},
		states}
	if f.use.For == QLoRA {
		parts = append(parts, Part{"one matrix unpacked", mem.Estimated, Estimate{mem.Bytes(2 * f.largest),
			mem.Bytes(2 * f.largest), mem.Bytes(4 * f.largest)}, "the largest in 16 bits, while it is used"})
	}
	return parts
}

// gathered is what a GPU has of weights that are split, while it uses them.
func (f *facts) gathered() Part {
	layer := mem.Bytes(2 * f.linear / int64(max(1, f.shape.Layers)))
	embedding := mem.Bytes(2 * int64(f.shape.Vocabulary) * f.hidden())
	return Part{"gathered weights", mem.Estimated, Estimate{layer, 2*layer + embedding, 4*layer + 2*embedding},
		"weights, gradients and optimizer split among the GPUs as by ZeRO-3 or FSDP; of a layer or two each GPU has all"}
}

// batchParts are what one sequence of the batch takes.
func (f *facts) batchParts() []Part {
	if f.use.For == Infer {
		return f.inferParts()
	}
	tokens := f.seq()
	if f.use.For == DPO {
		tokens *= 2 // the chosen answer and the other
	}
	return []Part{f.activations(tokens), f.logits(tokens)}
}

func (f *facts) inferParts() []Part {
	cache := Part{"cache", Computed, f.sequence(f.seq()), "keys and values of all tokens"}
	token := float64(2 * f.perTokenWidth() * f.seq())
	return []Part{cache, {"activations", mem.Estimated, Estimate{mem.Rounded(0.5 * token), mem.Rounded(token),
		mem.Rounded(2*token) + mem.Bytes(6*f.seq()*int64(f.shape.Vocabulary))},
		"a pass over the whole prompt; the most with logits of all its tokens"}}
}

// activations are what a forward pass keeps for the backward pass.
func (f *facts) activations(tokens int64) Part {
	s := f.shape
	hidden, heads := f.hidden(), int64(s.Heads*s.HeadDim)
	mlp := 4 * int64(s.Intermediate)
	if !s.Gated {
		mlp = 2 * int64(s.Intermediate)
	}
	if s.Experts > 0 {
		mlp = int64(s.ExpertsUsed)*(4*int64(s.ExpertWidth)+2*hidden) + 4*int64(s.SharedWidth)
	}
	layer := float64(2 * tokens * (10*hidden + 3*heads + 2*int64(s.KVHeads*s.HeadDim) + mlp))
	layers := float64(s.Layers)
	if f.use.KeepAll {
		return Part{"activations", mem.Estimated, Estimate{mem.Rounded(0.8 * layers * layer), mem.Rounded(layers * layer),
			mem.Rounded(1.5 * layers * layer)}, "all layers' inputs, in 16 bits and of norms in 32; attention keeps no scores"}
	}
	kept := layers * float64(2*tokens*hidden)
	return Part{"activations", mem.Estimated, Estimate{mem.Rounded(kept + 0.8*layer), mem.Rounded(kept + 1.5*layer),
		mem.Rounded(2*kept + 3*layer)}, "the input of each layer, and all of the layer that is computed again"}
}

// logits are the outputs of all tokens with the loss of them.
func (f *facts) logits(tokens int64) Part {
	n := float64(tokens * int64(f.shape.Vocabulary))
	return Part{"logits and loss", mem.Estimated, Estimate{mem.Rounded(4 * n), mem.Rounded(12 * n), mem.Rounded(16 * n)},
		"logits in 16 bits, in 32 for the loss, and their gradients; the least with a fused loss"}
}
