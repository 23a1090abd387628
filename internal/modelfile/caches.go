package modelfile

import (
	"cmp"
	"fmt"
	"strings"
)

// The kinds of layers, as layer_types of a configuration names them.
const (
	layerFull    = "full_attention"
	layerWindow  = "sliding_attention"
	layerChunked = "chunked_attention"
	layerLinear  = "linear_attention"
	layerMamba   = "mamba"
	layerConv    = "conv"
	layerBoth    = "hybrid" // attention and mamba beside each other
	layerNone    = "none"   // an MLP alone
)

// layerNames are other names for those.
var layerNames = map[string]string{"attention": layerFull, "global": layerFull, "local": layerWindow,
	"sliding_window": layerWindow, "mamba2": layerMamba, "moe": layerNone, "mlp": layerNone,
	"short_conv": layerConv, "recurrent": layerLinear}

// caches groups the layers by what they keep.
func (c *config) caches() []Cache {
	s := &c.shape
	if c.bool("is_encoder_decoder", false) {
		s.Unknown = append(s.Unknown, "what an encoder-decoder keeps of a sequence is not computed")
		return nil
	}
	if encoders[s.Kind] {
		return nil
	}
	kinds := c.layers()
	var all []Cache
	for _, kind := range kinds {
		parts := []string{kind}
		if kind == layerBoth {
			parts = []string{layerFull, layerMamba}
		}
		for _, part := range parts {
			if cache, keeps := c.cache(part); keeps {
				all = count(all, cache)
			}
		}
	}
	if n := c.int("num_kv_shared_layers"); n > 0 && n < len(kinds) {
		all = c.shared(kinds[:len(kinds)-n])
	}
	if !c.known && !c.understood() {
		s.Unknown = append(s.Unknown, fmt.Sprintf("hightide has no description of %s: its cache is taken as the fields of "+
			"the configuration have it", short(s.Kind)))
	}
	return all
}

// shared are the caches where the last layers use those of earlier ones.
func (c *config) shared(kinds []string) (all []Cache) {
	for _, kind := range kinds {
		if cache, keeps := c.cache(kind); keeps {
			all = count(all, cache)
		}
	}
	return all
}

// count adds a layer to those of its kind.
func count(all []Cache, one Cache) []Cache {
	for i := range all {
		same := all[i]
		same.Layers = one.Layers
		if same == one {
			all[i].Layers++
			return all
		}
	}
	return append(all, one)
}

// cache is what one layer of a kind keeps; false: nothing.
func (c *config) cache(kind string) (Cache, bool) {
	s := &c.shape
	one := Cache{Kind: CacheAttention, Layers: 1, Heads: s.KVHeads, Key: s.HeadDim, Value: s.HeadDim}
	switch kind {
	case layerNone:
		return one, false
	case layerMamba, layerLinear, layerConv:
		n := c.state(kind)
		if n == 0 {
			c.unknownState(kind)
		}
		return Cache{Kind: CacheState, Layers: 1, State: n}, true
	case layerWindow:
		one.Kind, one.Window = CacheWindow, c.int("sliding_window", "attn_window_size")
	case layerChunked:
		one.Kind, one.Window = CacheWindow, c.int("attention_chunk_size")
	case layerFull:
		if n := c.int("global_head_dim"); n > 0 {
			one.Key, one.Value = n, n
		}
		if n := c.int("num_global_key_value_heads"); n > 0 {
			one.Heads = n
		}
	}
	if rank := c.int("kv_lora_rank"); rank > 0 {
		one.Kind, one.Heads, one.Key, one.Value = CacheLatent, 1, rank+c.int("qk_rope_head_dim"), 0
	}
	if one.Window == 0 && one.Kind == CacheWindow {
		one.Kind = CacheAttention
	}
	if n := c.int("v_head_dim"); n > 0 && one.Kind != CacheLatent {
		one.Value = n
	}
	return one, one.Numbers() > 0
}

