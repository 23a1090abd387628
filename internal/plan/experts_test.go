package plan

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestAdaptersOverExperts: what PyTorch's allocator held in imagined runs of adapters over experts is in the interval.
// They were made with peft 0.21, transformers 5.23 and 4.57: in 5 a layer has its experts in one piece.
func TestAdaptersOverExperts(t *testing.T) {
	const (
		many = `{"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":768,
			"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":6,"num_attention_heads":32,"num_key_value_heads":4,
			"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`
		eight = `{"model_type":"mixtral","hidden_size":4096,"intermediate_size":14336,"num_local_experts":8,
			"num_experts_per_tok":2,"num_hidden_layers":2,"num_attention_heads":32,"num_key_value_heads":8,
			"vocab_size":32000,"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`
		shared = `{"model_type":"qwen2_moe","hidden_size":2048,"intermediate_size":5632,"moe_intermediate_size":1408,
			"shared_expert_intermediate_size":5632,"num_experts":60,"num_experts_per_tok":4,"num_hidden_layers":4,
			"num_attention_heads":16,"num_key_value_heads":16,"vocab_size":151936,"tie_word_embeddings":false,
			"torch_dtype":"bfloat16"}`
	)
	for _, c := range []struct {
		config, use string
		seq         int
		all         bool
		held        []float64 // GiB
	}{
		{many, QLoRA, 1024, false, []float64{21.0, 6.97}},
		{many, QLoRA, 1024, true, []float64{34.8, 9.04}},
		{many, LoRA, 1024, false, []float64{11.6, 10.4}},
		{many, LoRA, 1024, true, []float64{19.4}},
		{eight, QLoRA, 512, false, []float64{19.2, 2.94}},
		{eight, QLoRA, 2048, false, []float64{20.3, 3.97}},
		{eight, QLoRA, 512, true, []float64{24.7, 3.47}},
		{eight, QLoRA, 2048, true, []float64{26.6, 5.70}},
		{eight, LoRA, 512, true, []float64{12.7, 6.56}},
		{eight, LoRA, 2048, true, []float64{13.8, 8.23}},
		{shared, QLoRA, 512, false, []float64{11.7, 5.14}},
		{shared, QLoRA, 2048, false, []float64{14.3, 7.81}},
		{shared, QLoRA, 512, true, []float64{12.1, 5.77}},
		{shared, QLoRA, 2048, true, []float64{16.1, 10.3}},
		{shared, LoRA, 512, true, []float64{6.63, 6.95}},
		{shared, LoRA, 2048, true, []float64{10.2, 10.9}},
	} {
		use := Use{For: c.use, Seq: c.seq, KeepAll: c.all, Batch: 1, Weights: "auto", Rank: 16, Optimizer: "adamw"}
		r := planned(t, c.config, use, "a100-80g")
		var e Estimate
		for _, p := range r.Rows[0].Parts {
			if p.Name != "context and libraries" && p.Name != "kept by the allocator" {
				e = e.plus(p.Estimate)
			}
		}
		for _, held := range c.held {
			if held := mem.Bytes(held * float64(mem.GiB)); held < e.Low || held > e.High {
				t.Errorf("%+v: %v was held, planned %s", use, held, e.text())
			}
		}
		if told := strings.Contains(strings.Join(r.Notes, "\n"), "leaves in 16 bits"); told != (c.use == QLoRA) {
			t.Errorf("%+v: %q", use, r.Notes)
		}
	}
}
