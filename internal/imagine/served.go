package imagine

import (
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
)

// Served is what the command of an LLM server says of what decides its memory.
type Served struct {
	Model       string
	Utilization float64 // 1: not known, so that all of the memory may be used
	Cache       string  // type of keys and values; "": the model's
	GPUs        int     // that share each layer
	SGLang      bool    // it is the engine; else vLLM
}

// changing are arguments that change what weights or cache take in ways that files do not tell.
var changing = []string{"quantization", "q", "dtype", "cpu-offload-gb", "hf-overrides", "kv-cache-memory",
	"kv-cache-memory-bytes", "num-gpu-blocks-override", "speculative-config", "pipeline-parallel-size", "pp",
	"decode-context-parallel-size", "dcp", "kv-transfer-config", "data-parallel-size", "dp", "config", // of SGLang:
	"pp-size", "dp-size", "ep-size", "json-model-override-args", "max-total-tokens", "modelopt-quant", "torchao-config",
	"speculative-algorithm", "enable-dp-attention", "nnodes", "swa-full-tokens-ratio"}

// mostByDefault is the share that vLLM 0.33 takes where none is given; 0.11 takes 0.9.
const mostByDefault = 0.92

// ServedBy reads the command of an LLM server, see frameworks.ServerOf; false: it is another, or says what is not
// followed here.
func ServedBy(command []string) (s Served, ok bool) {
	engine, words := frameworks.ServerOf(command)
	switch engine {
	case "vLLM":
		s.Utilization = mostByDefault
	case "SGLang":
		s.SGLang, s.Utilization = true, 1 // its share follows from the GPU and from other settings
	default:
		return s, false
	}
	s.GPUs = 1
	for ; len(words) > 0; words = words[1:] {
		flag, value, given := strings.Cut(words[0], "=")
		name := strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
		switch {
		case !strings.HasPrefix(flag, "-"):
			s.Model = words[0]
			continue
		case !given && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
			value, words = words[1], words[1:]
		}
		var err error
		switch name {
		case "model", "model-path":
			s.Model = value
		case "gpu-memory-utilization", "mem-fraction-static":
			s.Utilization, err = strconv.ParseFloat(value, 64)
		case "kv-cache-dtype":
			s.Cache = value
		case "tensor-parallel-size", "tp", "tp-size":
			s.GPUs, err = strconv.Atoi(value)
		}
		if err != nil || slices.Contains(changing, name) {
			return s, false
		}
	}
	return s, s.Model != ""
}

// SharedBy is among how many GPUs a server's command shares each layer; 1 where it does not say.
func SharedBy(command []string) int {
	_, words := frameworks.ServerOf(command)
	for i, word := range words {
		name, value, given := strings.Cut(strings.ReplaceAll(word, "_", "-"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		if name := strings.TrimLeft(name, "-"); name == "tensor-parallel-size" || name == "tp-size" || name == "tp" {
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				return n
			}
		}
	}
	return 1
}
