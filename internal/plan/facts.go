package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// facts are what follows from a model and a use alone, whatever the GPU.
type facts struct {
	model *modelfile.Model
	shape *modelfile.Shape
	use   Use

	tensors []modelfile.Tensor // that are loaded
	left    mem.Bytes          // the rest
	label   mem.Label          // of figures that follow from the tensors

	elements int64     // of the tensors
	linear   int64     // of the layers' matrices: what is packed, and what adapters are put on
	experts  int64     // of those, of experts
	adapters int64     // numbers of adapters on experts for a rank of 1, where each has matrices of its own
	padded   mem.Bytes // what experts in MXFP4 take
	packed   bool      // the weights are packed already
	halved   bool      // some are stored in 32 bits or more, which engines load in 16
	largest  int64     // matrix, experts' apart
	adapter  int64     // numbers of the adapters on those matrices for a rank of 1

	held map[string]mem.Bytes // what heldAs has found
}

const usualSeq = 4096

func newFacts(model *modelfile.Model, use Use) *facts {
	f := &facts{model: model, shape: &model.Shape, label: Exact, held: map[string]mem.Bytes{}}
	if model.Format == modelfile.FormatConfig {
		f.label = Computed
	}
	var left []modelfile.Tensor
	f.tensors, left = model.Loaded()
	f.left = modelfile.Bytes(left)
	for i := range f.tensors {
		f.count(&f.tensors[i])
	}
	return f.of(use)
}

// of are the facts of another use of the same model.
func (f *facts) of(use Use) *facts {
	other := *f
	f = &other
	f.use = use
	if f.use.Seq == 0 {
		f.use.Seq = usualSeq
		if c := f.shape.Context; c > 0 {
			f.use.Seq = min(usualSeq, c)
		}
	}
	if f.serves() {
		f.use.Batch, f.use.Optimizer, f.use.Rank = 0, "", 0
		f.use.Utilization = cmp.Or(f.use.Utilization, f.share())
	} else {
		f.use.Users, f.use.Utilization = 0, 0
	}
	return f
}

// count adds a tensor to the sums.
func (f *facts) count(t *modelfile.Tensor) {
	n := t.Elements()
	f.elements += n
	if !f.gguf() && !f.model.Format.Graph() && len(t.Shape) > 1 && t.Type.Float() && t.Type.Bytes > 2 {
		f.halved = true
	}
	if !f.model.Format.Graph() && !t.Type.Float() && t.Type.Name != "BOOL" && len(t.Shape) > 1 {
		f.packed = true
	}
	if f.shape.Quantization == "mxfp4" && !t.Type.Float() && strings.Contains(t.Name, "expert") {
		f.padded += t.Bytes
	}
	if !isLinear(t) {
		return
	}
	f.linear += n
	if isExpert(t) {
		f.experts += n
		f.adapters += adaptersOf(t)
		return
	}
	f.largest = max(f.largest, n)
	f.adapter += adaptersOf(t)
}

// adaptersOf are the numbers of adapters of rank 1 on a matrix, or on each of several.
func adaptersOf(t *modelfile.Tensor) int64 {
	n, last := int64(1), len(t.Shape)-1
	for _, several := range t.Shape[:last-1] {
		n *= several
	}
	return n * (t.Shape[last-1] + t.Shape[last])
}

// isExpert says whether a matrix of a layer is one expert's, or that of several.
func isExpert(t *modelfile.Tensor) bool {
	return len(t.Shape) > 2 || strings.Contains(t.Name, "expert") && !strings.Contains(t.Name, "shared_expert")
}

// isLinear says whether a tensor is a matrix of a layer, or of all its experts: no embedding, no output, no norm, and
// not what chooses among experts.
func isLinear(t *modelfile.Tensor) bool {
	if len(t.Shape) < 2 || len(t.Shape) > 3 || t.Shape[len(t.Shape)-1] < 2 {
		return false
	}
	if !strings.HasSuffix(t.Name, ".weight") && !strings.Contains(t.Name, "expert") {
		return false
	}
	for _, other := range []string{"embed", "norm", "lm_head", ".wte.", ".wpe.", "wte.weight", "wpe.weight", "mlp.gate.weight",
		"mixer.gate.weight", "router", "block_sparse_moe.gate.", "conv1d", "vision", "visual", "_bias"} {
		if strings.Contains(t.Name, other) {
			return false
		}
	}
	for _, part := range []string{".layers.", ".h.", ".blocks.", "blk.", "layers."} {
		if strings.Contains(t.Name, part) || strings.HasPrefix(t.Name, strings.TrimPrefix(part, ".")) {
			return true
		}
	}
	return false
}

