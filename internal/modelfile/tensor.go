package modelfile

import (
	"errors"
	"fmt"
	"sync"

	"hightide/internal/mem"
)

// Tensor is one stored array.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int64 // as the file has it; GGUF's are turned round, so that rows come first as everywhere else
	Bytes mem.Bytes
}

// Elements is how many numbers a tensor has, as stored: several of a packed type may share one.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Error says which file cannot be used, where it stops making sense, and why.
type Error struct {
	File   string
	Offset int64 // bytes from the start of the file; -1: of no place in it
	Err    error
}

func (e *Error) Unwrap() error { return e.Err }
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s: at byte %d: %v", e.File, e.Offset, e.Err)
}

// errEnds is that of a file that was not copied whole.
var errEnds = errors.New("the file ends before what its header promises: was it copied whole?")

// short is a name that a stranger gave, for an error.
func short(name string) string {
	if len(name) > 80 {
		return name[:80] + "…"
	}
	return name
}

// What a stranger's files may make us keep.
const (
	maxTensors = 300_000   // of a model; the largest published ones have half of that
	maxNames   = 32 << 20  // bytes of names of tensors
	maxConfig  = 8 << 20   // bytes of a config.json
	maxHeader  = 32 << 20  // bytes of a JSON header or index
	maxIndex   = 128 << 20 // bytes of an index, of which the names of files are kept
	maxValues  = 4 << 20   // bytes of values of a GGUF header
	maxFiles   = 4096      // with weights
	maxGGUF    = 256 << 20 // bytes of a GGUF header, most of which is a vocabulary that is passed over
)

// budget is what all files of a model may make us keep. It may be used from several goroutines.
type budget struct {
	mutex          sync.Mutex
	tensors, names int

	large sync.Mutex
}

// tensor counts one that is kept.
func (b *budget) tensor(t *Tensor) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.tensors++
	b.names += len(t.Name) + 8*len(t.Shape)
	switch {
	case len(t.Shape) > 8:
		return fmt.Errorf("tensor %q has %d dimensions", short(t.Name), len(t.Shape))
	case b.tensors > maxTensors:
		return fmt.Errorf("more than %d tensors", maxTensors)
	case b.names > maxNames:
		return fmt.Errorf("names of tensors of more than %d bytes", maxNames)
	}
	return nil
}

// alone waits until no other large header is read; call what it returns when done.
func (b *budget) alone() func() {
	b.large.Lock()
	return b.large.Unlock
}
