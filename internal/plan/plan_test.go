package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hightide/internal/gpus"
	"hightide/internal/hub"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// Configurations as they are published, without what plays no part here.
const (
	llama3 = `{"model_type":"llama","vocab_size":128256,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}`
	llama31 = `{"model_type":"llama","vocab_size":128256,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":131072,"torch_dtype":"bfloat16"}`
	llama2 = `{"model_type":"llama","vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":4096,"torch_dtype":"float16"}`
	qwen3moe = `{"model_type":"qwen3_moe","vocab_size":151936,"hidden_size":4096,"intermediate_size":12288,
		"moe_intermediate_size":1536,"num_experts":128,"num_experts_per_tok":8,"decoder_sparse_step":1,"mlp_only_layers":[],
		"num_hidden_layers":94,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":128,"max_position_embeddings":40960,
		"tie_word_embeddings":false,"torch_dtype":"bfloat16",
		"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}}`
	gptoss = `{"model_type":"gpt_oss","vocab_size":201088,"hidden_size":2880,"intermediate_size":2880,"num_hidden_layers":24,
		"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"num_local_experts":32,"num_experts_per_tok":4,
		"sliding_window":128,"max_position_embeddings":131072,"attention_bias":true,"tie_word_embeddings":false,
		"torch_dtype":"bfloat16","quantization_config":{"quant_method":"mxfp4"}}`
	qwen3 = `{"model_type":"qwen3","vocab_size":151936,"hidden_size":5120,"intermediate_size":17408,"num_hidden_layers":40,
		"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"max_position_embeddings":40960,
		"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`
	deepseek = `{"model_type":"deepseek_v3","vocab_size":129280,"hidden_size":7168,"intermediate_size":18432,
		"moe_intermediate_size":2048,"num_hidden_layers":61,"num_nextn_predict_layers":1,"num_attention_heads":128,
		"num_key_value_heads":128,"n_shared_experts":1,"n_routed_experts":256,"num_experts_per_tok":8,"first_k_dense_replace":3,
		"moe_layer_freq":1,"kv_lora_rank":512,"q_lora_rank":1536,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,
		"max_position_embeddings":163840,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
		"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}}`
)

// factsOf are those of a configuration.
func factsOf(t *testing.T, config string, use Use) *facts {
	t.Helper()
	model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	return newFacts(model, use)
}

