package imagine

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Served is what the command of an LLM server says of what decides its memory.
type Served struct {
	Model       string
	Utilization float64 // 0: the engine's own
	Cache       string  // type of keys and values; "": the model's
	GPUs        int     // that share each layer
}

// changing are arguments that change what weights or cache take in ways that files do not tell.
var changing = []string{"quantization", "q", "dtype", "cpu-offload-gb", "hf-overrides", "kv-cache-memory",
	"kv-cache-memory-bytes", "num-gpu-blocks-override", "speculative-config", "pipeline-parallel-size", "pp",
	"decode-context-parallel-size", "dcp", "kv-transfer-config", "data-parallel-size", "dp", "config"}

// ServedBy reads the command `vllm serve MODEL …`; false: it is another, or says what is not followed here.
func ServedBy(command []string) (s Served, ok bool) {
	at := slices.Index(command, "serve")
	if at < 1 || filepath.Base(command[at-1]) != "vllm" {
		return s, false
	}
	s.GPUs = 1
	for words := command[at+1:]; len(words) > 0; words = words[1:] {
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
		case "model":
			s.Model = value
		case "gpu-memory-utilization":
			s.Utilization, err = strconv.ParseFloat(value, 64)
		case "kv-cache-dtype":
			s.Cache = value
		case "tensor-parallel-size", "tp":
			s.GPUs, err = strconv.Atoi(value)
		}
		if err != nil || slices.Contains(changing, name) {
			return s, false
		}
	}
	return s, s.Model != ""
}
