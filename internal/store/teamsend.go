package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// send moves a run from the outbox to the team. Where it fails the run stays, and the error says so.
func (t *Team) send(ctx context.Context, id string) error {
	own, err := t.ownName()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	file, err := t.outbox.take(ctx, id)
	if file == nil {
		return err // nil: another command has sent it
	}
	defer file.Close()
	for sent := -1; sent != len(t.outbox.kept(id)); { // a report may have come meanwhile
		files := t.outbox.kept(id)
		if err := t.sendFiles(ctx, id, own, files); err != nil {
			return &Error{Kind: ErrUnsent, Text: "run " + id + " waits in " + t.outbox.runDir(id), Err: err,
				Hint: "it is sent with the next command of hightide"}
		}
		sent = len(files)
	}
	if err := os.RemoveAll(t.outbox.runDir(id)); err != nil {
		return t.outbox.badPlace("write to", err)
	}
	_ = t.outbox.index.remove(id)
	return nil
}

// SendLeft sends every run that waits on this machine, and returns the ids of those that went.
func (t *Team) SendLeft(ctx context.Context) (sent []string, err error) {
	ids, err := t.outbox.folders()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, none := os.Stat(t.outbox.recording(id)); none != nil || !validID(id) || isLocked(t.outbox.recording(id)) {
			continue
		}
		if err := t.send(ctx, id); err != nil {
			return sent, err
		}
		sent = append(sent, id)
	}
	return sent, nil
}

// take locks a run of the outbox for sending; a nil file and no error: it is not there any more.
func (s *Files) take(ctx context.Context, id string) (*os.File, error) {
	for {
		file, err := openPlain(s.recording(id), os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, s.badPlace("read", err)
		}
		if err = lock(file); err == nil {
			if _, err := os.Stat(s.recording(id)); err != nil { // sent while we waited
				file.Close()
				return nil, nil
			}
			return file, nil
		}
		file.Close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// kept are the names of a run's files in the outbox.
func (s *Files) kept(id string) []string {
	names := []string{Recording}
	attached, _ := s.Attached(id)
	for _, a := range attached {
		names = append(names, a.Name)
	}
	return names
}

// adopt puts a recording into a data directory, whole or not at all.
func (s *Files) adopt(id string, from io.Reader) error {
	if !validID(id) {
		return notFound(id)
	}
	dir, err := os.MkdirTemp(s.runsDir(), ".fetch-*")
	if err != nil {
		return s.badPlace("write to", err)
	}
	defer os.RemoveAll(dir)
	file, err := os.OpenFile(filepath.Join(dir, Recording), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return s.badPlace("write to", err)
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(dir, s.runDir(id)); err != nil {
		return s.badPlace("write to", err)
	}
	return nil
}

// sendFiles sends files of a run, and shows the run with them.
func (t *Team) sendFiles(ctx context.Context, id, own string, names []string) error {
	sent := map[string]int64{}
	for _, name := range names {
		file, err := t.upload(ctx, id, name, own, filepath.Join(t.outbox.runDir(id), name))
		if err != nil {
			return err
		}
		sent[name] = file
	}
	row := t.outbox.sumUpFile(id, t.outbox.recording(id))
	var hashes []string
	err := t.db.change(ctx, func(s *session) error {
		var other string
		err := s.row("SELECT writer FROM recorded WHERE id = ? FOR UPDATE", id).Scan(&other)
		if err == nil && other != "" && other != own {
			return fmt.Errorf("another machine has written run %s meanwhile", id)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := putTeamRow(s, row); err != nil {
			return err
		}
		for name, file := range sent {
			if err := show(s, id, name, file, &hashes); err != nil {
				return err
			}
		}
		_, err = s.exec("UPDATE recorded SET heard = NULL, writer = ? WHERE id = ?", own, id)
		return err
	})
	if err == nil {
		t.sweep(ctx, hashes)
	}
	return err
}

// show has a file that was sent take the place of an older one; the hashes of that are added to gone.
func show(s *session, run, name string, file int64, gone *[]string) error {
	old, err := dropFiles(s, "run = ? AND name = ? AND whole", run, name)
	if err != nil {
		return err
	}
	*gone = append(*gone, old...)
	if n, err := s.exec("UPDATE files SET whole = TRUE WHERE file = ?", file); err != nil || n != 1 {
		return cmp.Or(err, errors.New("what was sent was deleted meanwhile"))
	}
	_, err = s.exec("UPDATE recorded SET size_bytes = (SELECT sum(size_bytes) FROM files WHERE run = id AND whole) "+
		"WHERE id = ?", run)
	return err
}
