package modelfile

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrNoWriter is of a model that hightide has no description of, and that is no decoder of texts.
var ErrNoWriter = errors.New("has an encoder: hightide does not know how its weights follow from its configuration")

// compute makes the tensors that the decoder of this configuration has.
func (c *config) compute() (*weights, error) {
	s := &c.shape
	switch {
	case !c.known && (encoders[s.Kind] || c.bool("is_encoder_decoder", false)):
		return nil, fmt.Errorf("%s %w", short(s.Kind), ErrNoWriter)
	case !c.known:
		return nil, fmt.Errorf("hightide does not know how the weights of %s follow from its configuration", short(s.Kind))
	case (s.Heads == 0 || s.HeadDim == 0) && !c.family.alone:
		return nil, errors.New("the configuration has no number of attention heads")
	case s.Layers*max(1, s.Experts) > maxTensors*16:
		return nil, errors.New("a model of so many layers and experts is larger than any")
	}
	p, err := c.packed()
	if err != nil {
		return nil, err
	}
	w := &weights{config: c, kind: s.Type, packing: p, kinds: c.layers()}
	w.decoder()
	return w, w.err
}

// decoder makes all tensors.
func (w *weights) decoder() {
	s, f := &w.shape, &w.family
	width := s.Hidden
	if n := w.int("word_embed_proj_dim"); n > 0 {
		width = n
	}
	w.add("model.embed_tokens", false, s.Vocabulary, width)
	if width != s.Hidden {
		w.add("model.project_in", false, s.Hidden, width)
		w.add("model.project_out", false, width, s.Hidden)
	}
	if f.learned > 0 {
		w.add("model.embed_positions", false, s.Context+f.learned-1, s.Hidden)
	}
	if f.embNorm {
		w.norm("model.embed_norm", s.Hidden)
	}
	for i := range s.Layers {
		w.layer(fmt.Sprintf("model.layers.%d", i), i)
	}
	if w.bool("do_layer_norm_before", true) && !w.bool("_remove_final_layer_norm", false) && !f.bare {
		w.norm("model.norm", s.Hidden)
	}
	headBias := w.bool("lm_head_bias", f.headBias || s.Kind == "ernie4_5_moe" && w.bool("use_bias", false))
	switch {
	case !w.tied:
		w.add("lm_head", headBias, s.Vocabulary, width)
	case headBias:
		w.vector("lm_head.bias", s.Vocabulary)
	}
}

func (w *weights) layer(name string, i int) {
	s, f := &w.shape, &w.family
	norms := f.norms
	if s.Kind == "falcon" && (w.bool("new_decoder_architecture", false) || !w.bool("parallel_attn", true)) {
		norms = 2
	}
	if s.Kind == "stablelm" && w.bool("use_parallel_residual", false) {
		norms = 1
	}
	for n := range norms {
		w.norm(fmt.Sprintf("%s.norm%d", name, n), s.Hidden)
	}
	if f.mixer != "" && stateful[w.kinds[i]] {
		w.mixer(name)
	}
	if s.Kind == "nemotron_h" {
		w.oneOf(name, i)
		return
	}
	switch {
	case f.mixer != "" && stateful[w.kinds[i]] && w.kinds[i] != layerBoth:
	case f.latent:
		w.latent(name + ".self_attn")
	default:
		w.attention(name + ".self_attn")
	}
	switch {
	case f.alone:
	case s.Experts > 0 && w.sparse(i):
		w.mixture(name + ".mlp")
	case s.Kind == "granitemoehybrid": // without experts the layer has what all tokens use
		w.mlp(name+".shared_mlp", false, s.SharedWidth)
	default:
		bias := w.bool("mlp_bias", w.bool("use_bias", w.bool("bias", f.mlp)))
		w.mlp(name+".mlp", bias, cmp.Or(w.int("intermediate_size_mlp"), s.Intermediate))
	}
}

// oneOf makes what a layer of Nemotron-H has where that is no mixer: attention, experts or an MLP, and nothing else.
func (w *weights) oneOf(name string, i int) {
	switch {
	case w.kinds[i] == layerFull:
		w.attention(name + ".mixer")
	case w.kinds[i] != layerNone:
	case w.sparse(i):
		w.mixture(name + ".mixer")
	default:
		w.mlp(name+".mixer", w.bool("mlp_bias", false), w.shape.Intermediate)
	}
}

