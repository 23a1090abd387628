package store

import "hightide/internal/mem"

// pending keeps the frames that later ones cannot do without (definitions, and facts of which only the
// newest counts) while they wait to be written. That is for the next block, or on a full disk for as long
// as it is full. One frame is kept for each thing it is about.
type pending struct {
	frames []mem.Frame
	at     map[any]int
}

// maxPending bounds the list on a disk that stays full.
const maxPending = 50_000

// about names the thing a frame is about; nil for the frames of which there are many.
func about(f mem.Frame) any {
	type key struct {
		what    string
		process uint32
		name    string
	}
	switch f := f.(type) {
	case mem.RunInfo:
		return key{what: "run"}
	case mem.Process:
		return key{what: "process", process: f.ID}
	case mem.SeriesDef:
		return key{what: "series", process: f.ID}
	case mem.StackDef:
		return key{what: "stack", process: f.ID}
	case mem.PhaseStats:
		return key{"phase", f.Process, string(f.Phase) + "\x00" + f.Name}
	case mem.StepTotal:
		return key{what: "steps", process: f.Process}
	case mem.Module:
		return key{"module", f.Process, f.Name}
	case mem.ModelUse:
		return key{"model", f.Process, f.Device}
	case mem.Drop:
		return key{"drop", f.Process, f.Place}
	case mem.Holder:
		return key{"holder", f.Process, f.Name}
	case mem.Cell:
		return key{what: "cell" + f.File}
	case mem.End:
		return key{what: "end"}
	case mem.Event:
		type event struct {
			time int64
			kind string
			text string
		}
		return event{f.Time, f.Kind, f.Text}
	}
	return nil
}

// putFrame keeps a frame and says whether it did.
func (p *pending) putFrame(f mem.Frame) bool {
	thing := about(f)
	if thing == nil {
		return false
	}
	if at, ok := p.at[thing]; ok {
		p.frames[at] = f
		return true
	}
	if len(p.frames) >= maxPending {
		return false
	}
	if p.at == nil {
		p.at = map[any]int{}
	}
	p.at[thing] = len(p.frames)
	p.frames = append(p.frames, f)
	return true
}

func (p *pending) clear() {
	clear(p.frames)
	clear(p.at)
	p.frames = p.frames[:0]
}
