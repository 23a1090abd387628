package plan

import (
	"context"

	"hightide/internal/gpus"
	"hightide/internal/report"
)

// How many GPUs are imagined: up to the first that does it, or all that may. ImagineAuto is as the first where what
// runs the use is there, and else nothing, with a note that says why.
const (
	ImagineAuto  = "auto"
	ImagineFirst = "first"
	ImagineAll   = "all"
	ImagineOff   = "off"
)

// ImagineModes are all of them.
var ImagineModes = []string{ImagineAuto, ImagineFirst, ImagineAll, ImagineOff}

// Host is what imagined runs need of the engine that they work for.
type Host struct {
	// Check says why nothing is imagined on this machine.
	Check func() error
	// Trainer is where the script of our trainer stands (agent/python/src/hightide/_fit/planned.py).
	Trainer func() (path string, err error)
	// Session prepares runs of a program on imaginary GPUs, with these variables.
	Session func(variables map[string]string, command []string) Trial
	// AtOnce is how many of some runs are made side by side.
	AtOnce func(runs int) int
}

// Trial runs a command on so many GPUs that are not there. said is what it wrote last.
type Trial func(ctx context.Context, g *gpus.GPU, count int, command []string) (v *report.Imagined, said string, err error)
