package engine

import (
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
)

// Aside is this engine for programs that run for a caller alone. They have no terminal and no input, end when this
// process does, and get no signals of it. said ends the taking of what they write and gives its beginning and end, with
// secrets masked.
func (e *Engine) Aside() (apart *Engine, said func() string, err error) {
	output, err := launch.NewCapture()
	if err != nil {
		return nil, nil, fail.Environment("are there too many open files?", "keep what a program writes: %w", err)
	}
	own := *e
	own.Runtime.Stdin, own.Runtime.PassSignals, own.Runtime.Own, own.Runtime.Tune = nil, false, true, nil
	own.Runtime.Stdout, own.Runtime.Stderr = output.File, output.File
	return &own, func() string {
		output.Close()
		return mem.MaskText(string(output.Text()))
	}, nil
}
