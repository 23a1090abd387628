package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hightide/internal/mem"
)

// use begins to send what earlier commands could not.
func (t *Team) use() {
	t.once.Do(func() {
		if ids, err := t.outbox.folders(); err == nil && len(ids) > 0 {
			t.left.Go(func() { _, _ = t.SendLeft(t.ctx) })
		}
	})
}

// lastWait is how long the end of a command waits for what is being sent of earlier ones.
const lastWait = 5 * time.Second

// Close implements Store.
func (t *Team) Close() error {
	timer := time.AfterFunc(lastWait, t.cancel)
	t.left.Wait()
	timer.Stop()
	t.cancel()
	t.live.close()
	return errors.Join(t.outbox.Close(), t.db.close())
}

// Create implements Store. Ids are longer than those of one person: many machines make them in the same second.
func (t *Team) Create(info mem.RunInfo) (Writer, error) {
	if info.ID == "" {
		info.ID = NewID(time.Now()) + strings.ToLower(rand.Text()[:6])
	}
	own, err := t.ownName()
	if err != nil {
		return nil, err
	}
	t.use()
	w, err := t.outbox.Create(info)
	if err != nil {
		return nil, err
	}
	return t.write(w, func(s *session) error { return put(s, w.Run(), own) }), nil
}

// put enters the row of a run that is being recorded.
func put(s *session, run Run, own string) error {
	if err := putTeamRow(s, run); err != nil {
		return err
	}
	_, err := s.exec("UPDATE recorded SET heard = now(), writer = ? WHERE id = ?", own, run.ID)
	return err
}

// write has the team hear of a run as long as it is written.
func (t *Team) write(w Writer, say func(*session) error) *teamWriter {
	ctx, cancel := context.WithCancel(t.ctx)
	tw := &teamWriter{Writer: w, team: t}
	var group sync.WaitGroup
	group.Go(func() {
		ticks := time.NewTicker(indexEvery)
		defer ticks.Stop()
		for ctx.Err() == nil {
			_ = t.db.change(ctx, say) // best effort: the end of the run sends its row with it
			select {
			case <-ctx.Done():
			case <-ticks.C:
			}
		}
	})
	tw.quiet = func() { cancel(); group.Wait() }
	return tw
}

// teamWriter is a recording in the outbox, which is sent at its end.
type teamWriter struct {
	Writer
	team  *Team
	quiet func()
}

// Run implements Writer: its folder is the outbox's, and is gone with the end.
func (w *teamWriter) Run() Run {
	row := w.Writer.Run()
	row.Dir, row.File = "", ""
	return row
}

// Close implements Writer. An error that is not the recording's own says where the run waits.
func (w *teamWriter) Close() error {
	w.quiet()
	if err := w.Writer.Close(); err != nil {
		return err
	}
	return w.team.send(w.team.ctx, w.ID())
}

