package modelfile

// shape is what the values of a GGUF header say of the architecture.
func (g *gguf) shape(tensors []Tensor) Shape {
	kind, _ := g.values["general.architecture"].(string)
	s := Shape{Kind: kind, Type: F16}
	key := func(name string) string { return kind + "." + name }
	s.Layers = g.int(key("block_count"))
	if n := g.int(key("nextn_predict_layers")); n > 0 && n < s.Layers {
		s.Layers, s.NextLayers = s.Layers-n, n
	}
	s.Hidden = g.int(key("embedding_length"))
	s.Intermediate = g.int(key("feed_forward_length"))
	s.Heads = g.int(key("attention.head_count"))
	s.Context = g.int(key("context_length"))
	s.Experts = g.int(key("expert_count"))
	s.ExpertsUsed = g.int(key("expert_used_count"))
	s.ExpertWidth = g.int(key("expert_feed_forward_length"))
	s.SharedWidth = g.int(key("expert_shared_feed_forward_length"))
	if s.RotaryDim = g.int(key("rope.dimension_count")); s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	s.KVHeads = s.Heads
	if n := g.int(key("attention.head_count_kv")); n > 0 {
		s.KVHeads = n
	}
	if n, ok := g.values["tokenizer.ggml.tokens"].(counted); ok {
		s.Vocabulary = int(min(n, most*64))
	}
	for i := range tensors {
		switch t := &tensors[i]; t.Name {
		case "token_embd.weight":
			if len(t.Shape) == 2 {
				s.Vocabulary = int(t.Shape[0])
			}
		case "blk.0.ffn_gate.weight":
			s.Gated = true
		}
	}
	if s.Experts > 0 {
		s.Gated = true
	}
	g.caches(&s, key)
	return s
}

// caches groups the layers by what they keep, as llama.cpp does.
func (g *gguf) caches(s *Shape, key func(string) string) {
	recurrent := g.int(key("ssm.inner_size")) > 0 && s.Heads == 0
	if s.Layers == 0 || s.Layers > 1<<16 || s.Heads == 0 && !recurrent || s.Hidden == 0 {
		s.Unknown = append(s.Unknown, "the header does not say how many layers and heads there are: the cache is not known")
		return
	}
	if causal, ok := g.values[key("attention.causal")].(int64); ok && causal == 0 {
		return // an encoder keeps nothing
	}
	length := func(name string, usual int) int {
		if n := g.int(key("attention." + name)); n > 0 {
			return n
		}
		return usual
	}
	width, value := length("key_length", s.HeadDim), length("value_length", s.HeadDim)
	s.HeadDim = width
	latent := g.int(key("attention.kv_lora_rank"))
	window := g.int(key("attention.sliding_window"))
	for i := range s.Layers - min(g.int(key("attention.shared_kv_layers")), s.Layers) {
		heads := g.ofLayer(key("attention.head_count_kv"), i, s.KVHeads)
		if latent > 0 && g.int(key("attention.key_length_mla")) > 0 {
			s.Caches = count(s.Caches, Cache{Kind: CacheLatent, Layers: 1, Heads: 1, Key: width, Value: 0})
			continue
		}
		if heads == 0 || g.recurrent(key, i) {
			n := g.state(key)
			if n == 0 {
				s.Unknown = []string{"the state of some layers is not counted: the header does not tell its size"}
			}
			s.Caches = count(s.Caches, Cache{Kind: CacheState, Layers: 1, State: n})
			continue
		}
		one := Cache{Kind: CacheAttention, Layers: 1, Heads: heads, Key: width, Value: value}
		if window > 0 && g.slides(s.Kind, key, i) {
			one.Kind, one.Window = CacheWindow, window
			one.Key, one.Value = length("key_length_swa", width), length("value_length_swa", value)
		}
		s.Caches = count(s.Caches, one)
	}
}

// slides says whether a layer looks back on a window alone, where the model has one.
func (g *gguf) slides(kind string, key func(string) string, i int) bool {
	switch pattern := g.values[key("attention.sliding_window_pattern")].(type) {
	case []any:
		if i < len(pattern) {
			is, _ := pattern[i].(int64)
			return is != 0
		}
	case int64:
		return pattern > 0 && (int64(i)+1)%pattern != 0
	}
	switch kind {
	case "gemma2", "gpt-oss":
		return i%2 == 0
	case "gemma3", "gemma3n":
		return (i+1)%6 != 0
	case "cohere2", "exaone4", "llama4":
		return (i+1)%4 != 0
	}
	return false // phi3 and others have the field, and llama.cpp keeps all tokens
}

// recurrent says whether a layer keeps a state in place of tokens.
func (g *gguf) recurrent(key func(string) string, i int) bool {
	if n := g.int(key("full_attention_interval")); n > 0 {
		return (i+1)%n != 0
	}
	return false
}

// state is how many numbers a sequence takes in a layer that keeps no tokens; 0: the header does not say it.
func (g *gguf) state(key func(string) string) int64 {
	inner, kernel := int64(g.int(key("ssm.inner_size"))), int64(g.int(key("ssm.conv_kernel")))
	width, groups := int64(g.int(key("ssm.state_size"))), int64(g.int(key("ssm.group_count")))
	if inner > most || width > most || groups > most || kernel > most {
		return 0
	}
	if kernel > 0 {
		kernel--
	}
	return (inner+2*groups*width)*kernel + inner*width
}

// int is a value that is a whole number of 1 or more; of a list the largest. 0: it is none.
func (g *gguf) int(key string) int {
	switch v := g.values[key].(type) {
	case int64:
		if v > 0 && v <= most*64 {
			return int(v)
		}
	case []any:
		n := 0
		for _, one := range v {
			if v, ok := one.(int64); ok && v > 0 && v <= most {
				n = max(n, int(v))
			}
		}
		return n
	}
	return 0
}

// ofLayer is a value that may be one for each layer.
func (g *gguf) ofLayer(key string, i, usual int) int {
	if all, ok := g.values[key].([]any); ok && i < len(all) {
		n, _ := all[i].(int64)
		return int(max(0, min(n, most)))
	}
	return usual
}
