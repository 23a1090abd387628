package mcp

import (
	"context"
	"strings"

	"hightide/internal/event"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

type gpusInput struct {
	Name string `json:"name,omitempty" jsonschema:"one GPU, as a100-40g; default all"`
}

// gpusAnswer leaves out where the figures come from, which the text has of a single GPU.
type gpusAnswer struct {
	GPUs []gpuFacts `json:"gpus" jsonschema:"by memory, smallest first"`
}

type gpuFacts struct {
	GPU      string    `json:"gpu"`
	Name     string    `json:"name"`
	Total    mem.Bytes `json:"total_bytes" jsonschema:"as a framework sees it"`
	Overhead mem.Bytes `json:"context_overhead_bytes" jsonschema:"of a process beside the framework's allocator"`
	Compute  string    `json:"compute_capability"`
	Price    float64   `json:"price_usd_per_hour,omitempty"`
}

var listGPUs = tool[gpusInput, gpusAnswer]{
	name: "gpus", title: "Catalogue of GPUs",
	about: "GPUs of the catalogue: memory as a framework sees it, context overhead, compute capability, price an " +
		"hour.",
	answer: func(_ context.Context, _ *door, in gpusInput, _ event.Sink) (out gpusAnswer, text string, err error) {
		found, err := gpus.Listed(nil, in.Name)
		if err != nil {
			return out, "", err
		}
		text = found.Table().Text(plain)
		if in.Name != "" {
			text += "\n" + strings.Join(found.GPUs[0].Sources(), "\n")
		}
		out.GPUs = []gpuFacts{}
		for _, g := range found.GPUs {
			out.GPUs = append(out.GPUs, gpuFacts{g.Slug, g.Name, g.Total, g.Overhead, g.Compute, g.Price})
		}
		return out, text, nil
	},
}
