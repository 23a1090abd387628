package usage

import (
	"testing"

	"hightide/internal/mem"
)

// TestRules: what a block is for, by the frames of who allocated it and by its life.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		file, function string
		life           string
		want           string
	}{
		{"/lib/transformers/cache_utils.py", "update", "kept", "KV cache"},
		{"/lib/transformers/cache_utils.py", "__init__", "start", "KV cache"},
		{"/lib/litgpt/model.py", "build_kv_cache", "kept", "KV cache"},
		{"model.py", "setup_caches", "start", "KV cache"},
		{"/lib/bitsandbytes/functional.py", "dequantize_4bit", "kept", "temporaries"},
		{"/lib/bitsandbytes/functional.py", "dequantize_4bit", "start", "parameters"},
		{"/lib/transformers/modeling_utils.py", "from_pretrained", "kept", "parameters"},
		{"train.py", "backward", "kept", "gradients"},
	} {
		var m made
		stack := m.calls(mem.Location{File: c.file, Line: 3, Function: c.function}, mem.Location{File: "train.py", Line: 9, Function: "main"})
		if c.life == "start" {
			block := mem.Block{Address: 1 << 50, Size: mem.MiB, Requested: mem.MiB, State: mem.BlockAllocated, Stack: stack}
			m.Segments = []mem.Segment{{Address: 1 << 50, Size: mem.MiB, Blocks: []mem.Block{block}}}
		} else {
			m.alloc(stack, mem.MiB)
		}
		d := m.device()
		if got := NewCategories(d, nil).Of(0); got != c.want {
			t.Errorf("%s:%s, %s: %s, want %s", c.file, c.function, c.life, got, c.want)
		}
	}
}
