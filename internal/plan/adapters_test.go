package plan

import (
	"encoding/json"
	"os"
	"testing"
	"testing/fstest"

	"hightide/internal/modelfile"
)

// TestAdaptersOnEveryMatrix: adapters of rank 1 have as many numbers as the linear layers of transformers' models have
// inputs and outputs (testdata/truth.py of package modelfile).
func TestAdaptersOnEveryMatrix(t *testing.T) {
	text, err := os.ReadFile("../modelfile/testdata/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Cases []struct {
			Kind     string
			Config   json.RawMessage
			Adapters int64
		}
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range truth.Cases {
		if c.Adapters == 0 {
			continue
		}
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: c.Config}}, "")
		if err != nil {
			t.Errorf("%s: %v", c.Kind, err)
			continue
		}
		seen++
		if f := newFacts(model, Use{For: LoRA, Rank: 1}); f.trained() != c.Adapters {
			t.Errorf("%s: %d numbers, want %d", c.Kind, f.trained(), c.Adapters)
		}
	}
	if seen < 40 {
		t.Errorf("only %d models", seen)
	}
}