// planned is the answer for a configuration.
func planned(t *testing.T, config string, use Use, cards ...string) *Result {
	t.Helper()
	model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Use: use, GPU: cards}
	o.Settings().Fill()
	chosen, err := o.chosen(gpus.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(model, &hub.Place{Asked: "model", Source: "file"}, o.Use, placesOf(chosen, false, 1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func part(t *testing.T, r *Row, name string) Portion {
	t.Helper()
	i := slices.IndexFunc(r.Parts, func(p Portion) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("%s has no part %s: %+v", r.GPU, name, r.Parts)
	}
	return r.Parts[i]
}

// TestPublishedServers: what engines' logs said of the models, in public threads. Weights are those of the table of
// rotary embeddings, too. The cache lies in our interval.
func TestPublishedServers(t *testing.T) {
	gib := func(n float64) mem.Bytes { return mem.Bytes(n * float64(mem.GiB)) }
	for name, test := range map[string]struct {
		config string
		card   string
		gpus   int
		weight float64 // GiB, as published; 0: not said
		digits float64 // half of the last digit of that, in GiB
		tokens int64   // of the cache
		share  float64 // of the card that the engine took; 0: 0.9
		known  bool    // the version and its settings are: then the figure is within 2 %
		graphs bool    // of a version that takes no CUDA graphs from the cache
	}{
		"Llama-3.1-8B on an RTX 3090, Dec 2024": {config: llama31, card: "rtx3090", gpus: 1, weight: 14.9888, digits: 0.0001},
		"Llama-3-8B on an 80 GB card, Dec 2024": {config: llama3, card: "h100-sxm", gpus: 1, weight: 14.96, digits: 0.005,
			tokens: 436_551}, // 53.29 GiB
		"the same, 2 of them":                  {config: llama3, card: "h100-sxm", gpus: 2, weight: 7.48, digits: 0.005},
		"Llama-2-7B on an A100 80GB, Dec 2023": {config: llama2, card: "a100-80g", gpus: 1, tokens: 7351 * 16},
		"Llama-3.1-8B in vLLM 0.11, imagined": {config: llama31, card: "a100-80g", gpus: 1, weight: 14.9889, digits: 0.00015,
			tokens: 450_928, known: true, graphs: true},
		"the same in vLLM 0.33":                {config: llama31, card: "a100-80g", gpus: 1, tokens: 449_104, known: true},
		"the same in 0.11 on H100":             {config: llama31, card: "h100-sxm", gpus: 1, tokens: 421_792, known: true, graphs: true},
		"the same in 0.11 on L4":               {config: llama31, card: "l4", gpus: 1, tokens: 29_504, known: true, graphs: true},
		"Qwen3-14B in vLLM 0.11, imagined":     {config: qwen3, card: "a100-40g", gpus: 1, tokens: 42_704, known: true, graphs: true},
		"Qwen3-14B on an A100 40GB":            {config: qwen3, card: "a100-40g", gpus: 1, tokens: 42_656, known: true, graphs: true},
		"gpt-oss-20b":                          {config: gptoss, card: "h100-sxm", gpus: 1, weight: 13.72, digits: 0.05},
		"Qwen3-235B in FP8 on 4 H100":          {config: qwen3moe, card: "h100-sxm", gpus: 4, tokens: 178_880},
		"DeepSeek-R1 in FP8 on 8 H200, SGLang": {config: deepseek, card: "h200", gpus: 8, tokens: 509_000, share: 0.82},
	} {
		row := planned(t, test.config, Use{For: Serve, Seq: 2048, GPUs: test.gpus, Utilization: test.share}, test.card).Rows[0]
		held := part(t, &row, "weights").Bytes + part(t, &row, "rotary table").Bytes
		if off := held - gib(test.weight); test.weight > 0 && (off > gib(test.digits) || off < -gib(test.digits)) {
			t.Errorf("%s: weights of %.4f GiB, published %v", name, float64(held)/float64(mem.GiB), test.weight)
		}
		if test.tokens > 0 {
			ours := row.Tokens.Figure
			if test.graphs {
				ours += int64(part(t, &row, "CUDA graphs").Bytes / (row.Cache.Bytes / 2048))
			}
			off := 100 * (float64(ours)/float64(test.tokens) - 1)
			t.Logf("%s: %d tokens, published %d: %+.1f %%", name, ours, test.tokens, off)
			if test.known && (off > 2 || off < -2) {
				t.Errorf("%s: %d tokens, published %d: %+.1f %%", name, ours, test.tokens, off)
			}
		}
		if n := test.tokens; n > 0 && (n < row.Tokens.Low || n > row.Tokens.High) {
			t.Errorf("%s: %d to %d tokens, published %d", name, row.Tokens.Low, row.Tokens.High, n)
		}
	}
}

// TestCacheByToken: bytes of a token in the cache against published sizes of caches with their tokens.
func TestCacheByToken(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		gpus   int64
		token  int64
	}{
		"grouped heads": {llama3, 1, 131072},         // 53.29 GiB hold 436,560 tokens or so
		"all heads":     {llama2, 1, 524288},         // 7,351 blocks of 16 tokens
		"on 4 GPUs":     {qwen3moe, 4, 48128},        // 178,880 tokens in 8.11 GiB, within 2 %
		"latent":        {deepseek, 8, 576 * 61 * 2}, // each of the GPUs has all of it
	} {
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(test.config)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		f := newFacts(model, Use{For: Serve, Seq: 1000, GPUs: int(test.gpus)})
		if got := f.sequence(1); got != exactly(mem.Bytes(test.token)) {
			t.Errorf("%s: %+v a token, want %d", name, got, test.token)
		}
	}
	const published = 8.11 * float64(mem.GiB) / 178_880
	if off := published/48128 - 1; off < -0.02 || off > 0.02 {
		t.Errorf("the published cache of Qwen3-235B has %.0f bytes a token", published)
	}
}

// TestParametersOfPublishedModels: the counts that their makers state.
func TestParametersOfPublishedModels(t *testing.T) {
	for config, want := range map[string]int64{llama3: 8_030_261_248, llama2: 6_738_415_616, qwen3: 14_768_307_200} {
		if got := planned(t, config, Use{For: Serve}, "h200").Model.Elements; got != want {
			t.Errorf("%d parameters, want %d", got, want)
		}
	}
}

// TestBytesOfMixedTypes: what gpt-oss-20b takes, from its configuration by hand: matrices of experts in MXFP4, which has
// 4 bits for a number and a byte for 32, and all else in 16 bits.
func TestBytesOfMixedTypes(t *testing.T) {
	const layers, experts, hidden, inner, words = 24, 32, 2880, 2880, 201088
	const heads, kept, width = 64, 8, 64
	const attention = 2*heads*width*hidden + 2*kept*width*hidden + heads*width + 2*kept*width + hidden + heads // with sinks
	const beside = attention + 2*hidden + experts*hidden + experts + experts*(2*inner+hidden)
	const packed = experts * (2*inner*hidden + inner*hidden)
	const want = layers*(2*beside+packed/2+packed/32) + 2*(2*words*hidden+hidden)
	if got := planned(t, gptoss, Use{For: Serve}, "h200").Model.Bytes; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestVerdictsFollowFromIntervals: no row says more than its interval.
func TestVerdictsFollowFromIntervals(t *testing.T) {
	for _, use := range []string{Serve, Infer, Full, LoRA, QLoRA, DPO, GRPO} {
		r := planned(t, llama31, Use{For: use, Seq: 2048, Users: 8}, "all")
		seen := map[Verdict]bool{}
		for _, row := range r.Rows {
			seen[row.Verdict] = true
			if row.Note != "" {
				continue
			}
			need := sum(row.Parts)
			if row.Cache != nil {
				need = need.plus(*row.Cache)
			}
			if fits := row.Budget.Low >= need.High; fits != (row.Verdict == Fits) {
				t.Errorf("%s on %s: %s with %v of %v", use, row.GPU, row.Verdict, need, row.Budget)
			}
			if possible := row.Budget.High >= need.Low; possible == (row.Verdict == No) {
				t.Errorf("%s on %s: %s with %v of %v", use, row.GPU, row.Verdict, need, row.Budget)
			}
			for _, p := range row.Parts {
				if p.Low > p.Bytes || p.Bytes > p.High || p.Basis == "" || p.Low != p.High && p.Label != mem.Estimated {
					t.Errorf("%s on %s: part %+v", use, row.GPU, p)
				}
			}
		}
		if !seen[Fits] && use != Full && use != DPO && use != GRPO || !seen[No] && use != QLoRA {
			t.Errorf("%s: only %v", use, seen)
		}
	}
}

// TestCapacityAgreesWithVerdict: as many users as a row promises fit, and one more does not for sure; the same of batches.
func TestCapacityAgreesWithVerdict(t *testing.T) {
	for _, use := range []string{Serve, Infer, LoRA, QLoRA} {
		for _, card := range []string{"rtx4090", "a100-80g", "h200"} {
			asked := Use{For: use, Seq: 1024, Users: 1, Batch: 1}
			row := planned(t, llama31, asked, card).Rows[0]
			at := func(n int64) Verdict {
				u := asked
				u.Users, u.Batch = int(n), int(n)
				return planned(t, llama31, u, card).Rows[0].Verdict
			}
			most := row.Users
			if most == nil {
				most = row.Batch
			}
			if low := most.Low; low > 0 && at(low) != Fits || at(low+1) == Fits {
				t.Errorf("%s on %s: %d is said to be the most: %s, one more: %s", use, card, low, at(low), at(low+1))
			}
			if high := most.High; at(high+1) != No {
				t.Errorf("%s on %s: %d is said to be too many: %s", use, card, high+1, at(high+1))
			}
		}
	}
}

// TestChangesDoWhatTheySay: each change that is proposed lets the GPU named do, when it is planned by itself.
func TestChangesDoWhatTheySay(t *testing.T) {
	model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(llama31)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, use := range []Use{{For: Serve, Users: 20, Seq: 8192}, {For: Full, Seq: 2048}, {For: LoRA, Batch: 8, Seq: 2048},
		{For: Infer, Batch: 16, Seq: 4096}, {For: LoRA, KeepAll: true, Seq: 8192}} {
		o := Options{Use: use}
		o.Settings().Fill()
		all := gpus.Builtin().GPUs
		f := newFacts(model, o.Use)
		r, err := Make(model, nil, o.Use, placesOf(all, false, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range r.Changes {
			seen++
			g, err := gpus.Builtin().Find(change.GPU)
			if err != nil {
				t.Fatal(err)
			}
			p := &Place{GPU: g}
			row := f.at(p)
			if row.Verdict == Fits {
				t.Errorf("%+v: %s fits without a change", use, change.GPU)
			}
			i := slices.IndexFunc(f.variations(p, &row), func(v variation) bool { return v.flags == change.Flags })
			if i < 0 {
				t.Fatalf("%+v: no variation %s", use, change.Flags)
			}
			if then := newFacts(model, f.variations(p, &row)[i].use).at(p); then.Verdict != Fits || then.Room != change.Room {
				t.Errorf("%+v: %s on %s: %+v", use, change.Flags, change.GPU, then)
			}
			if best := r.row(r.Cheapest); best != nil && change.Price >= best.Price {
				t.Errorf("%+v: %s costs %v, the best %v", use, change.Flags, change.Price, best.Price)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d changes were proposed", seen)
	}
}

// TestWeightsAlone: where the files tell of weights alone, nothing fits for sure, and no capacity is promised.
func TestWeightsAlone(t *testing.T) {
	m := &modelfile.Model{Format: modelfile.FormatSafetensors, Files: []string{"a"}, Shape: modelfile.Shape{
		Unknown: []string{"there is no config.json"}},
		Tensors: []modelfile.Tensor{{Name: "a", Type: modelfile.BF16, Shape: []int64{4, 4}, Bytes: 32}}}
	for _, use := range []string{Serve, Infer} {
		o := Options{Use: Use{For: use}}
		o.Settings().Fill()
		r, err := Make(m, nil, o.Use, placesOf(gpus.Builtin().GPUs, false, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if row.Verdict == Fits || row.Users != nil || row.Tokens != nil || row.Batch != nil || row.Cache != nil {
				t.Errorf("%s on %s: %+v", use, row.GPU, row)
			}
		}
		if !r.Alone || r.Cheapest != "" || r.Smallest != "" || len(r.Changes) > 0 {
			t.Errorf("%s: %+v", use, r)
		}
	}
}

// TestJSON: the answer is read back as it was.
func TestJSON(t *testing.T) {
	r := planned(t, llama31, Use{For: Serve, Users: 4}, "a10", "l4")
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || len(back.Rows) != 2 || back.Rows[0].Room != r.Rows[0].Room {
		t.Errorf("%v: %s", err, text)
	}
}

// TestExcludedIsCertain: only exact weights and cache, or what no setting mends, keep a GPU from being tried.
func TestExcludedIsCertain(t *testing.T) {
	for _, c := range []struct {
		use  Use
		card string
		want string
	}{
		{Use{For: "serve", Users: 4, Seq: 4096}, "t4", "weights 15.0 GiB and the KV cache of 4 × 4096 tokens, 2.00 GiB, are more"},
		{Use{For: "serve", Users: 1, Seq: 256}, "v100-32g", ""}, // in fp16
		{Use{For: "serve", Users: 4, Seq: 4096}, "a10", ""},
		{Use{For: "serve", Users: 1, Seq: 256, SGLang: true, Utilization: 1}, "v100-32g", "SGLang needs compute capability 7.5"},
		{Use{For: "serve", Users: 1, Seq: 256, SGLang: true, Utilization: 1, Cache: "fp8"}, "a10", ""},
		{Use{For: "serve", Users: 4, Seq: 4096, SGLang: true, Utilization: 1}, "t4", "weights 15.0 GiB and the KV cache"},
	} {
		rows := planned(t, llama3, c.use, c.card).Rows
		got := rows[0].neverEnough(&c.use)
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.card, got, c.want)
		}
	}
}

// TestMachinesWithSoManyGPUs: what is planned for two GPUs is of two, on no machine that has one.
func TestMachinesWithSoManyGPUs(t *testing.T) {
	const config = `{"model_type":"llama","hidden_size":512,"intermediate_size":1024,"num_attention_heads":8,` +
		`"num_key_value_heads":4,"num_hidden_layers":2,"vocab_size":32000,"torch_dtype":"bfloat16"}`
	model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Model: "model", Use: Use{GPUs: 2}, Instances: true}
	places, err := o.places()
	if err != nil || len(places) == 0 {
		t.Fatal("no machine with two GPUs or more", err)
	}
	r, err := Make(model, nil, o.Use, places)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Machine.GPUs < 2 || row.Count != 2 {
			t.Errorf("%s has %d GPUs, of which %d are used", row.Machine.Name, row.Machine.GPUs, row.Count)
		}
	}
	o = Options{Model: "model", Use: Use{GPUs: 64}, Instances: true}
	if places, err := o.places(); err == nil {
		t.Errorf("%d machines have 64 GPUs", len(places))
	}
}

// TestAloneInAMachine: of what is a part of a processor or laptop, a machine has one.
func TestAloneInAMachine(t *testing.T) {
	for count, want := range map[int]bool{1: true, 2: false} {
		o := Options{Model: "model", Use: Use{GPUs: count}}
		places, err := o.places()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"jetson-thor", "apple-m4-max-64g", "strix-halo-128g", "rtx4090-laptop"} {
			if got := slices.ContainsFunc(places, func(p Place) bool { return p.GPU.Slug == name }); got != want {
				t.Errorf("%d of %s: %v", count, name, got)
			}
		}
		if !slices.ContainsFunc(places, func(p Place) bool { return p.GPU.Slug == "rtx4090" }) {
			t.Errorf("%d of rtx4090: no place", count)
		}
	}
	o := Options{Model: "model", Use: Use{GPUs: 8}, GPU: []string{"jetson-thor"}}
	if _, err := o.places(); err == nil || !strings.Contains(err.Error(), "a machine has one Jetson AGX Thor") {
		t.Error(err)
	}
}
