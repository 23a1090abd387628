package wire

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"hightide/internal/mem"
)

// maxWeight bounds the memory that one recording may take once it is loaded.
const maxWeight = 4 << 30

// Load reads a whole recording. What could not be read is in Damage of the Run; the error is that
// there is no recording, that it is of a newer version, or beyond every limit.
func Load(src io.Reader) (*mem.Run, error) {
	r, err := NewReader(src)
	if err != nil {
		return nil, err
	}
	run, err := collect(r)
	if err != nil {
		return nil, err
	}
	return run, nil
}

func collect(r *Reader) (*mem.Run, error) {
	run := mem.NewRun()
	r.decoder.scratch = &scratch{} // the Run copies the columns of every frame
	refused := map[string]*mem.Damage{}
	weight := int64(0)
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read recording: %w", err)
		}
		if weight += weigh(f, r.last); weight > maxWeight {
			return nil, fmt.Errorf("read recording: %w: it would take more than %v of memory", ErrTooLarge, mem.Bytes(maxWeight))
		}
		if err := run.Add(f); err != nil {
			refuse(refused, r, err.Error())
		}
	}
	run.Damage = r.Damage()
	for _, d := range refused {
		run.Damage = append(run.Damage, *d)
	}
	slices.SortStableFunc(run.Damage, func(a, b mem.Damage) int { return cmp.Compare(a.Offset, b.Offset) })
	if n := r.Unknown(); n > 0 {
		run.Damage = append(run.Damage, mem.Damage{Text: fmt.Sprintf("%d facts are of kinds that only a newer hightide knows", n)})
	}
	return run, nil
}

// refuse notes a frame that makes no sense, as when the definition before it was damaged: once for
// each reason.
func refuse(refused map[string]*mem.Damage, r *Reader, text string) {
	if d := refused[text]; d != nil {
		d.Bytes += int64(r.last)
	} else if len(refused) < maxDamage {
		refused[text] = &mem.Damage{Offset: r.at, Bytes: int64(r.last), Text: text}
	}
}

// weigh is about what a frame takes in a Run.
func weigh(f mem.Frame, payload int) int64 {
	switch f := f.(type) {
	case mem.Samples:
		return 16*int64(len(f.Times)) + 64
	case mem.Spans:
		return 160 * int64(len(f))
	case mem.Steps:
		return 104 * int64(len(f))
	case mem.StackDef:
		return 64*int64(len(f.Locations)) + 128
	case mem.HeapAges:
		return 8*int64(payload) + 128
	case mem.HeapUse:
		return 96*int64(len(f.Sites)) + 128
	}
	return 512 + 2*int64(payload)
}
