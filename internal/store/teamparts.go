package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// How files of a team's runs are sent and read.
//
//	files ─▶ parts ─▶ objects       a file is a list of parts, a part is an object by its SHA-256
//
// A file is sent part by part into a row that nobody sees. Whoever is cut off goes on behind the last part. One
// transaction then shows the run with all of its files. An object is deleted with the last part that names it.

// part is a piece of a file.
type part struct {
	at, size int64
	hash     string
}

// upload sends a file into a row that nobody sees, and returns the row. Parts that an earlier try has sent stay.
func (t *Team) upload(ctx context.Context, run, name, own, path string) (file int64, err error) {
	src, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return 0, err
	}
	known := map[int64]part{}
	err = t.db.change(ctx, func(s *session) error {
		if file, err = beginFile(s, run, name, own, info.Size()); err != nil {
			return err
		}
		return partsOf(s, file, func(p part) { known[p.at] = p })
	})
	data := make([]byte, min(t.chunk, info.Size()))
	for at := int64(0); err == nil && at < info.Size(); at += t.chunk {
		data = data[:min(t.chunk, info.Size()-at)]
		if _, err = io.ReadFull(src, data); err == nil {
			p := part{at, int64(len(data)), hashOf(data)}
			if known[at] != p {
				err = t.sendPart(ctx, file, p, data)
			}
		}
	}
	return file, err
}

// beginFile makes the row of a file that is to be sent, or finds it.
func beginFile(s *session, run, name, own string, size int64) (file int64, err error) {
	err = s.row("INSERT INTO files (run, name, size_bytes, writer) VALUES (?, ?, ?, ?) "+
		"ON CONFLICT (run, name, writer) WHERE NOT whole DO UPDATE SET size_bytes = excluded.size_bytes "+
		"RETURNING file", run, name, size, own).Scan(&file)
	if err == nil {
		_, err = s.exec("DELETE FROM parts WHERE file = ? AND at >= ?", file, size)
	}
	return file, err
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sendPart keeps a part. An object that is there already is not sent again. The row of the object is there before it,
// so that whoever is cut off leaves no object that no row knows, and is held meanwhile, so that nobody deletes it.
func (t *Team) sendPart(ctx context.Context, file int64, p part, data []byte) error {
	known := func(s *session) error {
		_, err := s.exec("INSERT INTO objects (hash, size_bytes) VALUES (?, ?) "+
			"ON CONFLICT (hash) DO UPDATE SET size_bytes = excluded.size_bytes", p.hash, p.size)
		return err
	}
	if err := t.db.change(ctx, known); err != nil {
		return err
	}
	return t.db.change(ctx, func(s *session) error {
		if err := known(s); err != nil {
			return err
		}
		there, err := t.objects.has(ctx, p.hash, p.size)
		if err == nil && !there {
			err = t.objects.put(ctx, p.hash, data)
		}
		if err != nil {
			return t.badObject(err)
		}
		_, err = s.exec("INSERT INTO parts (file, at, size_bytes, hash) VALUES (?, ?, ?, ?) "+
			"ON CONFLICT (file, at) DO UPDATE SET size_bytes = excluded.size_bytes, hash = excluded.hash",
			file, p.at, p.size, p.hash)
		return err
	})
}

func (t *Team) badObject(err error) error {
	return &Error{Kind: ErrPlace, Text: "cannot use the place of recordings " + t.place, Err: err,
		Hint: "is --objects right, is its server up, and may you write there?"}
}

// partsOf gives the parts of a file in their order.
func partsOf(s *session, file int64, take func(part)) error {
	return s.query("SELECT at, size_bytes, hash FROM parts WHERE file = ? ORDER BY at", []any{file},
		func(rows *sql.Rows) error {
			var p part
			err := rows.Scan(&p.at, &p.size, &p.hash)
			take(p)
			return err
		})
}

// sweep deletes those of some objects that no file has. Best effort: Sweep finds what is left.
func (t *Team) sweep(ctx context.Context, hashes []string) {
	for _, hash := range hashes {
		_ = t.db.change(ctx, func(s *session) error {
			n, err := s.exec("DELETE FROM objects WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM parts "+
				"WHERE parts.hash = objects.hash)", hash)
			if err != nil || n == 0 { // of one that somebody has begun to use, the database says no
				return err
			}
			return t.objects.remove(ctx, hash) // before others see that the row is gone
		})
	}
}

// dropFiles deletes rows of files, and returns the hashes of what they were made of.
func dropFiles(s *session, where string, args ...any) (hashes []string, err error) {
	err = s.query("SELECT DISTINCT hash FROM parts JOIN files USING (file) WHERE "+where, slices.Clone(args),
		func(rows *sql.Rows) error {
			var hash string
			err := rows.Scan(&hash)
			hashes = append(hashes, hash)
			return err
		})
	if err == nil {
		_, err = s.exec("DELETE FROM files WHERE "+where, args...)
	}
	return hashes, err
}

// stored is a file of a run, as its parts. It is for one goroutine at a time.
type stored struct {
	team *Team
	ctx  context.Context
	file int64
	size int64
	all  []part

	mu   sync.Mutex
	held part
	data []byte // of held
}

// find is a file that is whole; fs.ErrNotExist: there is none of that name.
func (t *Team) find(ctx context.Context, run, name string) (*stored, error) {
	f := &stored{team: t, ctx: ctx}
	err := t.db.look(ctx, func(s *session) error {
		if err := s.row("SELECT file, size_bytes FROM files WHERE run = ? AND name = ? AND whole", run,
			name).Scan(&f.file, &f.size); err != nil {
			return err
		}
		return partsOf(s, f.file, func(p part) { f.all = append(f.all, p) })
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &fs.PathError{Op: "open", Path: run + "/" + name, Err: fs.ErrNotExist}
	}
	return f, err
}

// ReadAt implements io.ReaderAt. What it gives was compared with its hash.
func (f *stored) ReadAt(p []byte, at int64) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n < len(p) {
		i, found := slices.BinarySearchFunc(f.all, at+int64(n), func(p part, at int64) int { return cmp.Compare(p.at, at) })
		if !found {
			i--
		}
		if i < 0 || at+int64(n) >= f.all[i].at+f.all[i].size {
			return n, io.EOF
		}
		if err := f.hold(f.all[i]); err != nil {
			return n, err
		}
		n += copy(p[n:], f.data[at+int64(n)-f.held.at:])
	}
	return n, nil
}

// hold reads a part, unless it is the one that was read last.
func (f *stored) hold(p part) error {
	if f.data != nil && f.held == p {
		return nil
	}
	data, err := f.team.objects.get(f.ctx, p.hash)
	if err != nil {
		return f.team.badObject(err)
	}
	if int64(len(data)) != p.size || hashOf(data) != p.hash {
		return f.team.badObject(fmt.Errorf("object %s is not what was sent", p.hash))
	}
	f.held, f.data = p, data
	return nil
}
