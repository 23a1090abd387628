package plan

import (
	"fmt"
	"strings"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// serveParts are what a server takes on one GPU beside the cache: vLLM's, of what it shares out, or of a GGUF llama.cpp's.
func (f *facts) serveParts(g *gpus.GPU) []Portion {
	parts := []Portion{f.weights(f.use.Weights)}
	switch {
	case f.gguf() && f.blind():
		return append(parts, process(g))
	case f.gguf():
		return append(parts, f.alone().computeBuffer(), process(g))
	case f.blind():
		return append(parts, besideAllocator(g))
	}
	if t, ok := f.rotary(); ok {
		parts = append(parts, t)
	}
	parts = append(parts, f.largestBatch(g), graphs(), besideAllocator(g))
	if f.gpus() > 1 {
		parts = append(parts, between())
	}
	return parts
}

// shared is what a server may share out of a GPU's memory: a part of it, as far as the process has left that. vLLM counts
// from when its context is there, so that this comes out of the rest.
func (f *facts) shared(total Estimate, g *gpus.GPU) Estimate {
	u := f.use.Utilization
	part := total.times(u, u, u)
	if f.gguf() {
		return part
	}
	free := total.minus(process(g).Estimate)
	return Estimate{min(part.Low, free.Low), min(part.Bytes, free.Bytes), min(part.High, free.High)}
}

// besideAllocator is what a server finds in use beside PyTorch's allocator when it has measured a pass. Versions before
// 0.9 count the context.
func besideAllocator(g *gpus.GPU) Portion {
	return Portion{"beside the allocator", mem.Estimated, Estimate{8 * mem.MiB, 32 * mem.MiB, process(g).High},
		"10 to 34 MiB in imagined runs of vLLM 0.11; the most is of older versions, which count the context"}
}

// rotary is the table of rotary embeddings that vLLM keeps: a sine and a cosine for each position.
func (f *facts) rotary() (Portion, bool) {
	s := f.shape
	if s.RotaryDim == 0 || s.Context == 0 || f.gguf() {
		return Portion{}, false
	}
	e, basis := exactly(mem.Bytes(2*int64(s.RotaryDim)*int64(s.Context))), ""
	switch {
	case s.Sections && strings.HasPrefix(s.Kind, "qwen3_vl"): // once in vLLM 0.33, unless it prunes videos
		e, basis = e.times(1, 1, 4), ", for long videos up to four times"
	case s.Sections:
		e, basis = e.times(4, 4, 4), ", four times for long videos"
	}
	return Portion{"rotary table", e.label(), e,
		fmt.Sprintf("%d positions × %d numbers of 16 bits%s, as vLLM keeps it", s.Context, s.RotaryDim, basis)}, true
}

// perTokenWidth is how many numbers one token has at once where a forward pass has most: in the MLP its gate, its rise,
// their product, and the hidden state with its residual; in attention queries, keys, values and the output.
func (f *facts) perTokenWidth() int64 {
	s := f.shape
	width := 3 * int64(s.Intermediate)
	if !s.Gated {
		width = 2 * int64(s.Intermediate)
	}
	if s.Experts > 0 {
		width = max(int64(s.ExpertsUsed)*int64(3*s.ExpertWidth+s.Hidden), 3*int64(s.SharedWidth))
	}
	width = max(width, int64(s.Heads+2*s.KVHeads)*int64(s.HeadDim)+int64(s.Heads*s.HeadDim))
	return (width+f.gpus()-1)/f.gpus() + 3*f.hidden()
}

// tokensAtOnce is how many tokens vLLM works on in one pass, and for how many sequences it computes logits: it takes
// more on GPUs of 70 GiB and more. Source: the defaults of max_num_batched_tokens and max_num_seqs in vLLM's
// EngineArgs, of its server (low) and its Python class (high).
func tokensAtOnce(g *gpus.GPU) (low, mid, high, sequences int64) {
	if g.Total >= 70*mem.GiB && g.Arch != "Ampere" {
		return 8192, 8192, 16384, 1024
	}
	return 2048, 2048, 8192, fewestSequences
}

// fewestSequences is how many sequences vLLM takes at once where the GPU is not one of the largest.
const fewestSequences = 256

// logitsAtOnce is how many times the logits of all sequences, in 32 bits, vLLM has at once when it tries its sampler: 9.73
// and 9.74 in imagined runs of vLLM 0.11 on three GPUs, with vocabularies of 128,256 and 151,936.
const logitsAtOnce = 9.74

// fewestLogits is the same of vLLM 0.33, where it has compiled nothing: 1.63 in an imagined run.
const fewestLogits = 1.6

// largestBatch is what activations take in the pass by which the server measures how much is left: the largest batch
// of a prompt, or the logits of all sequences with what sampling makes of them.
func (f *facts) largestBatch(g *gpus.GPU) Portion {
	low, mid, high, sequences := tokensAtOnce(g)
	token := float64(2 * f.perTokenWidth())
	logits := float64(sequences * int64(f.shape.Vocabulary) * 4)
	few := float64(fewestSequences * int64(f.shape.Vocabulary) * 4)
	e := Estimate{
		mem.Rounded(max(0.8*float64(low)*token, fewestLogits*few)),
		mem.Rounded(max(float64(mid)*token, logitsAtOnce*logits)),
		mem.Rounded(max(1.2*float64(high)*token, 12*logits)),
	}
	return Portion{"activations", mem.Estimated, e,
		fmt.Sprintf("passes of %d to %d tokens, logits of up to %d sequences: vLLM's defaults, which --max-num-batched-tokens "+
			"and --max-num-seqs change", low, high, sequences)}
}

// graphs are recorded passes: from vLLM 0.21 on they come out of what is shared, before that out of the rest.
func graphs() Portion {
	return Portion{"CUDA graphs", mem.Estimated, Estimate{0, 192 * mem.MiB, mem.GiB},
		"nothing with --enforce-eager, or before vLLM 0.21; 180 to 220 MiB in imagined runs of 0.33; else what servers' logs say"}
}

// process is what one takes beside its allocator.
func process(g *gpus.GPU) Portion {
	e := Estimate{g.OverheadLow, g.Overhead, g.OverheadHigh}
	if g.OverheadHigh <= g.OverheadLow { // a single figure: such is the spread where there are many
		e = Estimate{g.Overhead / 2, g.Overhead, 2 * g.Overhead}
	}
	switch {
	case g.OverheadKnown:
		e = exactly(g.Overhead)
	case g.Overhead == 0:
		return Portion{"context and libraries", mem.Estimated, Estimate{128 * mem.MiB, 512 * mem.MiB, 2 * mem.GiB},
			"not known of this GPU: between what other GPUs take"}
	}
	return Portion{"context and libraries", mem.Estimated, e, g.OverheadBasis}
}

// between is what libraries for several GPUs take of what is shared out. vLLM 0.11 and later look at the memory after
// most of it was taken, so that it comes out of the rest.
func between() Portion {
	return Portion{"buffers between GPUs", mem.Estimated, Estimate{0, 256 * mem.MiB, 2 * mem.GiB},
		"with what is beside the allocator 24 to 438 MiB in imagined runs of vLLM 0.11 and 0.33, which look at the " +
			"memory after NCCL has its buffers; the most is what logs of older ones say"}
}

// computeBuffer is what llama.cpp's graph takes for a batch of 512 tokens: logits in 32 bits, and the widest layer.
func (f *facts) computeBuffer() Portion {
	const batch = 512
	s := f.shape
	logits := float64(batch * int64(s.Vocabulary) * 4)
	layer := float64(batch * 4 * f.perTokenWidth())
	scores := float64(batch * f.seq() * int64(s.Heads) * 4) // without flash attention
	return Portion{"compute buffer", mem.Estimated, Estimate{mem.Rounded(0.8 * max(logits, layer)),
		mem.Rounded(logits + layer), mem.Rounded(1.2*(logits+layer) + scores)},
		"llama.cpp's for 512 tokens at once; the most is without flash attention"}
}

// needsHalf says whether vLLM takes fp16 by itself for a model in bf16. Source: its _resolve_auto_dtype.
func (f *facts) needsHalf(g *gpus.GPU) bool {
	major, _, nvidia := g.Capability()
	return f.serves() && !f.gguf() && nvidia && major < 8 && (f.use.Weights == "auto" || f.quantizes()) &&
		f.shape.Type == modelfile.BF16
}