// Reopen implements Store.
func (t *Team) Reopen(id string) (Writer, error) {
	own, err := t.ownName()
	if err != nil {
		return nil, err
	}
	w, err := t.outbox.Reopen(id)
	if errors.Is(err, ErrNotFound) {
		if w, err = t.fetch(id, own); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return t.write(w, func(s *session) error {
		_, err := s.exec("UPDATE recorded SET heard = now() WHERE id = ? AND writer = ?", id, own)
		return err
	}), nil
}

// fetch takes a run for writing, and brings its recording into the outbox.
func (t *Team) fetch(id, own string) (Writer, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	taken := int64(0)
	err := t.db.change(ctx, func(s *session) (err error) {
		taken, err = s.exec("UPDATE recorded SET heard = now(), writer = ? WHERE id = ? AND NOT "+isHeard, own, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if taken == 0 {
		if runs, err := t.List(Filter{IDs: []string{id}}); err != nil || len(runs) == 0 {
			return nil, cmp.Or(err, error(notFound(id)))
		}
		return nil, stillRunning(id)
	}
	file, err := t.openWhole(id, Recording)
	if err == nil {
		err = t.outbox.adopt(id, file)
		file.Close()
	}
	var w Writer
	if err == nil {
		w, err = t.outbox.Reopen(id)
	}
	if err != nil {
		_ = t.db.change(ctx, func(s *session) error {
			_, err := s.exec("UPDATE recorded SET heard = NULL WHERE id = ? AND writer = ?", id, own)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			err = unreadable("run "+id, err)
		}
		return nil, err
	}
	return w, nil
}

// List implements Store. Of a run in the outbox, the outbox knows more.
func (t *Team) List(filter Filter) ([]Run, error) {
	t.use()
	own, err := t.outbox.List(Filter{IDs: filter.IDs, Held: filter.Held})
	if err != nil {
		return nil, err
	}
	mine := own
	if len(own) > 0 && filter.searchesPlaces() {
		if mine, err = t.outbox.List(Filter{IDs: filter.IDs, Finding: filter.Finding, Line: filter.Line,
			Held: filter.Held}); err != nil {
			return nil, err
		}
	}
	asked := filter
	asked.Brief = filter.Brief && len(own) == 0 // else they are looked through here, by their tags
	switch {
	case len(own) > 0 && (filter.Before != "" || filter.Limit == 0):
		asked.Before, asked.Limit = "", 0
	case len(own) > 0:
		asked.Limit += len(own) // rows of the same runs, which the outbox's replace
	}
	runs, err := t.listed(asked)
	if err != nil || len(own) == 0 {
		return runs, err
	}
	runs = slices.DeleteFunc(runs, func(r Run) bool {
		return slices.ContainsFunc(own, func(o Run) bool { return o.ID == r.ID })
	})
	runs = append(runs, mine...)
	slices.SortFunc(runs, newestFirst)
	return filter.seen().apply(runs), nil
}

// Remove implements Store.
func (t *Team) Remove(id string) error {
	local := t.outbox.Remove(id)
	if local != nil && !errors.Is(local, ErrNotFound) {
		return local
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	var hashes []string
	err := t.db.change(ctx, func(s *session) (err error) {
		var heard bool
		switch err := s.row("SELECT "+isHeard+" FROM recorded WHERE id = ? FOR UPDATE", id).Scan(&heard); {
		case errors.Is(err, sql.ErrNoRows) && local == nil:
			return nil
		case errors.Is(err, sql.ErrNoRows):
			return notFound(id)
		case err != nil:
			return err
		case heard && local != nil:
			return stillRunning(id)
		}
		if hashes, err = dropFiles(s, "run = ?", id); err != nil {
			return err
		}
		forget, err := statusesOf(s, id)
		if err != nil {
			return err
		}
		if _, err = s.exec("DELETE FROM recorded WHERE id = ?", id); err != nil {
			return err
		}
		return forget()
	})
	if err != nil {
		return err
	}
	t.sweep(ctx, hashes)
	return t.dropLive(id)
}

// Open implements Store.
func (t *Team) Open(id, name string) (io.ReadCloser, error) {
	if !validID(id) || name != Recording && !validName(name) {
		return nil, fs.ErrNotExist
	}
	if file, err := t.outbox.Open(id, name); err == nil {
		return file, nil
	}
	file, err := t.openWhole(id, name)
	if errors.Is(err, fs.ErrNotExist) && name == Recording {
		if sent := t.openCopy(id); sent != nil {
			return sent, nil
		}
	}
	return file, err
}

// openWhole opens a file that was sent whole.
func (t *Team) openWhole(id, name string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(t.ctx)
	f, err := t.find(ctx, id, name)
	if errors.Is(err, fs.ErrNotExist) && name == Recording {
		err = fmt.Errorf("the machine that records it has not sent it yet: %w", fs.ErrNotExist)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, f.size), closer(cancel)}, nil
}

// closer is an io.Closer that only ends something.
type closer func()

func (c closer) Close() error { c(); return nil }

// Attach implements Store.
func (t *Team) Attach(id, name string, write func(io.Writer) error) (string, error) {
	if !validID(id) || !validName(name) {
		return "", notFound(id + "/" + name)
	}
	if _, err := os.Stat(t.outbox.recording(id)); err == nil {
		if _, err := t.outbox.Attach(id, name, write); !errors.Is(err, ErrNotFound) {
			return "", err // the folder is gone when the run is sent
		}
	}
	own, err := t.ownName()
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(t.outbox.dir, ".attach-*")
	if err != nil {
		return "", t.outbox.badPlace("write to", err)
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return "", t.attach(id, name, own, file.Name())
}

// attach sends one file of a run that the team has.
func (t *Team) attach(id, name, own, path string) error {
	if runs, err := t.List(Filter{IDs: []string{id}}); err != nil || len(runs) == 0 {
		return cmp.Or(err, error(notFound(id+"/"+name)))
	}
	ctx, cancel := context.WithTimeout(t.ctx, 10*patience)
	defer cancel()
	sent, err := t.upload(ctx, id, name, own, path)
	if err != nil {
		return err
	}
	var hashes []string
	err = t.db.change(ctx, func(s *session) error {
		var there string
		if err := s.row("SELECT id FROM recorded WHERE id = ? FOR UPDATE", id).Scan(&there); err != nil {
			return err
		}
		return show(s, id, name, sent, &hashes)
	})
	if err == nil {
		t.sweep(ctx, hashes)
	}
	return err
}

// Attached implements Store.
func (t *Team) Attached(id string) ([]Attachment, error) {
	attached := []Attachment{}
	if validID(id) {
		if local, err := t.outbox.Attached(id); err == nil {
			attached = local
		}
	}
	if runs, err := t.List(Filter{IDs: []string{id}}); err != nil || len(runs) == 0 {
		return nil, cmp.Or(err, error(notFound(id)))
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	err := t.db.look(ctx, func(s *session) error {
		return s.query("SELECT name, size_bytes FROM files WHERE run = ? AND name <> ? AND whole ORDER BY name",
			[]any{id, Recording}, func(rows *sql.Rows) error {
				var a Attachment
				err := rows.Scan(&a.Name, &a.Size)
				if !slices.ContainsFunc(attached, func(o Attachment) bool { return o.Name == a.Name }) {
					attached = append(attached, a)
				}
				return err
			})
	})
	slices.SortFunc(attached, func(a, b Attachment) int { return cmp.Compare(a.Name, b.Name) })
	return attached, err
}

// Reindex implements Store: rows are made anew from the recordings, and what belongs to no run is deleted.
func (t *Team) Reindex(progress func(done, total int)) error {
	runs, err := t.listed(Filter{})
	if err != nil {
		return err
	}
	for i, run := range runs {
		if run.State != Running {
			if err := t.reread(run); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(i+1, len(runs))
		}
	}
	return t.Sweep(t.ctx)
}

// reread makes one row anew. A run without a recording, as of a machine that never sent it, keeps its row.
func (t *Team) reread(run Run) error {
	file, err := t.openWhole(run.ID, Recording)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	roll, _, err := sumUp(file, true)
	row := run
	row.Damaged, row.Places = true, mem.Optional{} // what it is found by goes with the row
	if err == nil {
		row = roll.row()
	}
	row.ID, row.Size = run.ID, run.Size
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return t.db.change(ctx, func(s *session) error { return putTeamRow(s, row) })
}

// Sweep deletes what no run has: objects, and what was begun to be sent long ago. Whoever was cut off while a run was
// sent or deleted has left it.
func (t *Team) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	t.outbox.sweepTemporary()
	var hashes []string
	err := t.db.change(ctx, func(s *session) error {
		_, err := s.exec("DELETE FROM files WHERE NOT whole AND begun < now() - interval '" + unsentFor + "'")
		if err != nil {
			return err
		}
		if err := dropOldStatuses(s); err != nil {
			return err
		}
		return s.query("SELECT hash FROM objects WHERE NOT EXISTS (SELECT 1 FROM parts WHERE parts.hash = objects.hash)",
			nil, func(rows *sql.Rows) error {
				var hash string
				err := rows.Scan(&hash)
				hashes = append(hashes, hash)
				return err
			})
	})
	t.sweep(ctx, hashes)
	return cmp.Or(err, t.dropLost())
}

// temporaryFor is how long a file of one request may be in use.
const temporaryFor = 24 * time.Hour

// sweepTemporary deletes what requests of a server that was killed have left in the outbox.
func (s *Files) sweepTemporary() {
	for _, pattern := range []string{".taken-*", ".attach-*", "runs/.fetch-*"} {
		left, _ := filepath.Glob(filepath.Join(s.dir, pattern))
		for _, path := range left {
			if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > temporaryFor {
				_ = os.RemoveAll(path)
			}
		}
	}
}
