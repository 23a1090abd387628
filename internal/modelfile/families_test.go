package modelfile

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// truths are what transformers says of models: testdata/truth.py writes them.
type truths struct {
	Cases []struct {
		Kind   string
		Config map[string]json.RawMessage
		Bytes  int64            // of the parameters; 0: they do not follow from the configuration
		Cached map[string]int64 `json:"cached_numbers"` // by the tokens of a prompt
	}
}

func readTruths(t *testing.T) truths {
	t.Helper()
	text, err := os.ReadFile("testdata/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var all truths
	if err := json.Unmarshal(text, &all); err != nil || len(all.Cases) < 50 {
		t.Fatalf("%d cases, %v", len(all.Cases), err)
	}
	return all
}

// TestWeightsAndCachesOfFamilies: what follows from a configuration is what transformers builds from it, to the byte;
// also where the list of the layers' kinds is not in it, as in older files.
func TestWeightsAndCachesOfFamilies(t *testing.T) {
	for _, c := range readTruths(t).Cases {
		for _, older := range []bool{false, true} {
			config := map[string]json.RawMessage{}
			for key, value := range c.Config {
				if !older || key != "layer_types" && !strings.HasSuffix(key, "_pattern_") {
					config[key] = value
				}
			}
			_, listed := c.Config["layer_types"]
			if older && (!listed || strings.HasPrefix(c.Kind, "lfm2") || c.Kind == "granitemoehybrid") {
				continue
			}
			text, _ := json.Marshal(config)
			if c.Bytes > 0 {
				m, err := Read(fstest.MapFS{"config.json": {Data: text}}, "")
				if err != nil {
					t.Errorf("%s: %v", c.Kind, err)
					continue
				}
				if got := int64(Bytes(m.Tensors)); got != c.Bytes {
					t.Errorf("%s: %d bytes of weights, want %d", c.Kind, got, c.Bytes)
				}
			}
			held, err := readConfig(text)
			if err != nil {
				t.Errorf("%s: %v", c.Kind, err)
				continue
			}
			for tokens, want := range c.Cached {
				var n int64
				_ = json.Unmarshal([]byte(tokens), &n)
				if c.Kind == "falcon" && held.shape.KVHeads > 1 {
					want = want / int64(held.shape.Heads) * int64(held.shape.KVHeads) // transformers repeats them; servers do not
				}
				if got := numbers(&held.shape, n); got != want {
					t.Errorf("%s, older %v: %d numbers for %s tokens, want %d: %+v", c.Kind, older, got, tokens, want,
						held.shape.Caches)
				}
			}
		}
	}
}

// TestPartsThatAreNotKnown: a model with a part whose weights do not follow from what is known is refused by its name, and
// what that part takes at work is said to be missing.
func TestPartsThatAreNotKnown(t *testing.T) {
	const text, eye = `"text_config": {"model_type": "llama", "num_hidden_layers": 2}`, `"vision_config": {"depth": 2}`
	for config, want := range map[string]string{
		`{"model_type": "aya_vision", ` + text + `, ` + eye + `}`:          "of aya_vision has parts besides the decoder",
		`{"model_type": "qwen2_5_omni", ` + text + `, "audio_config": {}}`: "of qwen2_5_omni has parts besides the decoder",
		`{"model_type": "qwen2_5_vl", ` + text + `, ` + eye + `, "quantization_config": {"quant_method": "awq", "bits": 4}}`: "" +
			"packed by awq",
		`{"model_type": "llava", ` + text + `, "vision_config": {"model_type": "owl"}}`:            `sizes of the part for images, "owl"`,
		`{"model_type": "qwen2_vl", ` + text + `, "vision_config": {"spatial_merge_size": 60000}}`: "the size 60000",
		`{"model_type": "qwen2_vl", ` + text + `, "vision_config": {"depth": 1000000}}`:            "the size 1000000",
	} {
		_, err := Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	c, err := readConfig([]byte(`{"model_type": "qwen2_5_vl", ` + text + `, ` + eye + `}`))
	if err != nil || len(c.shape.Unknown) != 1 || !strings.Contains(c.shape.Unknown[0], "the part for images takes at work") {
		t.Errorf("%v, %q", err, c.shape.Unknown)
	}
}

// TestPublishedNumbers: models of which the number of weights is published, from the fields of their configurations.
func TestPublishedNumbers(t *testing.T) {
	const mistral = `{"model_type": "mistral3", "dtype": "bfloat16", "spatial_merge_size": 2, "vision_feature_layer": -1,
 "text_config": {"model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768,
  "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "vocab_size": 131072},
 "vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
  "num_hidden_layers": 24, "patch_size": 14, "image_size": 1540}}`
	const nemotron = `{"model_type": "nemotron_h", "dtype": "bfloat16", "hidden_size": 4480, "intermediate_size": 15680,
 "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", "vocab_size": 131072,
 "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 80,
 "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "use_conv_bias": true, "max_position_embeddings": 131072}`
	for config, want := range map[string]int64{
		mistral:  24_011_361_280, // Mistral Small 3.1
		nemotron: 8_888_227_328,  // NVIDIA Nemotron Nano 9B v2
	} {
		m, err := Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
		if err != nil || int64(Bytes(m.Tensors)) != 2*want {
			t.Errorf("%v, %v, want %d", m, err, want)
		}
	}
}

// TestNoRotaryEmbeddings: of models whose attention is told no positions no table of them is counted.
func TestNoRotaryEmbeddings(t *testing.T) {
	const sizes = `"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6, "vocab_size": 1000`
	for config, want := range map[string]int{
		`{"model_type": "llama", ` + sizes + `}`:                                               16,
		`{"model_type": "jamba", ` + sizes + `}`:                                               0,
		`{"model_type": "nemotron_h", ` + sizes + `}`:                                          0,
		`{"model_type": "granitemoehybrid", ` + sizes + `}`:                                    0,
		`{"model_type": "granitemoehybrid", "position_embedding_type": "nope", ` + sizes + `}`: 0,
		`{"model_type": "granitemoehybrid", "position_embedding_type": "rope", ` + sizes + `}`: 16,
	} {
		if c, err := readConfig([]byte(config)); err != nil || c.shape.RotaryDim != want {
			t.Errorf("%s: %v, %d, want %d", config, err, c.shape.RotaryDim, want)
		}
	}
}

// numbers is what a prompt leaves in caches of tokens. transformers keeps one token less than the window.
func numbers(s *Shape, tokens int64) (total int64) {
	for _, c := range s.Caches {
		kept := tokens
		if c.Window > 0 {
			kept = min(kept, int64(c.Window)-1)
		}
		total += int64(c.Layers) * kept * c.Numbers()
	}
	return total
}