// blind says that only the weights are known.
func (f *facts) blind() bool { return f.shape.Hidden == 0 }

func (f *facts) gguf() bool    { return f.model.Format == modelfile.FormatGGUF }
func (f *facts) serves() bool  { return f.use.For == Serve }
func (f *facts) trains() bool  { return f.use.For != Serve && f.use.For != Infer }
func (f *facts) adapts() bool  { return f.use.For == LoRA || f.use.For == QLoRA }
func (f *facts) gpus() int64   { return int64(max(1, f.use.GPUs)) }
func (f *facts) batch() int64  { return int64(max(1, f.use.Batch)) }
func (f *facts) seq() int64    { return int64(f.use.Seq) }
func (f *facts) hidden() int64 { return int64(f.shape.Hidden) }

// share is the part of a GPU that a server takes where nobody says it.
func (f *facts) share() float64 {
	if f.gguf() {
		return 1
	}
	return 0.9
}

// possible refuses uses that cannot be had of such a model.
func (f *facts) possible() error {
	s := f.shape
	switch {
	case f.model.Format.Graph() && f.use.For != Infer:
		return fail.Usage("--for infer", "a file of %s is run, and neither served by vLLM nor trained", f.model.Format)
	case f.trains() && f.gguf():
		return fail.Input("give the safetensors that it was made from, or their config.json", "a GGUF is not trained on")
	case f.trains() && f.packed:
		return fail.Input("give the weights in 16 bits, or their config.json; with --for qlora they are packed then",
			"the weights are packed already: hightide plans trainings from weights in 16 or 32 bits")
	case f.trains() && (s.Layers == 0 || s.Hidden == 0):
		return fail.Input("put the model's config.json beside the weights", "without a configuration a training is not planned")
	case f.trains() && !f.adapts() && (f.use.Weights == "int4" || f.use.Weights == "fp8"):
		return fail.Usage("--for qlora trains adapters over weights of 4 bits; --for full takes --dtype bf16, fp16 or fp32",
			"--dtype %s: all weights are trained in 16 or 32 bits", f.use.Weights)
	case f.quantizes() && (f.packed || f.gguf()):
		return fail.Usage("leave --dtype out", "--dtype %s: the weights are packed already", f.use.Weights)
	case f.gguf() && f.use.Cache != "auto" && f.use.Cache != "":
		return fail.Usage("leave --kv-dtype out", "--kv-dtype %s is vLLM's, and a GGUF is served by llama.cpp", f.use.Cache)
	case f.use.GPUs > 1 && f.serves() && !f.gguf() && s.Heads > 0 && s.Heads%f.use.GPUs != 0:
		return fail.Usage(fmt.Sprintf("a number that divides %d", s.Heads),
			"--gpus %d: %d attention heads cannot be split evenly", f.use.GPUs, s.Heads)
	case f.serves() && !f.gguf() && uneven(s, f.gpus()):
		return fail.Usage(fmt.Sprintf("a number that divides %d, or a multiple of it", s.KVHeads),
			"--gpus %d: vLLM cannot share %d heads of keys and values evenly", f.use.GPUs, s.KVHeads)
	}
	return nil
}

// untried says that some layers keep a state: what training them takes is not known.
func (f *facts) untried() bool {
	return f.trains() && slices.ContainsFunc(f.shape.Caches, func(c modelfile.Cache) bool { return c.Kind == modelfile.CacheState })
}

// quantizes says whether weights are to be packed.
func (f *facts) quantizes() bool { return f.use.Weights == "fp8" || f.use.Weights == "int4" }

// NF4 as bitsandbytes has it with double quantization: 4 bits, a byte for 64 numbers, and 4 bytes for 256 of those.
const nf4 = 0.5 + 1.0/64 + 4.0/(64*256)

// int4 as AWQ and GPTQ have it: 4 bits, and for 128 numbers a scale of 16 bits and a zero of 4.
const int4 = 0.5 + 2.5/128