// unknownState says once that states of a kind are not counted.
func (c *config) unknownState(kind string) {
	text := fmt.Sprintf("the state of layers of the kind %s is not counted: the configuration does not tell its size",
		short(kind))
	for _, said := range c.shape.Unknown {
		if said == text {
			return
		}
	}
	c.shape.Unknown = append(c.shape.Unknown, text)
}

// state is how many numbers a sequence takes in a layer that keeps no tokens.
func (c *config) state(kind string) int64 {
	s := &c.shape
	product := func(sizes ...int) int64 {
		n := int64(1)
		for _, size := range sizes {
			n *= int64(min(size, most))
		}
		return n
	}
	switch kind {
	case layerConv:
		return product(s.Hidden, c.int("conv_L_cache"))
	case layerLinear:
		keys := c.int("linear_num_key_heads") * c.int("linear_key_head_dim")
		values := c.int("linear_num_value_heads") * c.int("linear_value_head_dim")
		return product(2*keys+values, c.int("linear_conv_kernel_dim")) +
			product(c.int("linear_num_value_heads"), c.int("linear_key_head_dim"), c.int("linear_value_head_dim"))
	}
	width := c.int("ssm_state_size", "mamba_d_state", "state_size", "mamba_state_dim")
	kernel := c.int("conv_kernel", "mamba_d_conv", "mamba_conv_kernel")
	if heads := c.int("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"); heads > 0 {
		inner := heads * c.int("mamba_head_dim", "mamba_d_head")
		if inner == 0 { // "auto"
			inner = c.inner()
		}
		groups := max(c.int("n_groups", "mamba_n_groups", "mamba_ngroups"), 1)
		return product(inner+2*groups*width, kernel) + product(inner, width)
	}
	inner := c.int("mamba_intermediate_size", "d_inner")
	if s.Kind == "mamba" || s.Kind == "falcon_mamba" {
		inner = c.int("intermediate_size")
	}
	if inner == 0 {
		inner = c.inner()
	}
	if s.Kind == "mamba2" {
		groups := max(c.int("n_groups"), 1)
		return product(inner+2*groups*width, kernel) + product(inner, width)
	}
	return product(inner, kernel) + product(inner, width)
}

// inner is the width of the states' input: mamba_expand, or expand, times that of the model.
func (c *config) inner() int {
	if n := c.int("mamba_d_ssm"); n > 0 {
		return n
	}
	if c.shape.Kind == "nemotron_h" {
		return min(c.int("mamba_num_heads"), most) * min(c.int("mamba_head_dim"), most)
	}
	return min(cmp.Or(c.int("mamba_expand", "expand"), 2), most) * c.shape.Hidden
}

// encoders keep nothing of a sequence.
var encoders = map[string]bool{"bert": true, "roberta": true, "xlm-roberta": true, "distilbert": true, "albert": true,
	"electra": true, "deberta-v2": true, "modernbert": true, "mpnet": true, "nomic_bert": true, "vit": true}

// layers are the kinds of the layers, one each.
func (c *config) layers() []string {
	s := &c.shape
	for _, name := range []string{"layer_types", "layers_block_type", "attn_type_list"} {
		if named := list[string](c.fields, name); len(named) == s.Layers {
			for i, kind := range named {
				if other, known := layerNames[kind]; known {
					named[i] = other
				}
				if named[i] == layerLinear && strings.HasPrefix(c.family.mixer, "mamba") { // newer transformers' name
					named[i] = layerMamba
				}
			}
			return named
		}
	}
	rule := layouts[s.Kind]
	if rule == nil {
		rule = c.windowed
	}
	all := make([]string, s.Layers)
	for i := range all {
		all[i] = rule(c, i)
	}
	return all
}

// understood says whether a kind is one whose layers are known, though its weights do not follow from its configuration.
func (c *config) understood() bool {
	return layouts[c.shape.Kind] != nil || len(list[string](c.fields, "layer_types")) == c.shape.Layers
}

