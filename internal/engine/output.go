package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/observe"
	"hightide/internal/store"
)

// OutputFile is what a run's output is called among what is kept with it: every byte as the program wrote it, with standard output and
// error in the order in which they came. Of more than RunOptions.KeepLimit the beginning and the end are kept.
const OutputFile = "output.log"

// Begun says that a run has its id, before its program starts.
type Begun struct {
	RunID     string                        `json:"run"`
	Elsewhere string                        `json:"elsewhere,omitempty"` // why and where it is recorded outside the data directory
	Resize    func(columns, rows int)       `json:"-"`                   // gives the program's terminal another size, where its output is kept
	Output    func() (io.ReadCloser, error) `json:"-"`                   // reads what is kept, see Engine.Output
}

// EventName implements event.Event.
func (Begun) EventName() string { return "begun" }

// lingering is how long is waited for what a program wrote last, or what it left behind still writes.
const lingering = time.Second

// begun is what is told of a run that has its id.
func (p *place) begun(ctx context.Context, result *RunResult) Begun {
	return Begun{RunID: result.ID, Elsewhere: result.Elsewhere, Resize: func(int, int) {}, Output: func() (io.ReadCloser, error) {
		return p.engine.Output(context.WithoutCancel(ctx), result.ID)
	}}
}

// keepOutput has the program's output kept, where that is wanted; done is called after its end.
func (e *Engine) keepOutput(ctx context.Context, o *RunOptions, to *observe.Options, p *place, result *RunResult) (done func(), err error) {
	begun := p.begun(ctx, result)
	done = func() {}
	if o.KeepOutput || o.OutputApart {
		file, err := os.OpenFile(filepath.Join(p.engine.scratch(result.ID), OutputFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fail.Environment("is the data directory full? see df", "keep the program's output: %w", err)
		}
		defer file.Close()
		kept, err := launch.Keep(&to.Runtime, file, !o.OutputApart, o.KeepLimit)
		if err != nil {
			return nil, fail.Environment("leave out --capture and --live", "keep the program's output: %w", err)
		}
		begun.Resize, done = kept.Resize, func() { kept.Close(lingering) }
	}
	o.Events.Tell(begun)
	return done, nil
}

// Output reads what the program of a run wrote, as far as it is there: also while it runs. fs.ErrNotExist says that it was not kept.
func (e *Engine) Output(ctx context.Context, ref string) (io.ReadCloser, error) {
	return inStore(ctx, e, func(s store.Store) (io.ReadCloser, error) {
		run, err := store.Resolve(s, ref)
		if err != nil {
			return nil, err
		}
		if file, err := os.Open(filepath.Join(e.scratch(run.ID), OutputFile)); err == nil {
			return file, nil
		}
		file, err := s.Open(run.ID, OutputFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail.Input("hightide run --capture keeps it", "the output of run %s was not kept: %w", run.ID, fs.ErrNotExist)
		}
		return file, err
	})
}

// Where data begins and where it ends in a file with holes (lseek).
const (
	seekData = 3
	seekHole = 4
)

// copyData copies a file without its holes: an output of which the middle was left out.
func copyData(w io.Writer, file *os.File) error {
	for at := int64(0); ; {
		begin, err := file.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) {
			return nil // none follows
		}
		if err != nil { // files that do not tell
			if _, err := file.Seek(at, io.SeekStart); err != nil {
				return err
			}
			_, err = io.Copy(w, file)
			return err
		}
		end, err := file.Seek(begin, seekHole)
		if err != nil {
			return err
		}
		if _, err := file.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(w, file, end-begin); err != nil {
			return err
		}
		at = end
	}
}
