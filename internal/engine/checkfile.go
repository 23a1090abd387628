package engine

import (
	"context"
	"errors"
	"os"

	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/mem"
	"hightide/internal/wire"
)

// FileFacts is what a stranger's file turned out to be.
type FileFacts struct {
	Format  string `json:"format"`
	Devices int    `json:"devices"`
	Events  int    `json:"events"` // of allocators' histories; of a recording those of its snapshots
	Blocks  int    `json:"blocks"` // at the end
}

// CheckFile reads a stranger's file whole, as an allocator snapshot, a trace of one or a recording, and says what is in it. It starts no other
// program, whatever the file is. Meant for a process of its own, with limits: reading may take whatever the file makes it take.
func (e *Engine) CheckFile(ctx context.Context, path string) (*FileFacts, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Input("name a file that can be read", "%w", err)
	}
	defer file.Close()
	document, err := e.decode(ctx, file, "the file")
	if errors.Is(err, format.ErrUnknown) { // the list of all formats would name many that this page does not show
		return nil, fail.Input("send a memory snapshot of PyTorch, or a recording of hightide", "the file: %w", format.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	if document.Format == recordingFormat {
		return recordingFacts(file, document.Recording)
	}
	if document.Snapshot == nil {
		return nil, fail.Input("hightide explain FILE shows it", "the file is %s, which this page does not show", kindOf(document.Format))
	}
	facts := &FileFacts{Format: document.Format}
	facts.count(document.Snapshot)
	return facts, nil
}

func (f *FileFacts) count(s *mem.AllocatorSnapshot) {
	f.Devices = max(f.Devices, len(s.AllDevices()))
	for i := range s.Traces {
		f.Events += len(s.Traces[i].Action)
	}
	for i := range s.Segments {
		f.Blocks += len(s.Segments[i].Blocks)
	}
}

// recordingFacts reads what the recording holds as whoever shows it will.
func recordingFacts(file *os.File, run *mem.Run) (*FileFacts, error) {
	start := make([]byte, len(wire.Magic))
	if _, err := file.ReadAt(start, 0); err != nil || string(start) != wire.Magic {
		return nil, fail.Input("unpack it first, as by gunzip or unzstd", "the file is a compressed recording")
	}
	facts := &FileFacts{Format: recordingFormat}
	decoded, _ := recordedSnapshots(run)
	for _, s := range decoded {
		facts.count(s.AllocatorSnapshot)
	}
	Analyze(run)
	return facts, nil
}

// kindOf says in words what a format is.
func kindOf(name string) string {
	for _, f := range format.Formats {
		if f.Name == name && f.Reads != "" {
			return f.Reads
		}
	}
	return "of another kind"
}
