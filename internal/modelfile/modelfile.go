// Package modelfile reads what the files of a model say about its memory: the tensors with their types and sizes, and
// what a sequence keeps in the cache. Nothing of the weights is read, and nothing is executed.
//
//	config.json ───────────────▶ Shape ──┐ (config.go, caches.go)
//	   no weights: weights.go ───▶ Tensors ┤
//	*.safetensors, headers ─────▶ Tensors ┼──▶ Model ──▶ package plan
//	*.gguf, header ───▶ Tensors, Shape ───┤ (gguf.go, ggufshape.go)
//	*.onnx, *.tflite, *.pt2 ────▶ Tensors ┘ (onnx.go, tflite.go, pt2.go)
//
// Files come from an fs.FS whose files can be read at any place: a folder, or a repository on a server. A header may be
// a stranger's: each length in it is checked before it is used, and what is kept is bounded. Errors say the file and
// the byte. Read Model next, then read.go.
package modelfile

import (
	"strings"

	"hightide/internal/mem"
)

// Model is what a model's files say.
type Model struct {
	Format  Format   // of the weights
	Files   []string // with weights, in the order of their names
	Shape   Shape    // what decides on the cache; zero where the files do not tell
	Tensors []Tensor // in the order of the files; computed from Shape where Format is FormatConfig

	Graph   *Graph       // what is computed; nil: the file does not tell it in a form that is read here
	Planned mem.Optional // bytes that the file says are to be set aside for what is computed
}

// Format says where the tensors of a model were read.
type Format string

// The formats.
const (
	FormatSafetensors Format = "safetensors"
	FormatGGUF        Format = "gguf"
	FormatONNX        Format = "onnx"
	FormatTFLite      Format = "tflite"
	FormatPT2         Format = "pt2"
	FormatPTE         Format = "pte"
	FormatConfig      Format = "config" // no weights were read: their shapes follow from the configuration
)

// Graph says whether the weights are those of a program, which is run as it is: not served by vLLM, and not trained.
func (f Format) Graph() bool {
	return f == FormatONNX || f == FormatTFLite || f == FormatPT2 || f == FormatPTE
}

// layerOf is the number of the layer that a tensor belongs to, by the part of its name that is a number: -1 where there
// is none.
func layerOf(name string) int {
	for part := range strings.SplitSeq(name, ".") {
		n, digits := 0, 0
		for _, c := range part {
			if c < '0' || c > '9' || digits > 5 {
				digits = -1
				break
			}
			n, digits = n*10+int(c-'0'), digits+1
		}
		if digits > 0 {
			return n
		}
	}
	return -1
}

// Loaded are the tensors that an engine or a framework loads: not those of layers behind the last one, which predict
// several tokens ahead and are loaded on request, nor constants that some older files hold.
func (m *Model) Loaded() (tensors []Tensor, left []Tensor) {
	for _, t := range m.Tensors {
		if m.extra(&t) {
			left = append(left, t)
		} else {
			tensors = append(tensors, t)
		}
	}
	return tensors, left
}

func (m *Model) extra(t *Tensor) bool {
	layers := m.Shape.Layers
	ahead := layers > 0 && m.Shape.NextLayers > 0 && layerOf(t.Name) >= layers && m.Shape.decoderLayer(t.Name)
	return ahead || strings.HasPrefix(t.Name, "mtp.") || constant(t)
}

// constant says that a tensor is no parameter: a mask of GPT-2, GPT-J or GPT-NeoX, or the frequencies of rotary
// embeddings, which are computed when a model is built.
func constant(t *Tensor) bool {
	switch {
	case strings.HasSuffix(t.Name, ".attn.bias"), strings.HasSuffix(t.Name, ".attention.bias"):
		return len(t.Shape) == 4
	case strings.HasSuffix(t.Name, ".masked_bias"), strings.HasSuffix(t.Name, ".rotary_emb.inv_freq"),
		strings.HasSuffix(t.Name, ".position_ids"):
		return true
	}
	return false
}

// Bytes is what tensors take.
func Bytes(tensors []Tensor) (total mem.Bytes) {
	for i := range tensors {
		total += tensors[i].Bytes
	}
	return total
}
