package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Push sends a run of another store on this machine, with its files; there says that the team had it already. The
// other store keeps it.
func (t *Team) Push(ctx context.Context, from Store, run Run) (there bool, err error) {
	if run.State == Running {
		return false, stillRunning(run.ID)
	}
	known, err := t.List(Filter{IDs: []string{run.ID}})
	if err != nil {
		return false, err
	}
	if len(known) == 1 && (known[0].Start != run.Start || known[0].Host != run.Host) {
		return false, &Error{Kind: ErrAmbiguous,
			Text: fmt.Sprintf("the team has another run %s, of %s", run.ID, known[0].Host),
			Hint: "record it again: runs that are recorded with --store have longer ids"}
	}
	if _, err := os.Stat(t.outbox.recording(run.ID)); err == nil { // an earlier try
		return false, t.send(ctx, run.ID)
	}
	if len(known) == 1 {
		if _, err := t.find(ctx, run.ID, Recording); err == nil {
			return true, nil
		}
	}
	if _, err := t.ownName(); err != nil { // which makes the outbox
		return false, err
	}
	if err := t.copyIn(from, run.ID); err != nil {
		_ = os.RemoveAll(t.outbox.runDir(run.ID))
		return false, err
	}
	return false, t.send(ctx, run.ID)
}

// copyIn copies a run into the outbox.
func (t *Team) copyIn(from Store, id string) error {
	file, err := from.Open(id, Recording)
	if err != nil {
		return unreadable("run "+id, err)
	}
	err = errors.Join(t.outbox.adopt(id, file), file.Close())
	if err != nil {
		return err
	}
	attached, err := from.Attached(id)
	if err != nil {
		return err
	}
	for _, a := range attached {
		if _, err := t.outbox.Attach(id, a.Name, func(w io.Writer) error {
			file, err := from.Open(id, a.Name)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(w, file)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
