package profiler

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// ortEvent is what is read of an entry of ONNX Runtime's profile, a list of Chrome's complete events. Releases up to 1.20
// do not say what the arena holds.
type ortEvent struct {
	Category string `json:"cat"`
	Name     string `json:"name"`
	Start    int64  `json:"ts"`  // µs since the profile began
	Duration int64  `json:"dur"` // µs
	Args     struct {
		Operator string   `json:"op_name"`
		Provider string   `json:"provider"`
		Output   ortBytes `json:"output_size"`
		InUse    ortBytes `json:"mem_bytes_in_use"` // after the run, as those below
		Peak     ortBytes `json:"mem_in_use_peak"`  // since the arena was made
		Held     ortBytes `json:"mem_arena_held"`
		Added    ortBytes `json:"mem_in_use_delta"`
	} `json:"args"`
}

// ortBytes is a size that the profile has as text; absent where it is no number.
type ortBytes struct{ mem.Optional }

// UnmarshalJSON implements json.Unmarshaler.
func (b *ortBytes) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err == nil && n < int64(mem.MaxSize) && -n < int64(mem.MaxSize) {
		b.Optional = mem.Some(n)
	}
	return nil
}

// Bounds of a profile: the runtime itself keeps a million entries. A longer run's curve has the highest of neighbours.
const (
	maxORTEvents = 1 << 21
	maxORTNodes  = 1 << 16
	maxORTPoints = 4096
	maxORTTime   = 1 << 52 // µs
)

// ran ends the name of an entry of a node's run.
const ran = "_kernel_time"

// IsONNXRuntime knows such a profile by the categories that its entries begin with.
func IsONNXRuntime(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if !bytes.HasPrefix(head, []byte("[")) {
		return false
	}
	start := bytes.ReplaceAll(head[:min(len(head), 4096)], []byte(" "), nil)
	return bytes.Contains(start, []byte(`"cat":"Session"`)) || bytes.Contains(start, []byte(`"cat":"Node"`))
}

// ReadONNXRuntime reads what ONNX Runtime's profiler says of the nodes that ran.
func ReadONNXRuntime(r io.Reader) (*mem.NodeProfile, error) {
	in := json.NewDecoder(bufio.NewReader(r))
	p := ortProfile{}
	if err := p.read(in); err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", in.InputOffset(), err)
	}
	if len(p.nodes.All) == 0 {
		return nil, errors.New("no node ran while ONNX Runtime wrote this profile: call the session before end_profiling")
	}
	return &mem.NodeProfile{Nodes: p.nodes.All, Arenas: p.arenas.All}, nil
}

type ortProfile struct {
	nodes  mem.Tally[[2]string, mem.NodeRuns]
	arenas mem.Tally[string, mem.Arena]
}

func (p *ortProfile) read(in *json.Decoder) error {
	if _, err := in.Token(); err != nil {
		return err
	}
	for count := 1; in.More(); count++ {
		var e ortEvent
		var wrong *json.UnmarshalTypeError
		if err := in.Decode(&e); err != nil && !errors.As(err, &wrong) {
			return err
		} else if err != nil || e.Category != "Node" || !strings.HasSuffix(e.Name, ran) {
			continue // of a session, a kernel, or another tool
		}
		if p.add(&e); count > maxORTEvents || len(p.nodes.All) > maxORTNodes {
			return fmt.Errorf("more than %d entries, or %d nodes", maxORTEvents, maxORTNodes)
		}
	}
	_, err := in.Token()
	return err
}

func (p *ortProfile) add(e *ortEvent) {
	a := &e.Args
	name := strings.TrimSuffix(e.Name, ran)
	n := p.nodes.At([2]string{name, a.Provider})
	n.Name, n.Operator, n.Provider = name, a.Operator, a.Provider
	n.Runs, n.Time = n.Runs+1, n.Time+1000*min(max(e.Duration, 0), maxORTTime/maxORTEvents)
	n.Output.Raise(a.Output.Optional)
	n.Added.Raise(a.Added.Optional)
	inUse, known := a.InUse.Get()
	if !known {
		return
	}
	arena := p.arenas.At(a.Provider)
	first := len(arena.X) == 0
	peak := mem.Bytes(max(a.Peak.Or(inUse), inUse))
	if first { // what was in use before is not this node's
		n.Raised = mem.Some(min(max(a.Added.Or(0), 0), int64(peak)))
	} else {
		n.Raised = mem.Some(n.Raised.Or(0) + int64(max(peak-arena.Peak, 0)))
	}
	arena.Provider, arena.Peak = a.Provider, max(arena.Peak, peak)
	arena.Held = max(arena.Held, mem.Bytes(a.Held.Or(0)))
	at := 1000 * min(max(e.Start+max(e.Duration, 0), 0), maxORTTime)
	if !first {
		at = max(at, arena.X[len(arena.X)-1])
	}
	arena.X, arena.Y = append(arena.X, at), append(arena.Y, inUse)
	if len(arena.X) > 2*maxORTPoints {
		halve(arena)
	}
}

// halve keeps the higher of each two neighbours.
func halve(a *mem.Arena) {
	n := len(a.X) / 2
	for i := range n {
		high := 2 * i
		if a.Y[high+1] > a.Y[high] {
			high++
		}
		a.X[i], a.Y[i] = a.X[high], a.Y[high]
	}
	a.X, a.Y = a.X[:n], a.Y[:n]
}