// windowed is the rule of most architectures: a window, where one is set, is that of all layers.
func (*config) windowed(c *config, i int) string {
	window := c.int("sliding_window") > 0
	if !c.bool("use_sliding_window", window) || !window {
		return layerFull
	}
	if _, has := c.fields["use_sliding_window"]; has && i < c.int("max_window_layers") {
		return layerFull
	}
	return layerWindow
}

// layouts say of what kind a layer is, for architectures whose older configurations do not list it.
var layouts = map[string]func(*config, int) string{
	"gemma2":           func(_ *config, i int) string { return either(i%2 == 0, layerWindow, layerFull) },
	"gpt_oss":          func(_ *config, i int) string { return either(i%2 == 0, layerWindow, layerFull) },
	"gemma3":           everyNth(layerWindow, 6, "sliding_window_pattern"),
	"gemma3_text":      everyNth(layerWindow, 6, "sliding_window_pattern"),
	"cohere2":          everyNth(layerWindow, 4, "sliding_window_pattern"),
	"olmo3":            everyNth(layerWindow, 4, "sliding_window_pattern"),
	"exaone4":          everyNth(layerWindow, 4, "sliding_window_pattern"),
	"qwen3_next":       everyNth(layerLinear, 4, "full_attention_interval"),
	"qwen3_5_text":     everyNth(layerLinear, 4, "full_attention_interval"),
	"qwen3_5_moe_text": everyNth(layerLinear, 4, "full_attention_interval"),
	"granitemoehybrid": func(*config, int) string { return layerMamba },
	"llama4_text":      chunked,
	"jamba": func(c *config, i int) string {
		return either(i%max(c.int("attn_layer_period"), 1) == c.int("attn_layer_offset"), layerFull, layerMamba)
	},
	"bamba": func(c *config, i int) string {
		return either(contains(list[int](c.fields, "attn_layer_indices"), i), layerFull, layerMamba)
	},
	"lfm2":         attendsAt,
	"lfm2_moe":     attendsAt,
	"exaone_moe":   everyNth(layerWindow, 4, "sliding_window_pattern"),
	"nemotron_h":   patterned,
	"mamba":        func(*config, int) string { return layerMamba },
	"mamba2":       func(*config, int) string { return layerMamba },
	"falcon_mamba": func(*config, int) string { return layerMamba },
	"falcon_h1":    func(*config, int) string { return layerBoth },
}

// attendsAt is the rule of LFM2, which lists the layers with attention.
func attendsAt(c *config, i int) string {
	return either(contains(list[int](c.fields, "full_attn_idxs"), i), layerFull, layerConv)
}

// everyNth is the rule of architectures in which every n-th layer looks back on all tokens.
func everyNth(other string, usual int, field string) func(*config, int) string {
	return func(c *config, i int) string {
		n := c.int(field)
		if n == 0 {
			n = usual
		}
		return either((i+1)%n == 0, layerFull, other)
	}
}

// chunked is the rule of Llama 4: layers without rotary embeddings look back on all tokens.
func chunked(c *config, i int) string {
	if list := list[int](c.fields, "no_rope_layers"); i < len(list) {
		return either(list[i] == 0, layerFull, layerChunked)
	}
	return either((i+1)%4 == 0, layerFull, layerChunked)
}

// patterned is the rule of Nemotron-H, a letter for a layer.
func patterned(c *config, i int) string {
	pattern := c.text("hybrid_override_pattern")
	if i >= len(pattern) {
		return layerFull
	}
	switch {
	case pattern[i] == 'M':
		return layerMamba
	case strings.ContainsRune("-E", rune(pattern[i])):
		return layerNone
	}
	return layerFull
}

func either(is bool, a, b string) string {
	if is {
		return a
	}
	return b
}

func contains(all []int, one int) bool {
	for _, n := range all {
		if n == one {
			return true
		}
	}
	return false
}
