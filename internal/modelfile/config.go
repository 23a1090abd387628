package modelfile

import (
	"cmp"
	"fmt"
	"strings"
)

// config is a configuration: the decoder's part of it, and what it says besides.
type config struct {
	fields
	whole  fields // the decoder's part lies in them, or is them
	shape  Shape
	family family
	known  bool // family is that of the kind
	tied   bool // the output shares the embedding's weights
	parted bool // it also describes parts besides the decoder
}

// typeOf is the first type that a configuration names; 16 bits where it names none, as published models have.
func typeOf(names ...string) Type {
	for _, name := range names {
		switch strings.TrimPrefix(name, "torch.") {
		case "float32":
			return F32
		case "float16":
			return F16
		case "bfloat16":
			return BF16
		}
	}
	return BF16
}

// usualParts are what part of a head rotary embeddings turn where the configuration does not say it, by kind; others turn
// all of it. Source: the classes of transformers.
var usualParts = map[string]float64{"bamba": 0.5, "glm": 0.5, "glm4": 0.5, "glm4_moe": 0.5, "glm4v_moe_text": 0.5,
	"phi": 0.5, "nemotron": 0.5,
	"stablelm": 0.25, "gpt_neox": 0.25, "qwen3_next": 0.25}

// sizes reads the numbers of the decoder, by the names that architectures have for them.
func (c *config) sizes() {
	s := &c.shape
	s.Layers = c.int("num_hidden_layers", "n_layer", "n_layers", "num_layers")
	if n := c.blocks(); s.Kind == "nemotron_h" && n > 0 {
		s.Layers = n
	}
	s.NextLayers = c.int("num_nextn_predict_layers", "mtp_num_hidden_layers")
	s.Hidden = c.int("hidden_size", "n_embd", "d_model")
	s.Vocabulary = c.int("vocab_size", "padded_vocab_size")
	s.Context = c.int("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")
	s.Heads = c.int("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
	s.KVHeads = c.int("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
	if c.bool("multi_query", false) && !c.bool("new_decoder_architecture", false) {
		s.KVHeads = 1
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadDim = c.int("head_dim", "attention_head_dim", "kv_channels", "d_kv"); s.HeadDim == 0 {
		if s.HeadDim = c.family.headDim; s.HeadDim == 0 && s.Heads > 0 {
			s.HeadDim = s.Hidden / s.Heads
		}
	}
	s.Intermediate = c.int("block_ff_dim", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff")
	if s.Kind == "lfm2" && c.bool("block_auto_adjust_ff_dim", true) {
		s.Intermediate = c.adjusted(s.Intermediate)
	}
	s.Gated = c.family.gated || !c.known
	s.LayerNorm = c.family.normBias
	switch c.text("activation_function") + c.text("hidden_act") {
	case "gelu_new", "gelu_fast", "quick_gelu":
		s.Composed = true
	case "":
		s.Composed = c.family.composed
	}
	if s.Intermediate == 0 {
		s.Intermediate = 4 * s.Hidden
	}
	if c.known && !c.family.rotary() || s.Kind == "granitemoehybrid" && c.text("position_embedding_type") != "rope" {
		return
	}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		s.Sections = s.Sections || c.object(name)["mrope_section"] != nil
	}
	part := c.float("partial_rotary_factor")
	if part == 0 {
		part = c.object("rope_parameters").float("partial_rotary_factor")
	}
	if part == 0 {
		part = c.float("rotary_pct")
	}
	if part == 0 {
		part = usualParts[s.Kind]
	}
	if part <= 0 || part > 1 {
		part = 1
	}
	s.Context = c.stretched(s.Context)
	s.RotaryDim = int(float64(s.HeadDim) * part)
	if n := c.int("qk_rope_head_dim"); n > 0 {
		s.RotaryDim = n
	}
}

// stretched is how many positions a model has whose rotary embeddings are scaled, as vLLM and transformers reckon it:
// the factor goes with the positions, but where max_position_embeddings is after it already.
func (c *config) stretched(positions int) int {
	scaling := c.object("rope_scaling")
	if len(scaling) == 0 {
		scaling = c.object("rope_parameters")
	}
	factor := scaling.float("factor")
	switch cmp.Or(scaling.text("rope_type"), scaling.text("type")) {
	case "yarn":
		positions = cmp.Or(scaling.int("original_max_position_embeddings"), positions)
	case "linear", "dynamic":
	default: // llama3, longrope: as they are told
		return positions
	}
	if factor < 1 || factor > 1024 || strings.HasPrefix(c.shape.Kind, "gemma3") {
		return positions
	}
	return int(float64(positions) * factor)
}

// adjusted is the width of LFM2's MLPs: two thirds of what it says, in whole multiples.
func (c *config) adjusted(width int) int {
	multiple := cmp.Or(c.int("block_multiple_of"), 256)
	width = 2 * min(width, most) / 3
	if part := c.float("block_ffn_dim_multiplier"); part > 0 && part < most {
		width = int(part * float64(width))
	}
	return (width + multiple - 1) / multiple * multiple
}

// experts reads how the MLPs of a mixture of experts are made.
func (c *config) experts() {
	s := &c.shape
	s.SharedWidth = c.int("shared_expert_intermediate_size", "shared_intermediate_size",
		"moe_shared_expert_intermediate_size")
	s.Experts = c.int("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
	if s.Experts == 0 {
		return
	}
	s.ExpertsUsed = c.int("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k")
	if each := list[int](c.fields, "moe_topk"); len(each) > 0 {
		s.ExpertsUsed = each[0] // of Hunyuan's layers, all alike
	}
	if s.ExpertsUsed <= 0 {
		s.ExpertsUsed = 1
	}
	s.ExpertWidth = c.int("moe_intermediate_size")
	if s.ExpertWidth == 0 {
		s.ExpertWidth = s.Intermediate
	}
	if s.Kind == "llama4_text" || s.Kind == "hunyuan_v1_moe" {
		s.SharedWidth = s.Intermediate
	}
	if n := c.int("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"); n > 0 && s.SharedWidth == 0 {
		s.SharedWidth = n * s.ExpertWidth
	}
}

// check refuses numbers with which nothing can be computed.
func (c *config) check() error {
	s := &c.shape
	for name, n := range map[string]int{"num_hidden_layers": s.Layers, "hidden_size": s.Hidden, "vocab_size": s.Vocabulary} {
		if n == 0 {
			return &Error{Offset: -1, Err: fmt.Errorf("a configuration of %s without a %s that hightide understands",
				short(s.Kind), name)}
		}
	}
	for _, n := range []int{s.Layers, s.NextLayers, s.Heads, s.KVHeads, s.HeadDim, s.Experts} {
		if n > 1<<16 {
			return &Error{Offset: -1, Err: fmt.Errorf("a configuration with the size %d", n)}
		}
	}
	for _, n := range []int{s.Hidden, s.Intermediate, s.ExpertWidth, s.SharedWidth} {
		if n > most {
			return &Error{Offset: -1, Err: fmt.Errorf("a configuration with the size %d", n)}
		}
	}
	return nil
}