// weights are those that one GPU holds when they are not trained.
func (f *facts) weights(kind string) Portion {
	if f.byLayers() {
		return f.layersWeights(kind)
	}
	p := Portion{Name: "weights", Label: f.label, Basis: "as the files have them"}
	if f.label == Computed {
		p.Basis = "the sizes of the matrices follow from the configuration"
	}
	split, whole := f.heldAs(kind)
	if kind != "auto" {
		p.Basis = "the layers' matrices in " + kind + ", the rest in 16 bits"
		p.Label = Computed
	} else if f.halved && !f.packed {
		p.Basis, p.Label = "stored in 32 bits, loaded in 16", Computed
		if f.use.For == Infer {
			p.Basis += ", where the program says so; --dtype fp32 plans it as it is stored"
		}
	}
	p.Estimate = exactly(up(split, f.gpus()) + whole)
	if f.gguf() {
		f.beside(&p)
	}
	if f.padded > 0 && f.serves() && kind == "auto" {
		padding := exactly(up(f.padded, f.gpus())).times(0, 0.09, 0.14)
		p.Estimate, p.Label = p.plus(padding), mem.Estimated
		p.Basis += "; vLLM pads experts in MXFP4 to the sizes that its kernels take, by 0 to 14 %"
	}
	return p
}

// beside takes off what llama.cpp leaves in the host's memory: the table of the input, where the output is another.
func (f *facts) beside(p *Portion) {
	if t := f.tensor("token_embd.weight"); t != nil && f.tensor("output.weight") != nil {
		table := t.Bytes
		p.Low, p.Bytes, p.Label = p.Low-table, p.Bytes-table, mem.Estimated
		p.Basis = fmt.Sprintf("as the files have them; llama.cpp leaves the table of the input, %v, on the host", table)
	}
}

// heldAs is what the tensors take when they are loaded as a kind: what GPUs share among them, and what each has whole.
func (f *facts) heldAs(kind string) (split, whole mem.Bytes) {
	name := fmt.Sprintf("%s on %d", kind, f.gpus())
	if _, known := f.held[name]; !known {
		for i := range f.tensors {
			t := &f.tensors[i]
			b := f.converted(t, kind)
			all, share := 0.0, 1.0
			switch {
			case len(t.Shape) < 2:
				all, share = 1, 0
			case f.serves() && !f.gguf():
				all, share = copiedPart(t, f.shape, f.gpus())
			}
			whole += mem.Rounded(all * float64(b))
			split += mem.Rounded(share * float64(b))
		}
		f.held[name], f.held["-"+name] = split, whole
	}
	return f.held[name], f.held["-"+name]
}

// converted is what a tensor takes when it is loaded as a kind.
func (f *facts) converted(t *modelfile.Tensor, kind string) mem.Bytes {
	if !t.Type.Float() || f.gguf() || f.model.Format.Graph() {
		return t.Bytes
	}
	n := t.Elements()
	switch {
	case kind == "fp32":
		return mem.Bytes(4 * n)
	case kind == "fp8" && isLinear(t):
		return mem.Bytes(n) + mem.Bytes(4*t.Shape[0]) // a scale for each row
	case kind == "int4" && isLinear(t):
		return mem.Rounded(int4 * float64(n))
	case kind == "nf4" && isLinear(t):
		return mem.Rounded(nf4 * float64(n))
	case kind == "auto" && f.packed:
		return t.Bytes // scales and what else a packing keeps exact
	}
	return mem.Bytes(2 * n)
}

// up is a share of several, rounded up.
func up(b mem.Bytes, of int64) mem.Bytes { return (b + mem.Bytes(of) - 1) / mem.Bytes(of) }

// cacheBytes is what a number in the cache takes.
func (f *facts) cacheBytes() int64 {
	switch {
	case f.use.Cache == "fp8":
		return 1
	case f.shape.Type.Bytes == 4 && f.model.Format != modelfile.FormatGGUF:
		return 2 // loaded in 16 bits
	case f.shape.Type.Bytes > 0:
		return f.shape.Type.Bytes
	}
	return 2
}

