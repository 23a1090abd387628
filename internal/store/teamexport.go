package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

// Export writes what there is of a person as a .tar.gz, with the files of the runs. Half an export says nothing: a part
// that is not what was sent is an error.
func (t *Team) Export(ctx context.Context, w io.Writer, p *Person) error {
	zipped := gzip.NewWriter(w)
	out := tar.NewWriter(zipped)
	add := func(name string, size int64, from io.Reader) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: time.Now()}); err != nil {
			return err
		}
		_, err := io.Copy(out, from)
		return err
	}
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	if err := add("person.json", int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	for _, run := range p.Runs {
		if err := t.exportFiles(ctx, run.ID, add); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zipped.Close())
}

// exportFiles gives each file of a run.
func (t *Team) exportFiles(ctx context.Context, id string, add func(string, int64, io.Reader) error) error {
	files, err := t.FilesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, f := range files {
		file, err := t.Open(id, f.Name)
		if err != nil {
			return err
		}
		err = add(path.Join("runs", id, f.Name), f.Size, file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s of run %s: %w", f.Name, id, err)
		}
	}
	return nil
}

// FilesOf are the files of a run that were sent whole, its recording too.
func (t *Team) FilesOf(ctx context.Context, id string) (all []Attachment, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT name, size_bytes FROM files WHERE run = ? AND whole ORDER BY name", []any{id},
			func(rows *sql.Rows) error {
				var a Attachment
				err := rows.Scan(&a.Name, &a.Size)
				all = append(all, a)
				return err
			})
	})
	return all, err
}
