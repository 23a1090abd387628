package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"hightide/internal/gpus"
	"hightide/internal/hub"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// withFields is a configuration with other values.
func withFields(t *testing.T, config string, fields map[string]any) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(config), &all); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWeightsThatEachGPUHas: by vLLM's layers a head of keys and values is on several GPUs where these are more, and so
// are the choice of experts and what makes latent vectors. All else of the matrices is shared, and norms are not.
func TestWeightsThatEachGPUHas(t *testing.T) {
	weights := func(config string, count int) mem.Bytes {
		row := planned(t, config, Use{For: Serve, Seq: 2048, GPUs: count}, "h200").Rows[0]
		return part(t, &row, "weights").Bytes
	}
	const layers, hidden, head = 32, 4096, 128
	norms := mem.Bytes(2 * hidden * (2*layers + 1))
	for _, heads := range []int{8, 4, 2, 1} {
		config := withFields(t, llama3, map[string]any{"num_key_value_heads": heads})
		one := mem.Bytes(2 * 2 * layers * hidden * head) // of keys and values, in 16 bits
		whole := weights(config, 1) - norms
		want := norms + whole/4
		if heads < 4 { // each has one
			want = norms + (whole-mem.Bytes(heads)*one)/4 + one
		}
		if got := weights(config, 4); got != want {
			t.Errorf("%d heads of keys and values: %d bytes on each of 4 GPUs, want %d", heads, got, want)
		}
	}
	var c struct {
		Layers int64 `json:"num_hidden_layers"`
		Dense  int64 `json:"first_k_dense_replace"`
		Hidden int64 `json:"hidden_size"`
		Query  int64 `json:"q_lora_rank"`
		Key    int64 `json:"kv_lora_rank"`
		Rope   int64 `json:"qk_rope_head_dim"`
		Expert int64 `json:"n_routed_experts"`
	}
	if err := json.Unmarshal([]byte(deepseek), &c); err != nil {
		t.Fatal(err)
	}
	each := c.Layers*c.Hidden*(c.Query+c.Key+c.Rope) + 2*(c.Layers-c.Dense)*c.Hidden*c.Expert // of 8 and of 16 bits
	beyond := float64(weights(deepseek, 8)) - float64(weights(deepseek, 1))/8
	if want := 7.0 / 8 * float64(each); beyond < want || beyond > 1.02*want { // norms and scales, too
		t.Errorf("DeepSeek on 8 GPUs: each has %.0f bytes beyond its share, want %.0f", beyond, want)
	}
}

// TestUnevenHeads: vLLM starts where GPUs share heads of keys and values evenly, or heads of them GPUs.
func TestUnevenHeads(t *testing.T) {
	for heads, refused := range map[int]bool{1: false, 2: false, 4: false, 8: false, 6: true, 3: true} {
		text := withFields(t, llama3, map[string]any{"num_key_value_heads": heads})
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(text)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Use: Use{For: Serve, Seq: 2048, GPUs: 4}, GPU: []string{"h200"}}
		o.Settings().Fill()
		chosen, err := o.chosen(gpus.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		_, err = Make(model, &hub.Place{Asked: "model", Source: "file"}, o.Use, placesOf(chosen, false, 1))
		if refused != (err != nil && strings.Contains(err.Error(), "cannot share")) {
			t.Errorf("%d heads of keys and values on 4 GPUs: %v", heads, err)
		}
	}
}
