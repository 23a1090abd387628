package plan

import (
	"fmt"
	"testing"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// TestGGUFOnSeveralGPUs: llama.cpp gives each GPU whole layers, and one the output: layer i of n, which counts the output,
// goes to the GPU in whose share i / n lies. What the fullest GPU has lies between the ends, and its cache is exact.
func TestGGUFOnSeveralGPUs(t *testing.T) {
	const layers, hidden, vocabulary, head, seq = 30, 4096, 128256, 128, 4096
	matrix := func(name string, rows int64) modelfile.Tensor {
		return modelfile.Tensor{Name: name, Type: modelfile.F16, Shape: []int64{rows, hidden}, Bytes: mem.Bytes(2 * rows * hidden)}
	}
	model := &modelfile.Model{Format: modelfile.FormatGGUF, Tensors: []modelfile.Tensor{
		matrix("token_embd.weight", vocabulary), matrix("output.weight", vocabulary)}}
	for i := range layers {
		model.Tensors = append(model.Tensors, matrix(fmt.Sprintf("blk.%d.ffn_up.weight", i), 40000))
	}
	model.Shape = modelfile.Shape{Kind: "llama", Layers: layers, Hidden: hidden, Heads: 32, KVHeads: 8, HeadDim: head,
		Intermediate: 14336, Gated: true, Vocabulary: vocabulary, Type: modelfile.F16,
		Caches: []modelfile.Cache{{Layers: layers, Heads: 8, Key: head, Value: head}}}
	for _, count := range []int{2, 3, 4, 7} {
		o := Options{Use: Use{For: Serve, Seq: seq, GPUs: count}, GPU: []string{"h200"}}
		o.Settings().Fill()
		chosen, err := o.chosen(gpus.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		r, err := Make(model, nil, o.Use, placesOf(chosen, false, count))
		if err != nil {
			t.Fatalf("%d GPUs: %v", count, err)
		}
		held, most := make([]mem.Bytes, count), make([]int, count)
		for i := range layers + 1 {
			gpu := i * count / (layers + 1)
			if held[gpu] += 2 * hidden * 40000; i == layers {
				held[gpu] += 2 * hidden * (vocabulary - 40000)
			} else {
				most[gpu]++
			}
		}
		weights := part(t, &r.Rows[0], "weights")
		for gpu := range held {
			if held[gpu] > weights.High {
				t.Errorf("%d GPUs: number %d has %v, at most %v planned", count, gpu, held[gpu], weights.High)
			}
		}
		if want := mem.Bytes(2 * 2 * 8 * head * seq * most[0]); r.Rows[0].Cache.High != want {
			t.Errorf("%d GPUs: a cache of %v on the fullest, want %v", count, r.Rows[0].Cache.High, want)
		}
	}
}
