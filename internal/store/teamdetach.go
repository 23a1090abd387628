package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Detach implements Store. With the row of the file the objects go that no other file has.
func (t *Team) Detach(id, name string) error {
	if !validID(id) || !validName(name) {
		return fs.ErrNotExist
	}
	local := t.outbox.Detach(id, name)
	if local != nil && !errors.Is(local, fs.ErrNotExist) {
		return local
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	var hashes []string
	err := t.db.change(ctx, func(s *session) error {
		n, err := s.exec("SELECT 1 FROM files WHERE run = ? AND name = ? AND whole FOR UPDATE", id, name)
		switch {
		case err != nil:
			return err
		case n == 0 && local != nil:
			return fmt.Errorf("%s/%s: %w", id, name, fs.ErrNotExist)
		case n == 0:
			return nil
		}
		if hashes, err = dropFiles(s, "run = ? AND name = ?", id, name); err != nil {
			return err
		}
		_, err = s.exec("UPDATE recorded SET size_bytes = (SELECT coalesce(sum(size_bytes), 0) FROM files "+
			"WHERE run = id AND whole) WHERE id = ?", id)
		return err
	})
	if err == nil {
		t.sweep(ctx, hashes)
	}
	return err
}
