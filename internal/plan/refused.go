package plan

import (
	"fmt"
	"slices"

	"hightide/internal/gpus"
)

// since are compute capabilities, ten times: below least no release takes a packing, below sure not all do.
type since struct{ least, sure int }

// served are packings in vLLM, by their names in configurations. Source: get_min_capability in 0.11.0 and 0.33.0.
var served = map[string]since{"awq": {75, 75}, "torchao": {75, 75}, "mxfp4": {80, 80}, "fbgemm_fp8": {80, 80},
	"fp8": {75, 80}, "compressed-tensors": {75, 80}, "modelopt": {75, 89}}

// unpacked are packings that transformers keeps from a compute capability on; before it, weights are made 16 bits.
// Source: its quantizers for fine-grained FP8 and for MXFP4, in 5.23.
var unpacked = map[string]int{"fp8": 89, "mxfp4": 75}

// neverHalf are models that vLLM does not run in fp16: it falls back to 32 bits. Source:
// _FLOAT16_NOT_SUPPORTED_MODELS in 0.11.0 and 0.33.0.
var neverHalf = []string{"gemma2", "gemma3", "gemma3_text", "glm4"}

// packing is how weights are packed: as they are stored, or are to be; "": they are not.
func (f *facts) packing() string {
	if f.use.Weights == "fp8" {
		return f.use.Weights
	}
	return f.shape.Quantization
}

// refused is why vLLM does not start a model on a GPU of NVIDIA's; "": nothing known.
func (f *facts) refused(g *gpus.GPU) string {
	major, minor, _ := g.Capability()
	packed := f.packing()
	switch {
	case major < 7:
		return fmt.Sprintf("vLLM needs compute capability 7.0, it has %s", g.Compute)
	case f.use.Weights == "bf16" && major < 8:
		return fmt.Sprintf("vLLM needs compute capability 8.0 for bf16, it has %s", g.Compute)
	case 10*major+minor < served[packed].least:
		return fmt.Sprintf("vLLM needs compute capability %s for %s, it has %s", capability(served[packed].least),
			packed, g.Compute)
	case major < 8 && slices.Contains(neverHalf, f.shape.Kind) && f.use.Weights != "fp32":
		return fmt.Sprintf("vLLM takes %s in 32 bits before compute capability 8.0; plan it with --dtype fp32",
			f.shape.Kind)
	case f.use.Cache == "fp8" && (major < 8 || major == 8 && minor < 9):
		return fmt.Sprintf("a cache in fp8 is planned from compute capability 8.9 on, it has %s", g.Compute)
	}
	return ""
}

// unpacks is why transformers does not keep weights packed on a GPU of NVIDIA's; "": it does, or nothing is known.
func (f *facts) unpacks(g *gpus.GPU) string {
	major, minor, _ := g.Capability()
	packed := f.packing()
	if need := unpacked[packed]; 10*major+minor < need {
		return fmt.Sprintf("transformers unpacks %s to 16 bits before compute capability %s, it has %s", packed,
			capability(need), g.Compute)
	}
	return ""
}

// notAll says that not every release of vLLM takes the packing on a GPU; "": all do, or nothing is known.
func (f *facts) notAll(g *gpus.GPU) string {
	major, minor, nvidia := g.Capability()
	packed := f.packing()
	if need := served[packed]; !f.serves() || f.gguf() || f.use.SGLang || !nvidia || 10*major+minor >= need.sure {
		return ""
	}
	return fmt.Sprintf("older releases of vLLM, as 0.11, need compute capability %s for %s",
		capability(served[packed].sure), packed)
}

func capability(tenfold int) string { return fmt.Sprintf("%d.%d", tenfold/10, tenfold%10) }
