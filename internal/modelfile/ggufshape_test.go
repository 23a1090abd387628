package modelfile

import (
	"slices"
	"testing"
)

// header is what a GGUF of a kind says of itself.
func header(kind string, values map[string]any) *gguf {
	g := &gguf{values: map[string]any{"general.architecture": kind}}
	for _, name := range []string{"block_count", "embedding_length", "attention.head_count"} {
		g.values[kind+"."+name] = map[string]any{"block_count": int64(6), "embedding_length": int64(512),
			"attention.head_count": int64(8)}[name]
	}
	for name, value := range values {
		g.values[kind+"."+name] = value
	}
	return g
}

// TestCachesOfGGUF: what llama.cpp keeps of a sequence, by the keys that converters write.
func TestCachesOfGGUF(t *testing.T) {
	list := func(all ...int64) (values []any) {
		for _, n := range all {
			values = append(values, n)
		}
		return values
	}
	full := func(layers, heads, width int) Cache {
		return Cache{Kind: CacheAttention, Layers: layers, Heads: heads, Key: width, Value: width}
	}
	window := func(layers, heads, width, tokens int) Cache {
		c := full(layers, heads, width)
		c.Kind, c.Window = CacheWindow, tokens
		return c
	}
	for name, test := range map[string]struct {
		kind   string
		values map[string]any
		want   []Cache
	}{
		"all heads":     {"llama", nil, []Cache{full(6, 8, 64)}},
		"grouped heads": {"llama", map[string]any{"attention.head_count_kv": int64(2)}, []Cache{full(6, 2, 64)}},
		"own widths": {"gemma", map[string]any{"attention.key_length": int64(256), "attention.value_length": int64(256)},
			[]Cache{full(6, 8, 256)}},
		"every sixth": {"gemma3", map[string]any{"attention.sliding_window": int64(100)},
			[]Cache{window(5, 8, 64, 100), full(1, 8, 64)}},
		"every other": {"gpt-oss", map[string]any{"attention.sliding_window": int64(128)},
			[]Cache{window(3, 8, 64, 128), full(3, 8, 64)}},
		"a pattern": {"new", map[string]any{"attention.sliding_window": int64(32),
			"attention.sliding_window_pattern": list(1, 1, 0, 1, 1, 0)}, []Cache{window(4, 8, 64, 32), full(2, 8, 64)}},
		"a window that llama.cpp leaves alone": {"phi3", map[string]any{"attention.sliding_window": int64(32)},
			[]Cache{full(6, 8, 64)}},
		"heads by layer": {"lfm2", map[string]any{"attention.head_count_kv": list(0, 0, 2, 0, 4, 4)},
			[]Cache{{Kind: CacheState, Layers: 3}, full(1, 2, 64), full(2, 4, 64)}},
		"latent": {"deepseek2", map[string]any{"attention.kv_lora_rank": int64(512), "attention.key_length": int64(576),
			"attention.value_length": int64(512), "attention.key_length_mla": int64(192), "attention.head_count_kv": int64(1)},
			[]Cache{{Kind: CacheLatent, Layers: 6, Heads: 1, Key: 576}}},
		"shared by the last layers": {"gemma3n", map[string]any{"attention.shared_kv_layers": int64(2)},
			[]Cache{full(4, 8, 64)}},
		"hybrid": {"qwen3next", map[string]any{"full_attention_interval": int64(3), "ssm.inner_size": int64(16),
			"ssm.state_size": int64(4), "ssm.group_count": int64(2), "ssm.conv_kernel": int64(4)},
			[]Cache{{Kind: CacheState, Layers: 4, State: (16+2*2*4)*3 + 16*4}, full(2, 8, 64)}},
		"states alone": {"mamba", map[string]any{"attention.head_count": int64(0), "ssm.inner_size": int64(16),
			"ssm.state_size": int64(4), "ssm.conv_kernel": int64(4)},
			[]Cache{{Kind: CacheState, Layers: 6, State: 16*3 + 16*4}}},
		"an encoder": {"bert", map[string]any{"attention.causal": int64(0)}, nil},
	} {
		s := header(test.kind, test.values).shape(nil)
		if !slices.Equal(s.Caches, test.want) {
			t.Errorf("%s: %+v, want %+v", name, s.Caches, test.want)
		}
		if unknown := len(s.Unknown) > 0; unknown != (name == "heads by layer") {
			t.Errorf("%s: %q", name, s.Unknown)
		}
	}
}