// sequence is what one sequence of so many tokens takes in the cache of one GPU. Where layers look back on a window, the
// least is the window alone, the most all tokens: that depends on how the engine gives out its blocks.
func (f *facts) sequence(tokens int64) (e Estimate) {
	if f.byLayers() {
		return f.ofLayers(f.alone().sequence(tokens))
	}
	for i := range f.shape.Caches {
		c := &f.shape.Caches[i]
		layers := int64(c.Layers)
		if c.Kind == modelfile.CacheState {
			e = e.plus(Estimate{mem.Bytes(2 * layers * c.State), mem.Bytes(4 * layers * c.State),
				mem.Bytes(4 * layers * c.State)}.times(1/float64(f.gpus()), 1/float64(f.gpus()), 1))
			continue
		}
		token := layers * c.Numbers() * f.cacheBytes()
		if c.Kind != modelfile.CacheLatent { // of which each GPU has all
			heads := (int64(c.Heads) + f.gpus() - 1) / f.gpus()
			token = layers * heads * int64(c.Key+c.Value) * f.cacheBytes()
		}
		all := mem.Bytes(token * tokens)
		if c.Kind == modelfile.CacheWindow {
			window := mem.Bytes(token * min(tokens, int64(c.Window)))
			middle := mem.Bytes(token * min(tokens, int64(c.Window)+chunk))
			e = e.plus(Estimate{window, middle, all})
		} else {
			e = e.plus(exactly(all))
		}
	}
	return e
}

// chunk is how many tokens of a prompt a server works on at once beside a window.
const chunk = 2048

// perToken is what a further token of a long sequence takes in the cache of all GPUs together.
func (f *facts) perToken() (b mem.Bytes) {
	for i := range f.shape.Caches {
		if c := &f.shape.Caches[i]; c.Kind == modelfile.CacheAttention || c.Kind == modelfile.CacheLatent {
			b += mem.Bytes(int64(c.Layers) * c.Numbers() * f.cacheBytes())
		}
	}
	return b
}

// info is what the files say, for the answer.
func (f *facts) info() ModelInfo {
	m := ModelInfo{Format: f.model.Format, Kind: f.shape.Kind, Files: len(f.model.Files), Tensors: len(f.tensors),
		Elements: f.elements, Bytes: modelfile.Bytes(f.tensors), Label: f.label, Left: f.left, Context: f.shape.Context,
		PerToken: f.perToken(), Quantization: f.shape.Quantization, Caches: f.shape.Caches, Types: []TypeInfo{}}
	if m.Caches == nil {
		m.Caches = []modelfile.Cache{}
	}
	one := *f
	one.use.GPUs = 1
	m.PerSequence = one.sequence(f.seq())
	for i := range f.tensors {
		t := &f.tensors[i]
		at := slices.IndexFunc(m.Types, func(o TypeInfo) bool { return o.Type == t.Type.Name })
		if at < 0 {
			at = len(m.Types)
			m.Types = append(m.Types, TypeInfo{Type: t.Type.Name})
		}
		m.Types[at].Elements += t.Elements()
		m.Types[at].Bytes += t.Bytes
	}
	slices.SortStableFunc(m.Types, func(a, b TypeInfo) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return m
}

// share of a float, for whole numbers of tokens and sequences; never below zero.
func whole(n float64) int64 {
	if n < 0 || math.IsNaN(n) {
		return 0
	}
	return int64(min(n, 1<<50))
}

// byLayers says that GPUs have whole layers each, as llama.cpp gives them out by default (--split-mode layer).
func (f *facts) byLayers() bool { return f.gguf() && f.gpus() > 1 }

// alone are the same facts on one GPU.
func (f *facts) alone() *facts {
	one := *f
	one.use.GPUs = 1
	return &one
}

// ofLayers is what a GPU has of something that all layers take: at least an even share, else that of the most layers. The
// output counts as a layer. Source: get_layer_buft_list in llama.cpp's load_tensors.
func (f *facts) ofLayers(e Estimate) Estimate {
	even, layers, n := 1/float64(f.gpus()), int64(f.shape.Layers), f.gpus()
	if layers == 0 {
		return e.times(even, even, 1)
	}
	most := min(1, float64((layers+n)/n)/float64(layers))
	return e.times(even, most, most)
}

// layersWeights are those of one GPU of several. One has the output besides.
func (f *facts) layersWeights(kind string) Portion {
	p := f.alone().weights(kind)
	output := cmp.Or(f.tensor("output.weight"), f.tensor("token_embd.weight")) // the table of the input may be both
	p.Estimate, p.Label = f.ofLayers(p.Estimate), mem.Estimated
	if output != nil {
		p.High += output.Bytes
	}
	p.Basis += "; one GPU has the output besides its layers"
	return p
}

// tensor is the one of that name; nil: there is none.
func (f *facts) tensor(name string) *modelfile.Tensor {
	for i := range f.tensors {
		if f.tensors[i].Name == name {
			return &f.tensors[i]
		}
	}
	return nil
}
