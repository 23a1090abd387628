package mcp

import (
	"context"
	"strings"

	"hightide/internal/event"
	"hightide/internal/gpus"
)

type gpusInput struct {
	Name string `json:"name,omitempty" jsonschema:"one GPU, as a100-40g; default all"`
}

var listGPUs = tool[gpusInput, gpus.List]{
	name: "gpus", title: "Catalogue of GPUs",
	about: "GPUs that can be imagined: memory as a framework sees it, context overhead, compute capability, price an hour.",
	answer: func(_ context.Context, _ *door, in gpusInput, _ event.Sink) (out gpus.List, text string, err error) {
		found, err := gpus.Listed(nil, in.Name)
		if err != nil {
			return out, "", err
		}
		text = found.Table().Text(plain)
		if in.Name != "" {
			text += "\n" + strings.Join(found.GPUs[0].Sources(), "\n")
		}
		return *found, text, nil
	},
}
