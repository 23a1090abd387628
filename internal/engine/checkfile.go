package engine

import (
	"context"
	"errors"
	"os"

	"hightide/internal/fail"
)

// FileFacts is what a stranger's file turned out to be.
type FileFacts struct {
	Format  string `json:"format"`
	Devices int    `json:"devices"`
	Events  int    `json:"events"` // of allocators' histories
	Blocks  int    `json:"blocks"` // at the end
}

// CheckSnapshot reads a stranger's file whole, as an allocator snapshot or a trace of one, and says what is in it. It starts no other
// program, whatever the file is. Meant for a process of its own, with limits: reading may take whatever the file makes it take.
func (e *Engine) CheckSnapshot(ctx context.Context, path string) (*FileFacts, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Input("name a file that can be read", "%w", err)
	}
	defer file.Close()
	document, err := e.decode(ctx, file, "the file")
	if err != nil {
		return nil, err
	}
	if document.Snapshot == nil {
		return nil, fail.Input("torch.cuda.memory._dump_snapshot writes one", "the file is no allocator snapshot: %w", errors.New(document.Format))
	}
	s := document.Snapshot
	facts := &FileFacts{Format: document.Format, Devices: len(s.AllDevices())}
	for i := range s.Traces {
		facts.Events += len(s.Traces[i].Action)
	}
	for i := range s.Segments {
		facts.Blocks += len(s.Segments[i].Blocks)
	}
	return facts, nil
}