// stateful are the kinds of layers that keep a state, whatever they do besides.
var stateful = map[string]bool{layerMamba: true, layerLinear: true, layerConv: true, layerBoth: true}

// attention makes the matrices of queries, keys, values and the output.
func (w *weights) attention(name string) {
	s, f := &w.shape, &w.family
	queries, keys := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	qkv := w.bool("attention_bias", w.bool("use_qkv_bias", w.bool("use_bias", w.bool("bias", f.qkv))))
	out := w.bool("use_bias", w.bool("bias", f.out))
	switch s.Kind {
	case "llama", "mistral", "granite", "nemotron", "cohere", "ministral", "hunyuan_v1_dense", "qwen3",
		"qwen3_vl_text", "qwen3_vl_moe_text",
		"qwen3_moe", "olmo2", "olmo3", "olmoe", "granitemoe", "gemma", "gemma2", "gemma3_text", "smollm3", "cohere2",
		"arcee", "bamba", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "qwen3_next", "qwen3_5_text",
		"qwen3_5_moe_text", "phimoe", "olmo", "cwm", "ministral3", "dots1", "hunyuan_v1_moe", "llama4_text":
		out = w.bool("attention_bias", f.out)
	case "nemotron_h":
		qkv, out = false, false
	case "glm4_moe_lite", "youtu", "flex_olmo", "apertus":
		out = w.bool("attention_bias", false)
	case "seed_oss":
		out = w.bool("attention_out_bias", false)
	case "opt":
		qkv = w.bool("enable_bias", true)
		out = qkv
	}
	if f.mixer == mixDelta { // with a gate for each number
		w.linear(name+".q_proj", qkv, 2*queries, s.Hidden)
		w.linear(name+".k_proj", qkv, keys, s.Hidden)
		w.linear(name+".v_proj", qkv, keys, s.Hidden)
	} else if f.fused {
		w.linear(name+".qkv_proj", qkv, queries+2*keys, s.Hidden)
	} else {
		w.linear(name+".q_proj", qkv, queries, s.Hidden)
		w.linear(name+".k_proj", qkv, keys, s.Hidden)
		w.linear(name+".v_proj", qkv, keys, s.Hidden)
	}
	w.linear(name+".o_proj", out, s.Hidden, queries)
	switch {
	case f.qkNorm == 1, s.Kind == "glm4_moe" && w.bool("use_qk_norm", false):
		w.vector(name+".q_norm.weight", s.HeadDim)
		w.vector(name+".k_norm.weight", s.HeadDim)
	case s.Kind == "phi" && w.bool("qk_layernorm", false):
		w.norm(name+".q_norm", s.HeadDim)
		w.norm(name+".k_norm", s.HeadDim)
	case f.qkNorm == 2, s.Kind == "cohere" && w.bool("use_qk_norm", false),
		s.Kind == "stablelm" && w.bool("qk_layernorm", false):
		w.vector(name+".q_norm.weight", queries)
		w.vector(name+".k_norm.weight", keys)
	}
	if f.sinks {
		w.vector(name+".sinks", s.Heads)
	}
}

// latent makes the matrices of attention over a latent vector.
func (w *weights) latent(name string) {
	s := &w.shape
	rope, nope, value := w.int("qk_rope_head_dim"), w.int("qk_nope_head_dim"), w.int("v_head_dim")
	rank := w.int("kv_lora_rank")
	bias := w.bool("attention_bias", false)
	if n := w.int("q_lora_rank"); n > 0 {
		w.linear(name+".q_a_proj", bias, n, s.Hidden)
		w.vector(name+".q_a_layernorm.weight", n)
		w.linear(name+".q_b_proj", false, s.Heads*(nope+rope), n)
	} else {
		w.linear(name+".q_proj", false, s.Heads*(nope+rope), s.Hidden)
	}
	w.linear(name+".kv_a_proj_with_mqa", bias, rank+rope, s.Hidden)
	w.vector(name+".kv_a_layernorm.weight", rank)
	w.linear(name+".kv_b_proj", false, s.Heads*(nope+value), rank)
	w.linear(name+".o_proj", bias, s.Hidden, s.Heads*value)
}

