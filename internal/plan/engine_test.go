package plan

import (
	"testing"
	"testing/fstest"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// TestWeightsOfAnEngine: what vLLM said of its weights in imagined starts (bench/serving.py), with the rotary table.
// Ends of the allocator's blocks come on top.
func TestWeightsOfAnEngine(t *testing.T) {
	const small = `"hidden_size":512,"intermediate_size":1024,"max_position_embeddings":131072,"num_attention_heads":8,
		"num_key_value_heads":4,"vocab_size":32000,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	for _, c := range []struct {
		config string
		bytes  []mem.Bytes // in 0.11, in 0.33
	}{
		{`{"model_type":"bamba","num_hidden_layers":4,"attn_layer_indices":[1,3],"attn_rotary_emb":64,"mamba_n_heads":16,
			"mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"mamba_d_conv":4,"mamba_expand":2,` + small + `}`,
			[]mem.Bytes{98123776}},
		{`{"model_type":"qwen2_5_vl","num_hidden_layers":2,"rope_scaling":{"type":"mrope","mrope_section":[8,12,12]},
			"vision_config":{"depth":2,"hidden_size":256,"out_hidden_size":512,"num_heads":4,"intermediate_size":512},` + small + `}`,
			[]mem.Bytes{149268992, 150578688}},
	} {
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(c.config)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		f := newFacts(model, Use{For: Serve, Users: 1, Seq: 4096, Weights: "auto", Cache: "auto"})
		table, _ := f.rotary()
		for _, bytes := range c.bytes {
			if rest := bytes - f.weights("auto").Bytes - table.Bytes; rest < 0 || rest >= 3*mem.MiB {
				t.Errorf("%s: %d bytes and a table of %d, vLLM has %d", model.Shape.Kind, f.weights("auto").Bytes, table.Bytes, bytes)
			}
		}
		if f.perToken() != 2048 {
			t.Errorf("%s: %d bytes of a token", model.Shape.Kind, f.perToken())
		}
	}
}
