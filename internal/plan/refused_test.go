package plan

import (
	"strings"
	"testing"

	"hightide/internal/report"
)

// TestRefused: a GPU whose kernels do not take a model is no GPU that fits, however much memory it has.
func TestRefused(t *testing.T) {
	const (
		small = `{"model_type":"MODEL","vocab_size":1000,"hidden_size":256,"num_hidden_layers":2,"num_attention_heads":4,
			"head_dim":64,"num_key_value_heads":2,"intermediate_size":512,"max_position_embeddings":8192,
			"torch_dtype":"bfloat16"QUANTIZED}`
		awq = `,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128}`
		fp8 = `,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}`
	)
	serve, infer := Use{For: Serve, Users: 1, Seq: 4096}, Use{For: Infer, Batch: 1, Seq: 256}
	of := func(u Use, weights string) Use { u.Weights = weights; return u }
	config := func(model, quantized string) string {
		return strings.NewReplacer("MODEL", model, "QUANTIZED", quantized).Replace(small)
	}
	for _, c := range []struct {
		config, card string
		use          Use
		want         Verdict
		note         string
	}{
		{gptoss, "v100-32g", serve, No, "vLLM needs compute capability 8.0 for mxfp4, it has 7.0"},
		{gptoss, "a100-80g", serve, Fits, ""},
		{gptoss, "v100-32g", infer, No, "transformers unpacks mxfp4 to 16 bits before compute capability 7.5"},
		{gptoss, "a100-80g", infer, Fits, ""},
		{config("llama", awq), "v100-32g", serve, No, "vLLM needs compute capability 7.5 for awq, it has 7.0"},
		{config("llama", awq), "t4", serve, Fits, "vLLM takes fp16 in place of bf16"},
		{config("llama", fp8), "v100-32g", serve, No, "vLLM needs compute capability 7.5 for fp8, it has 7.0"},
		{config("llama", fp8), "t4", serve, Likely, "; older releases of vLLM, as 0.11, need compute"},
		{config("llama", fp8), "a10", serve, Fits, ""},
		{config("llama", fp8), "a10", infer, No, "transformers unpacks fp8 to 16 bits before compute"},
		{config("llama", fp8), "l4", infer, Fits, ""},
		{config("llama", ""), "a10", of(infer, "fp8"), No, "transformers unpacks fp8"},
		{config("llama", ""), "t4", of(serve, "fp8"), Likely, "older releases of vLLM"},
		{config("llama", ""), "t4", serve, Fits, "vLLM takes fp16 in place of bf16 before compute capability 8.0"},
		{config("gemma2", ""), "t4", serve, No, "vLLM takes gemma2 in 32 bits before compute"},
		{config("gemma2", ""), "t4", of(serve, "fp32"), Fits, ""},
		{config("gemma2", ""), "a10", serve, Fits, ""},
	} {
		r := planned(t, c.config, c.use, c.card)
		row := r.Rows[0]
		if row.Verdict != c.want || !strings.Contains(row.Note, c.note) || c.note == "" && row.Note != "" {
			t.Errorf("%s: %s, %q, want %s, %q", c.card, row.Verdict, row.Note, c.want, c.note)
		}
		if n := row.Users; row.barred != "" && n != nil && *n != (Range{}) {
			t.Errorf("%s serves nobody, and %+v users", c.card, n)
		}
		if n := row.Batch; row.barred != "" && n != nil && *n != (Range{}) {
			t.Errorf("%s runs nothing, and a batch of %+v", c.card, n)
		}
	}
}

// TestFootnotes: a terminal says why a GPU is none, however narrow it is, and each reason once.
func TestFootnotes(t *testing.T) {
	r := planned(t, gptoss, Use{For: Serve, Users: 1, Seq: 4096}, "v100-16g", "v100-32g", "a100-80g")
	for _, width := range []int{50, 80, 120} {
		text := strings.Join(strings.Fields(r.Text(report.TextOptions{Width: width})), " ")
		const want = "v100-32g, v100-16g: vLLM needs compute capability 8.0 for mxfp4, it has 7.0"
		if strings.Count(text, want) != 1 {
			t.Errorf("%d columns: %s", width, text)
		}
	}
}