// sparse says whether a layer has experts.
func (w *weights) sparse(i int) bool {
	switch {
	case w.family.always:
		return true
	case w.shape.Kind == "nemotron_h":
		return w.choosesExperts(i)
	case len(list[string](w.fields, "mlp_layer_types")) == w.shape.Layers:
		return list[string](w.fields, "mlp_layer_types")[i] == "sparse"
	case w.shape.Kind == "glm4_moe_lite" && i == 0, i < w.int("num_dense_layers"):
		return false
	case i < w.int("first_k_dense_replace"), contains(list[int](w.fields, "mlp_only_layers"), i):
		return false
	}
	if w.shape.Kind == "llama4_text" {
		if listed := list[int](w.fields, "moe_layers"); listed != nil {
			return contains(listed, i)
		}
		return (i+1)%max(1, w.int("interleave_moe_layer_step")) == 0
	}
	if w.shape.Kind == "ernie4_5_moe" {
		last := w.int("moe_layer_end_index")
		return i >= w.int("moe_layer_start_index") && (last <= 0 || i <= last) &&
			(i+1)%max(1, w.int("moe_layer_interval")) == 0
	}
	if period := w.int("expert_layer_period"); period > 0 {
		return i%period == w.int("expert_layer_offset")
	}
	step := max(w.int("decoder_sparse_step", "moe_layer_freq"), 1)
	if w.int("decoder_sparse_step") > 0 {
		return (i+1)%step == 0
	}
	return i%step == 0
}

func (w *weights) mlp(name string, bias bool, width int) {
	hidden := w.shape.Hidden
	switch {
	case w.family.fusedMLP:
		w.linear(name+".gate_up_proj", bias, 2*width, hidden)
	case w.family.gated:
		w.linear(name+".gate_proj", bias, width, hidden)
		fallthrough
	default:
		w.linear(name+".up_proj", bias, width, hidden)
	}
	w.linear(name+".down_proj", bias, hidden, width)
	if w.shape.Kind == "apertus" { // numbers of its activation
		w.vector(name+".act_fn", 4)
	}
}

// mixture makes the experts of a layer, and what chooses among them.
func (w *weights) mixture(name string) {
	s, f := &w.shape, &w.family
	switch {
	case s.Kind == "hunyuan_v1_moe": // a module of its own
		w.typed(F32, name+".gate.wg.weight", s.Experts, s.Hidden)
	case f.wide:
		w.typed(F32, name+".gate.weight", s.Experts, s.Hidden)
	default:
		w.add(name+".gate", f.router, s.Experts, s.Hidden)
	}
	if f.sum.Bytes > 0 && w.bool("use_expert_bias", true) {
		w.typed(f.sum, name+".gate.e_score_correction_bias", s.Experts)
	}
	wide, first := s.Hidden, 2*s.ExpertWidth
	if !f.gated {
		first = s.ExpertWidth
	}
	if n := w.int("moe_latent_size"); n > 0 {
		wide = n
		w.linear(name+".fc1_latent_proj", w.bool("mlp_bias", false), n, s.Hidden)
		w.linear(name+".fc2_latent_proj", w.bool("mlp_bias", false), s.Hidden, n)
	}
	w.linear(name+".experts.gate_up_proj", false, s.Experts, first, wide)
	w.linear(name+".experts.down_proj", false, s.Experts, wide, s.ExpertWidth)
	if f.experts {
		w.vector(name+".experts.gate_up_proj_bias", s.Experts, 2*s.ExpertWidth)
		w.vector(name+".experts.down_proj_bias", s.Experts, s.Hidden)
	}
	if s.SharedWidth > 0 {
		bias := (s.Kind == "deepseek_v2" || s.Kind == "nemotron_h") && w.bool("mlp_bias", false) ||
			s.Kind == "ernie4_5_moe" && w.bool("use_bias", false)
		w.mlp(name+".shared_expert", bias, s.SharedWidth)
	}
	if f.gate {
		w.add(name+".shared_expert_gate", false, 1, s.Hidden)
	}
}
