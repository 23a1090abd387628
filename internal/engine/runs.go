package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/system"
)

// store is the place of the recordings, with the visitors; close it after use.
func (e *Engine) store() (store.Store, error) {
	s, err := e.ownStore()
	if err != nil {
		return s, err
	}
	if ids := e.spilled(); len(ids) > 0 {
		other, err := (&Engine{DataDir: temporaryDir()}).ownStore()
		if err == nil {
			s = store.WithSpilled(s, other, ids)
		}
	}
	if e.Visitors == nil {
		return s, nil
	}
	return e.Visitors.With(s), nil
}

// spilling is the folder that says for which data directory each run in the temporary one was meant: a file a run, by
// its id.
const spilling = "meant"

// spilled are the ids of runs in the temporary folder that were meant for this data directory, which could not be
// written then.
func (e *Engine) spilled() []string {
	folder := filepath.Join(temporaryDir(), spilling)
	if e.Store != nil || e.Shared() != "" || e.Dir() == temporaryDir() || launch.Private(temporaryDir()) != nil {
		return nil
	}
	entries, _ := os.ReadDir(folder)
	var ids []string
	for _, entry := range entries {
		if meant, err := os.ReadFile(filepath.Join(folder, entry.Name())); err == nil && string(meant) == absolute(e.Dir()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids
}

// spill notes for which data directory a run in the temporary folder was meant. Best effort.
func (e *Engine) spill(id string) {
	folder := filepath.Join(temporaryDir(), spilling)
	if os.MkdirAll(folder, 0o700) == nil {
		_ = os.WriteFile(filepath.Join(folder, id), []byte(absolute(e.Dir())), 0o600)
	}
}

// Elsewhere is where a run lies that was meant for this data directory and could not be written there; empty: it lies
// there.
func (e *Engine) Elsewhere(run store.Run) string {
	if strings.HasPrefix(run.File, temporaryDir()+string(filepath.Separator)) && e.Dir() != temporaryDir() {
		return temporaryDir()
	}
	return ""
}

func (e *Engine) ownStore() (store.Store, error) {
	if e.Store != nil {
		return lent{e.Store}, nil
	}
	if shared := e.Shared(); shared != "" {
		return store.Open(store.Place{Store: shared, Objects: cmp.Or(e.Objects, os.Getenv("HIGHTIDE_OBJECTS")),
			Folder: e.Folder()})
	}
	if _, err := os.Lstat(e.Dir()); err == nil && e.Dir() == temporaryDir() {
		if err := launch.Private(e.Dir()); err != nil {
			return nil, &store.Error{Kind: store.ErrPlace, Text: "cannot use the data directory", Err: err,
				Hint: "use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA"}
		}
	}
	return store.Open(store.Place{Store: e.Dir()})
}

// lent is a store that stays open: others use it too.
type lent struct{ store.Store }

func (lent) Close() error { return nil }

// advised gives a failure of the store its exit code and hint.
func advised(err error) error {
	var typed *store.Error
	if err == nil || !errors.As(err, &typed) {
		return err
	}
	if errors.Is(err, store.ErrPlace) {
		return fail.Environment(typed.Hint, "%w", err)
	}
	return fail.Input(typed.Hint, "%w", err)
}

// inStore does one piece of work on the store.
func inStore[T any](ctx context.Context, e *Engine, work func(store.Store) (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if err := e.Unread(); err != nil {
		return result, err
	}
	s, err := e.store()
	if err != nil {
		return result, advised(err)
	}
	e.recover(s)
	result, err = work(s)
	if closing := s.Close(); err == nil && closing != nil {
		err = fmt.Errorf("close index: %w", closing)
	}
	return result, advised(err)
}

// InStore works on what keeps the runs.
func (e *Engine) InStore(ctx context.Context, work func(store.Store) error) error {
	_, err := inStore(ctx, e, func(s store.Store) (struct{}, error) { return struct{}{}, work(s) })
	return err
}

// Runs lists the runs that a filter lets through, newest first.
func (e *Engine) Runs(ctx context.Context, filter store.Filter) ([]store.Run, error) {
	return inStore(ctx, e, func(s store.Store) ([]store.Run, error) { return s.List(filter) })
}

// Resolve finds a run by id, unique prefix, name, "last", or file.
func (e *Engine) Resolve(ctx context.Context, ref string) (store.Run, error) {
	return inStore(ctx, e, func(s store.Store) (store.Run, error) {
		run, err := store.Resolve(s, ref)
		e.tellNamesakes(run)
		return run, err
	})
}

func (e *Engine) tellNamesakes(taken store.Run) {
	if taken.Namesakes > 0 && e.Namesakes != nil {
		e.Namesakes(taken)
	}
}

// Find finds a run of the store by what a stranger calls it: an id, a unique prefix, a name or "last", and never a
// file.
func (e *Engine) Find(ctx context.Context, ref string) (store.Run, error) {
	return inStore(ctx, e, func(s store.Store) (store.Run, error) { return store.Find(s, ref) })
}

// Load reads the recording of what Resolve understands.
func (e *Engine) Load(ctx context.Context, ref string) (row store.Run, run *mem.Run, err error) {
	row, err = inStore(ctx, e, func(s store.Store) (store.Run, error) {
		row, run, err = store.Load(s, ref)
		e.tellNamesakes(row)
		return row, err
	})
	return row, run, err
}

// Follow gives the frames of a run as they are written, from a position of the recording on, 0 for all,
// until the run ends or the context does. A reader that is slow holds up nobody.
func (e *Engine) Follow(ctx context.Context, ref string, from int64) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		wanted, err := inStore(ctx, e, func(s store.Store) (bool, error) {
			run, err := store.Resolve(s, ref)
			if err != nil {
				return true, err
			}
			for batch, err := range s.Follow(ctx, run.ID, from) {
				if err != nil {
					return true, err
				}
				if !yield(batch, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil && wanted {
			yield(store.Batch{}, err)
		}
	}
}

// Attached lists what is kept with a run beside its recording, with its output while the program still writes it.
func (e *Engine) Attached(ctx context.Context, id string) ([]store.Attachment, error) {
	return inStore(ctx, e, func(s store.Store) ([]store.Attachment, error) {
		all, err := s.Attached(id)
		all = slices.DeleteFunc(slices.Clone(all), func(a store.Attachment) bool { _, is := store.CommentOf(a.Name); return is })
		if info, missing := os.Stat(filepath.Join(e.scratch(id), OutputFile)); err == nil && missing == nil {
			all = append(all, store.Attachment{Name: OutputFile, Size: info.Size()})
		}
		return all, err
	})
}

// AttachText keeps a text with a run, under a name.
func (e *Engine) AttachText(id, name string, text []byte) error {
	s, err := e.store()
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Attach(id, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	return err
}

// OpenAttached reads one of them, or by the name store.Recording the recording as it stands.
func (e *Engine) OpenAttached(ctx context.Context, id, name string) (io.ReadCloser, error) {
	return inStore(ctx, e, func(s store.Store) (io.ReadCloser, error) {
		file, err := s.Open(id, name)
		if _, is := store.CommentOf(name); err == nil && is { // they have a door of their own
			err = errors.Join(file.Close(), fs.ErrNotExist)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail.Input("its artifacts can be listed", "run %s has no artifact of that name: %w", id, fs.ErrNotExist)
		}
		return file, err
	})
}

// Remove deletes runs and returns those that it did. All are looked up before the first is deleted.
func (e *Engine) Remove(ctx context.Context, refs ...string) ([]store.Run, error) {
	return inStore(ctx, e, func(s store.Store) (removed []store.Run, err error) {
		runs, err := e.own(s, refs)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			if err := e.remove(s, run.ID); err != nil {
				return removed, err
			}
			removed = append(removed, run)
		}
		return removed, nil
	})
}

// own finds runs that are kept in the data directory, each once.
func (e *Engine) own(s store.Store, refs []string) ([]store.Run, error) {
	var runs []store.Run
	seen := map[string]bool{}
	for _, ref := range refs {
		run, err := store.Resolve(s, ref)
		if err != nil {
			return nil, err
		}
		e.tellNamesakes(run)
		kept, err := store.Resolve(s, run.ID)
		if err != nil || !sameFile(kept.File, run.File) {
			return nil, fail.Input("delete or copy the file itself", "%s is a file outside the data directory %s", run.File,
				e.Dir())
		}
		if !seen[kept.ID] {
			seen[kept.ID] = true
			runs = append(runs, kept)
		}
	}
	return runs, nil
}

func sameFile(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// Tag changes the tags of a run, and its name where one is given.
func (e *Engine) Tag(ctx context.Context, ref string, set map[string]string, remove []string,
	name *string) (store.Run, error) {
	return inStore(ctx, e, func(s store.Store) (run store.Run, err error) {
		runs, err := e.own(s, []string{ref})
		if err != nil {
			return run, err
		}
		if err := store.Tag(s, runs[0].ID, set, remove, name); err != nil {
			return run, err
		}
		return store.Resolve(s, runs[0].ID)
	})
}

// Prune removes runs that are too old, or too much, and returns them.
func (e *Engine) Prune(ctx context.Context, limits store.Limits) ([]store.Run, error) {
	if limits.Now.IsZero() {
		limits.Now = e.Runtime.Time()
	}
	return inStore(ctx, e, func(s store.Store) ([]store.Run, error) { return store.Prune(s, limits) })
}

// Reindex rebuilds the index from the recordings and returns how many runs there are.
func (e *Engine) Reindex(ctx context.Context, events event.Sink) (count int, err error) {
	return inStore(ctx, e, func(s store.Store) (int, error) {
		if err := s.Reindex(func(done, all int) { events.Tell(event.Progress{Done: done, All: all}) }); err != nil {
			return 0, err
		}
		runs, err := s.List(store.Filter{})
		return len(runs), err
	})
}

// Unsearched is of how many runs nothing is known that a filter by findings and lines could ask for, of those that it
// lets through otherwise: at most store.MostUnsearched. 0 where it does not ask for these.
func (e *Engine) Unsearched(ctx context.Context, filter store.Filter) (int, error) {
	if filter.PlaceText() == "" {
		return 0, nil
	}
	runs, err := e.Runs(ctx, filter.Unsearched())
	return len(runs), err
}

// Refound is what FindAgain did.
type Refound struct {
	Runs   int      `json:"found_again"`      // of which the findings were made and kept
	Failed []string `json:"failed,omitempty"` // ids of those whose recording cannot be read or written
	Reason string   `json:"reason,omitempty"` // of the first
}

// FindAgain makes the report of each run that an older hightide recorded, which kept no findings, lines or figures that
// runs are searched for by and trends are made of, and keeps in its recording what was found. The number of its findings
// is then that of this report. Runs that are being recorded are left out.
func (e *Engine) FindAgain(ctx context.Context, events event.Sink) (did Refound, err error) {
	return inStore(ctx, e, func(s store.Store) (did Refound, err error) {
		runs, err := s.List(store.Filter{})
		if err != nil {
			return did, err
		}
		runs = slices.DeleteFunc(runs, func(r store.Run) bool {
			return r.State == store.Running || r.From != "" || r.Places.Known() && r.Figures != nil
		})
		for i, run := range runs {
			if err := ctx.Err(); err != nil {
				return did, err
			}
			events.Tell(event.Progress{Done: i + 1, All: len(runs)})
			switch err := findAgain(s, run.ID); {
			case err == nil:
				did.Runs++
			case errors.Is(err, store.ErrRunning), errors.Is(err, store.ErrNotFound): // it has changed meanwhile
			default:
				if did.Failed = append(did.Failed, run.ID); did.Reason == "" {
					did.Reason = err.Error()
				}
			}
		}
		return did, nil
	})
}

func findAgain(s store.Store, id string) error {
	_, run, err := store.Load(s, id)
	if err != nil {
		return err
	}
	r := Analyze(run)
	w, err := s.Reopen(id)
	if err != nil {
		return err
	}
	err = errors.Join(w.Write(r.Found()), w.Close())
	return errors.Join(err, w.Lost().Err)
}

// What programs leave on disk while they run lies in a scratch folder of their run, which is not the
// store's. It has allocator snapshots on their way into the recording, and what else they put there.

// scratch is that folder.
func (e *Engine) scratch(id string) string { return filepath.Join(e.scratchDir(), id) }

func (e *Engine) scratchDir() string {
	dir := filepath.Join(e.Folder(), "scratch")
	if whole, err := filepath.Abs(dir); err == nil {
		return whole // the program may change its folder
	}
	return dir
}

// keepLeftovers attaches to a run what is left in its scratch folder, for other tools, and removes the folder.
func (e *Engine) keepLeftovers(s store.Store, id string) error {
	dir := e.scratch(id)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			err = errors.Join(err, attachFile(s, id, filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err // the files stay
	}
	return os.RemoveAll(dir)
}

func attachFile(s store.Store, id, path string) error {
	_, err := s.Attach(id, filepath.Base(path), func(w io.Writer) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		if filepath.Base(path) == OutputFile {
			return copyData(w, file)
		}
		_, err = io.Copy(w, file)
		return err
	})
	return err
}

// remove deletes a run that does not run any more, and what it left.
func (e *Engine) remove(s store.Store, id string) error {
	if err := s.Remove(id); err != nil {
		return err
	}
	return os.RemoveAll(e.scratch(id))
}

// recover brings what dead engines left, in shared memory and in scratch folders, into their recordings,
// where those are in this store. Best effort: what fails is tried again by the next command.
func (e *Engine) recover(s store.Store) {
	observe.Leftovers(&e.Runtime, func(left observe.Leftover) {
		if runs, err := s.List(store.Filter{IDs: []string{left.ID}}); err != nil || len(runs) == 0 {
			return // of another data directory; not Load, which would look for a run of that name among all
		}
		run, recording, err := store.Load(s, left.ID)
		if err != nil || run.ID != left.ID || run.State == store.Running {
			return
		}
		writer, err := s.Reopen(left.ID)
		if err != nil {
			return
		}
		_ = observe.Recover(left, recording, e.scratch(left.ID), writer)
		_ = writer.Close()
		_ = e.keepLeftovers(s, left.ID)
	})
	e.keepAbandoned(s)
}

// abandoned is the age at which a scratch folder is taken for that of an engine that was killed, if its
// run does not run. Where locks do not work, as on some network file systems, a run looks as if it did not.
const abandoned = 24 * time.Hour

// keepAbandoned attaches what killed engines left in their scratch folders.
func (e *Engine) keepAbandoned(s store.Store) {
	entries, _ := os.ReadDir(e.scratchDir())
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || e.Runtime.Time().Sub(info.ModTime()) < abandoned {
			continue
		}
		switch run, err := store.Resolve(s, entry.Name()); {
		case errors.Is(err, store.ErrNotFound) || err == nil && run.ID != entry.Name():
			_ = os.RemoveAll(e.scratch(entry.Name()))
		case err == nil && run.State != store.Running:
			_ = e.keepLeftovers(s, run.ID)
		}
	}
}

// OutputFile is what a run's output is called among what is kept with it. It has every byte as the program wrote it,
// with standard output and error in the order in which they came. Of more than RunOptions.KeepLimit the beginning and
// the end are kept.
const OutputFile = "output.log"

// Begun says that a run has its id, before its program starts.
type Begun struct {
	RunID string `json:"run"`
	// why and where it is recorded outside the data directory
	Elsewhere string `json:"elsewhere,omitempty"`
	// gives the program's terminal another size, where its output is kept
	Resize func(columns, rows int)       `json:"-"`
	Output func() (io.ReadCloser, error) `json:"-"` // reads what is kept, see Engine.Output
}

// EventName implements event.Event.
func (Begun) EventName() string { return "begun" }

// lingering is how long is waited for what a program wrote last, or what it left behind still writes.
const lingering = time.Second

// begun is what is told of a run that has its id.
func (p *place) begun(ctx context.Context, result *RunResult) Begun {
	return Begun{RunID: result.ID, Elsewhere: result.Elsewhere, Resize: func(int, int) {},
		Output: func() (io.ReadCloser, error) {
			return p.engine.Output(context.WithoutCancel(ctx), result.ID)
		}}
}

// keepOutput has the program's output kept, where that is wanted; done is called after its end.
func (e *Engine) keepOutput(ctx context.Context, o *RunOptions, to *observe.Options, p *place,
	result *RunResult) (done func(), err error) {
	begun := p.begun(ctx, result)
	done = func() {}
	if o.KeepOutput || o.OutputApart {
		file, err := os.OpenFile(filepath.Join(p.engine.scratch(result.ID), OutputFile),
			os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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

// Output reads what the program of a run wrote, as far as it is there: also while it runs. fs.ErrNotExist says that
// it was not kept.
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
			return nil, fail.Input("hightide run --capture keeps it", "the output of run %s was not kept: %w", run.ID,
				fs.ErrNotExist)
		}
		return file, err
	})
}

// hear has a report quote what its program wrote last, where nothing else says why it failed and that is kept.
func (e *Engine) hear(ctx context.Context, id string, r *report.Report) {
	if !r.Unheard() {
		return
	}
	output, err := e.Output(ctx, id)
	if err != nil {
		return
	}
	defer output.Close()
	const enough = 8 << 10
	if file, ok := output.(io.Seeker); ok {
		_, _ = file.Seek(-enough, io.SeekEnd) // of a shorter one the beginning is read
	}
	text, _ := io.ReadAll(io.LimitReader(output, enough))
	if line := launch.LastLine(text, ""); line != "" {
		r.Hear(report.Shorten(mem.MaskText(line), 300))
	}
}

// copyData copies a file without its holes: an output of which the middle was left out.
func copyData(w io.Writer, file *os.File) error {
	for at := int64(0); ; {
		begin, err := system.NextData(file, at)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = system.NextHole(file, begin); err != nil {
			return err
		}
		if _, err := file.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(w, file, at-begin); err != nil {
			return err
		}
	}
}
