package plan

import (
	"context"

	"hightide/internal/gpus"
	"hightide/internal/report"
)

// How many GPUs are imagined: up to the first that does it, or all that may.
const (
	ImagineFirst = "first"
	ImagineAll   = "all"
)

// Host is what imagined runs need of the engine that they work for.
type Host struct {
	// Trainer is where the script of our trainer stands (agent/python/src/hightide/_fit/planned.py).
	Trainer func() (path string, err error)
	// Session prepares runs of a program on imaginary GPUs, with these variables.
	Session func(variables map[string]string, command []string) Trial
	// AtOnce is how many of some runs are made side by side.
	AtOnce func(runs int) int
}

// Trial runs a command on so many GPUs that are not there. said is what it wrote last.
type Trial func(ctx context.Context, g *gpus.GPU, count int, command []string) (v *report.Imagined, said string, err error)
