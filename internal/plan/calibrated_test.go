package plan

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

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
		for _, p := range f.batchParts(&gpus.Builtin().GPUs[0], f.batch()) {
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
