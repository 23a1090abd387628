package plan

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// TestScoresBeforeAmpere: on a T4 attention in bf16 keeps tables of scores. What PyTorch's allocator held at the peak of
// imagined runs there (torch 2.15) lies in the interval, near its figure, and is more than on an L4.
func TestScoresBeforeAmpere(t *testing.T) {
	const small = `{"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816,
 "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 4096,
 "torch_dtype": "bfloat16"}`
	for _, test := range []struct {
		use  Use
		held mem.Bytes // MiB
	}{
		{Use{For: LoRA, Seq: 2048}, 1434},
		{Use{For: LoRA, Seq: 4096}, 4587},
		{Use{For: LoRA, Seq: 2048, KeepAll: true}, 4007},
		{Use{For: Infer, Seq: 2048}, 959},
		{Use{For: Full, Seq: 2048}, 3365},
	} {
		test.use.Batch, test.use.Weights, test.use.Rank, test.use.Optimizer = 1, "auto", 16, "adamw"
		tensors := func(gpu string) (e Estimate) {
			for _, p := range planned(t, small, test.use, gpu).Rows[0].Parts {
				if p.Name != "context and libraries" && p.Name != "kept by the allocator" {
					e = e.plus(p.Estimate)
				}
			}
			return e
		}
		e, other, held := tensors("t4"), tensors("l4"), test.held*mem.MiB
		if e.Low > held || e.High < held || e.Low != other.Low || e.Bytes <= other.Bytes {
			t.Errorf("%+v: %v, want %s; on an L4 %s", test.use, held, e.text(), other.text())
		}
		if off := float64(e.Bytes) / float64(held); off < 0.9 || off > 1.15 {
			t.Errorf("%+v: the figure is %.2f times what was held", test.use, off)
		}
	}
	half := Use{For: Infer, Seq: 2048, Batch: 1, Weights: "fp16"}
	for gpu, want := range map[string]string{"t4": "", "l4": ""} {
		if note := planned(t, small, half, gpu).Rows[0].Note; note != want {
			t.Errorf("in fp16 on %s: %q", gpu, note)
		}
	}
	half.Weights = "auto"
	if note := planned(t, small, half, "t4").Rows[0].Note; !strings.Contains(note, "in bf16 attention keeps its scores") {
		t.Errorf("in bf16: %q", note)
	}
}

// TestEstimatesAgainstImaginedRuns: what PyTorch's allocator held at the peak of real steps on an imaginary GPU lies in
// the interval that is planned, and near its figure where the optimizer is fused or small (testdata/imagined.py).
func TestEstimatesAgainstImaginedRuns(t *testing.T) {
	text, err := os.ReadFile("testdata/imagined.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs struct {
		Configs map[string]json.RawMessage
		Cases   []struct {
			Model     string
			Use       Use
			Allocated mem.Bytes `json:"allocated_bytes"`
		}
	}
	if err := json.Unmarshal(text, &runs); err != nil || len(runs.Cases) < 50 {
		t.Fatalf("%d cases, %v", len(runs.Cases), err)
	}
	var off []float64
	for _, c := range runs.Cases {
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: runs.Configs[c.Model]}}, "")
		if err != nil {
			t.Fatal(err)
		}
		use := c.Use
		o := Options{Use: use}
		o.Settings().Fill()
		f := newFacts(model, o.Use)
		var held Estimate
		for _, p := range f.batchParts(h100(t), f.batch()) {
			if p.Name != "context and libraries" && p.Name != "kept by the allocator" {
				held = held.plus(p.Estimate)
			}
		}
		if c.Allocated < held.Low || c.Allocated > held.High {
			t.Errorf("%s, %+v: %v were held, planned are %s", c.Model, use, c.Allocated, held.text())
		}
		off = append(off, float64(held.Bytes)/float64(c.Allocated))
	}
	slices.Sort(off)
	if least, most := off[0], off[len(off)-1]; least < 0.75 || most > 1.25 {
		t.Errorf("the figures are %.2f to %.2f times what was held", least, most)
	}
	t.Logf("%d runs: %.2f, %.2f, %.2f times what was held", len(off), off[0], off[len(off)/2], off[len(off)-1])
}

func h100(t *testing.T) *gpus.GPU {
	t.Helper()
	g, err := gpus.Builtin().Named("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	return g
}
