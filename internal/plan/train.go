package plan

import (
	"fmt"

	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// batchParts are what a use other than serving takes on one GPU with a batch of n sequences.
func (f *facts) batchParts(g *gpus.GPU, n int64) []Portion {
	if f.blind() {
		return []Portion{f.weights(f.use.Weights), process(g)}
	}
	if f.use.For == Infer {
		return append([]Portion{f.weights(f.use.Weights), process(g)}, f.inferParts(g, n)...)
	}
	var parts []Portion
	if f.adapts() {
		parts = f.adapterParts()
	} else {
		parts = f.fullParts()
	}
	parts = append(parts, f.working(g, n), process(g))
	if f.gpus() > 1 {
		parts = append(parts, f.gathered())
	}
	return append(parts, allocator(sum(parts)))
}

// each is so many bytes for each of some numbers, split among the GPUs.
func (f *facts) each(numbers int64, low, mid, high float64) Estimate {
	n := float64(numbers) / float64(f.gpus())
	return Estimate{mem.Rounded(n * low), mem.Rounded(n * mid), mem.Rounded(n * high)}
}

// trained is how many numbers are trained.
func (f *facts) trained() int64 {
	if f.adapts() {
		return f.adapter * int64(f.use.Rank)
	}
	return f.elements
}

// pure says whether all weights are trained in 16 bits alone.
func (f *facts) pure() bool {
	return !f.adapts() && (f.use.Weights == "bf16" || f.use.Weights == "fp16")
}

// width is how many bytes a number that is trained takes, and its gradient.
func (f *facts) width() float64 {
	if f.pure() {
		return 2
	}
	return 4
}

// split is so many bytes for each number that is trained. Those of adapters are few, and each GPU has all.
func (f *facts) split(low, mid, high float64) Estimate {
	if f.adapts() {
		one := *f
		one.use.GPUs = 1
		return one.each(f.trained(), low, mid, high)
	}
	return f.each(f.trained(), low, mid, high)
}

// fullParts are those of a training of all weights, but what a batch takes. In 32 bits autocast keeps a copy of the
// matrices in 16, which frameworks with a copy of their own in 16 bits have in place of it.
func (f *facts) fullParts() []Portion {
	w := f.width()
	parts := []Portion{{"weights", Computed, f.split(w, w, w), fmt.Sprintf("%.0f bytes for each number", w)}, f.states()}
	if !f.pure() {
		parts = append(parts, Portion{"autocast's copies", mem.Estimated, f.each(f.linear, 0, 2, 2),
			"2 bytes for each number of the layers' matrices, kept over a step; none where gradients have 16 bits"})
	}
	if f.use.For == DPO {
		parts = append(parts, f.reference())
	}
	return parts
}

// reference is the frozen model of DPO. Several GPUs split it; TRL then makes one unit of FSDP of it, so that each
// gathers all of it at once, into a buffer and from there into weights of 16 bits.
func (f *facts) reference() Portion {
	p := Portion{"reference model", mem.Estimated, f.each(f.elements, 2, 4, 4), "a frozen copy in 16 or 32 bits"}
	if f.gpus() > 1 {
		gathered := mem.Bytes(4 * f.elements)
		p.Estimate = p.plus(Estimate{0, gathered, gathered})
		p.Basis += ", split; TRL gathers all of it at once"
	}
	return p
}

// workspaces are what libraries of kernels take of the allocator, and inputs.
const workspaces = 64 * mem.MiB

// working is what a step takes for a batch. Gradients come as activations go, so that the larger of the two counts,
// and both where gradients of several batches are added up. An optimizer that works on all weights at once takes as
// much as those beside the gradients, when the activations have gone.
func (f *facts) working(g *gpus.GPU, n int64) Portion {
	tokens := n * f.seq()
	if f.use.For == DPO {
		tokens *= 2 // the chosen answer and the other
	}
	activations := f.activations(tokens)
	kept := activations.plus(f.logits(tokens))
	scores := f.scores(g, tokens)
	atBack := scores.times(0, 4, 5) // where the backward pass is in one layer
	if f.use.KeepAll {
		all := float64(f.shape.Layers)
		kept = kept.plus(scores.times(0, all, 1.25*all))
	} else {
		kept.Bytes, kept.High = max(kept.Bytes, activations.Bytes+atBack.Bytes), max(kept.High, activations.High+atBack.High)
	}
	w := f.width()
	gradients, atOnce := f.split(w, w, w), f.split(0, 0, w)
	if f.use.Optimizer != "adamw" {
		atOnce = Estimate{}
	}
	e := Estimate{max(kept.Low, gradients.Low), max(kept.Bytes, gradients.Bytes+atBack.Bytes),
		max(kept.High, atOnce.High) + gradients.High + workspaces}
	return Portion{"gradients, activations, loss", mem.Estimated, e,
		fmt.Sprintf("gradients take %v, what the backward pass needs %s; the most is with both, as where batches are added "+
			"up, or with an optimizer that is not fused", gradients.Bytes, kept.text())}
}

// scores are a table of attention's scores of a layer, in 32 bits. SDPA keeps it where it has no kernel without one, as of
// bf16 before compute capability 8.0. Nothing: it has. How often it is there at once is what imagined runs on a T4 had.
func (f *facts) scores(g *gpus.GPU, tokens int64) Estimate {
	if !f.tables(g) {
		return Estimate{}
	}
	return exactly(mem.Rounded(4 * float64(f.shape.Heads) * float64(f.seq()) * float64(tokens)))
}

// tables says whether attention keeps tables of scores in a run on a GPU.
func (f *facts) tables(g *gpus.GPU) bool {
	major, _, nvidia := g.Capability()
	other := f.use.Weights == "fp16" && (f.pure() || f.use.For == Infer) || f.use.Weights == "fp32" && f.use.For == Infer
	return !f.serves() && !f.blind() && nvidia && major < 8 && !other
}

// states are what the optimizer keeps.
func (f *facts) states() Portion {
	p := Portion{Name: "optimizer", Label: Computed}
	switch {
	case f.use.Optimizer == "sgd":
		p.Basis = "SGD without momentum keeps nothing"
	case f.use.Optimizer == "adamw-8bit":
		const byBlock = 1 + 4.0/256
		p.Estimate = f.split(2*byBlock, 2*byBlock, 2*byBlock)
		p.Basis = "two averages of 8 bits, with a scale for 256 of them"
	default:
		w := 2 * f.width()
		p.Estimate, p.Basis = f.split(w, w, w), fmt.Sprintf("AdamW's two averages, of %.0f bytes each", f.width())
	}
	return p
}

// adapterParts are those of a training of adapters over frozen weights, but what a batch takes.
func (f *facts) adapterParts() []Portion {
	base := f.weights(f.use.Weights)
	if f.use.For == QLoRA {
		one := *f
		one.use.GPUs = 1 // each GPU has all of them
		base = one.weights("nf4")
		base.Label = mem.Estimated
		base.High += 2 * mem.Bytes(f.elements-f.linear)
		base.Basis = "the layers' matrices in NF4 with double quantization; the rest in 16 bits, at most in 32, as peft casts it"
		f.unpackedExperts(&base)
	}
	base.Name = "frozen weights"
	parts := []Portion{base, {"adapters", Computed, f.split(4, 4, 4), fmt.Sprintf(
		"rank %d on every matrix of the layers but experts': %d numbers of 32 bits", f.use.Rank, f.trained())}, f.states()}
	if f.use.For == QLoRA {
		parts = append(parts, Portion{"one matrix unpacked", mem.Estimated, Estimate{mem.Bytes(2 * f.largest),
			mem.Bytes(2 * f.largest), mem.Bytes(4 * f.largest)}, "the largest in 16 bits, while it is used"})
	}
	if f.experts > 0 {
		parts = append(parts, f.adaptedExperts(float64(f.states().Bytes)/float64(max(1, f.trained()))),
			f.expertsAtWork())
	}
	return parts
}

// gathered is what a GPU has of weights that are split, while it uses them.
func (f *facts) gathered() Portion {
	layer := mem.Bytes(2 * f.linear / int64(max(1, f.shape.Layers)))
	embedding := mem.Bytes(2 * int64(f.shape.Vocabulary) * f.hidden())
	return Portion{"gathered weights", mem.Estimated, Estimate{layer, 2*layer + embedding, 4*layer + 2*embedding},
		"weights, gradients and optimizer split among the GPUs as by ZeRO-3 or FSDP; of a layer or two each GPU has all"}
}

func (f *facts) inferParts(g *gpus.GPU, n int64) []Portion {
	batch := float64(n)
	token := float64(2 * f.perTokenWidth() * f.seq() * n)
	cache := f.sequence(f.seq()).times(batch, batch, batch)
	return []Portion{{"cache", cache.label(), cache, "keys and values of all tokens"},
		{"activations", mem.Estimated, Estimate{mem.Rounded(0.5 * token), mem.Rounded(token),
			mem.Rounded(2.5*token) + workspaces}.plus(f.scores(g, n*f.seq()).times(0, 2.4, 3)),
			"a pass over the whole prompt, which computes the logits of its last token alone, as generate() does"}}
}

// activations are what a forward pass keeps for the backward pass: all layers' inputs in 16 bits, of norms in 32, where
// attention keeps no scores; with checkpointing each layer's input, and all of the one that is computed again.
func (f *facts) activations(tokens int64) Estimate {
	s := f.shape
	hidden, heads := f.hidden(), int64(s.Heads*s.HeadDim)
	mlp := 4 * int64(s.Intermediate)
	switch {
	case s.Gated:
	case s.Composed:
		mlp = 6 * int64(s.Intermediate)
	default:
		mlp = 2 * int64(s.Intermediate)
	}
	if s.Experts > 0 {
		mlp = int64(s.ExpertsUsed)*(4*int64(s.ExpertWidth)+2*hidden) + 4*int64(s.SharedWidth)
	}
	norms := int64(10)
	if s.LayerNorm {
		norms = 5
	}
	layer := float64(2 * tokens * (norms*hidden + 3*heads + 2*int64(s.KVHeads*s.HeadDim) + mlp))
	layers := float64(s.Layers)
	if f.use.KeepAll {
		return exactly(mem.Rounded(layers*layer)).times(0.7, 1, 1.25)
	}
	kept := layers * float64(2*tokens*hidden)
	return Estimate{mem.Rounded(kept + 0.7*layer), mem.Rounded(kept + 1.5*layer), mem.Rounded(1.25*kept + 2.5*layer)}
}

// logits are the outputs of all tokens with the loss of them: in 16 bits, in 32 for the loss, and their gradients. The
// least is with a loss that never has all of them, as TRL's and fused ones.
func (f *facts) logits(tokens int64) Estimate {
	n := float64(tokens * int64(f.shape.Vocabulary))
	return Estimate{0, mem.Rounded(12 * n), mem.Rounded(14 * n)}
}

// What a caching allocator keeps beyond what is allocated, as a part of that.
const (
	wasteMid  = 0.02
	wasteHigh = 0.08
)

func allocator(all Estimate) Portion {
	return Portion{"kept by the allocator", mem.Estimated, all.times(0, wasteMid, wasteHigh),
		"reserved beyond what is allocated: 0 to 8 %, 2 % as a rule"}
}
