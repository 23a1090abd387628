package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// How a server of a team takes runs from machines that have no key to the database: by the same parts, which a client
// sends to the server.
//
//	Begin (a file: which parts are there) ──▶ Take (a part) … ──▶ Finish: checked, and the run is there with its files

// PartBytes is the size of a part that a client sends.
const PartBytes = chunkBytes

// Part is a piece of a file that the team has.
type Part struct {
	At   int64  `json:"at_bytes" doc:"Where in the file it begins, in bytes."`
	Hash string `json:"sha256" doc:"The SHA-256 of it, in hexadecimal."`
}

// Pushing is a run that somebody sends into a project.
type Pushing struct {
	Project string
	ID      string // as the sender's machine calls it
	Writer  string // who sends it: another's half is not gone on with
}

// Run is how the team calls the run. Its project is part of it, so that nobody can ask by an id what another project
// has.
func (p Pushing) Run() string {
	sum := sha256.Sum256([]byte(p.Project + "\n" + p.ID))
	return p.ID + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// SentBy is what the store calls the sender of an account's runs.
func SentBy(account string) string { return sentBy + account }

const sentBy = "push of "

// Sender is the account that sends.
func (p Pushing) Sender() string { return strings.TrimPrefix(p.Writer, sentBy) }

// ErrPart says that a part is not what was announced.
var ErrPart = errors.New("not what was announced")

// Begin begins a file, or goes on with it: the parts that were sent are returned. there says that the team has the run
// whole.
func (t *Team) Begin(ctx context.Context, p Pushing, name string, size int64) (parts []Part, there bool, err error) {
	if err := p.check(name); err != nil {
		return nil, false, err
	}
	if _, err := t.find(ctx, p.Run(), Recording); err == nil {
		return nil, true, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	err = t.db.change(ctx, func(s *session) error {
		file, err := beginFile(s, p.Run(), name, p.Writer, size)
		if err != nil {
			return err
		}
		return partsOf(s, file, func(known part) { parts = append(parts, Part{known.at, known.hash}) })
	})
	return parts, false, err
}

func (p Pushing) check(name string) error {
	if !validID(p.ID) || !validID(p.Run()) {
		return notFound(p.ID)
	}
	if name != Recording && !validName(name) {
		return notFound(p.ID + "/" + name)
	}
	return nil
}

// Take keeps a part of a file that was begun, where it is what its hash says.
func (t *Team) Take(ctx context.Context, p Pushing, name string, at int64, hash string, data []byte) error {
	if at%PartBytes != 0 || len(data) == 0 || len(data) > PartBytes || hashOf(data) != hash {
		return &Error{Kind: ErrPart, Text: "the part is not what was announced", Hint: "send it again"}
	}
	var file, size int64
	err := t.db.look(ctx, func(s *session) error {
		return s.row("SELECT file, size_bytes FROM files WHERE run = ? AND name = ? AND writer = ? AND NOT whole", p.Run(),
			name, p.Writer).Scan(&file, &size)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return &Error{Kind: ErrNotFound, Text: "the file was not begun", Err: err, Hint: "begin it first"}
	}
	if err != nil {
		return err
	}
	if int64(len(data)) != min(PartBytes, size-at) {
		return &Error{Kind: ErrPart, Text: "the part is not what was announced", Hint: "send it again"}
	}
	return t.sendPart(ctx, file, part{at, int64(len(data)), hash}, data)
}

// Finish shows a run with the files that were sent, all of them whole, or nothing. check reads the recording in a
// process of its own first.
func (t *Team) Finish(ctx context.Context, p Pushing, names []string, check func(path string) error) (Run, error) {
	row := Run{}
	if !slices.Contains(names, Recording) {
		return row, &Error{Kind: ErrPart, Text: "no recording was sent", Hint: "send " + Recording}
	}
	if there, err := t.isShown(ctx, p); there || err != nil {
		if err == nil {
			row, err = Find(t, p.Run())
		}
		return row, err
	}
	sent := map[string]int64{}
	for _, name := range names {
		f, err := t.sentFile(ctx, p, name)
		if err != nil {
			return row, err
		}
		if sent[name] = f.file; name == Recording {
			if row, err = t.lookThrough(f, p, check); err != nil {
				return row, err
			}
		}
	}
	var hashes []string
	err := t.db.change(ctx, func(s *session) error {
		n, err := s.exec("SELECT 1 FROM recorded WHERE id = ? AND writer <> ? FOR UPDATE", row.ID, p.Writer)
		if err != nil || n > 0 {
			return errors.Join(err, taken(n, p))
		}
		if err := putTeamRow(s, row); err != nil {
			return err
		}
		for name, file := range sent {
			if err := show(s, row.ID, name, file, &hashes); err != nil {
				return err
			}
		}
		_, err = s.exec("UPDATE recorded SET heard = NULL, writer = ?, sender = ? WHERE id = ?", p.Writer, p.Sender(), row.ID)
		return err
	})
	if err == nil {
		_ = t.dropLive(row.ID) // best effort: what is whole is shown
		t.sweep(ctx, hashes)
		row, err = Find(t, row.ID)
	}
	return row, err
}

// isShown says whether a sender's run is there already: its client tries again where the answer was lost on the way.
func (t *Team) isShown(ctx context.Context, p Pushing) (there bool, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.row("SELECT EXISTS (SELECT 1 FROM files WHERE run = ? AND name = ? AND writer = ? AND whole)", p.Run(),
			Recording, p.Writer).Scan(&there)
	})
	return there, err
}

func taken(n int64, p Pushing) error {
	if n == 0 {
		return nil
	}
	return &Error{Kind: ErrAmbiguous, Text: fmt.Sprintf("somebody else has sent run %s into %s", p.ID, p.Project),
		Hint: "it is there already"}
}

// sentFile is a file all of whose parts were sent.
func (t *Team) sentFile(ctx context.Context, p Pushing, name string) (*stored, error) {
	f := &stored{team: t, ctx: ctx}
	end := int64(0)
	err := t.db.look(ctx, func(s *session) error {
		if err := s.row("SELECT file, size_bytes FROM files WHERE run = ? AND name = ? AND writer = ? AND NOT whole", p.Run(),
			name, p.Writer).Scan(&f.file, &f.size); err != nil {
			return err
		}
		return partsOf(s, f.file, func(p part) {
			if f.all = append(f.all, p); p.at == end {
				end += p.size
			}
		})
	})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if err != nil || end != f.size {
		return nil, &Error{Kind: ErrPart, Text: fmt.Sprintf("%s was not sent whole: %d of %d bytes", name, end, f.size),
			Err: err, Hint: "send the rest"}
	}
	return f, nil
}

// lookThrough is the row of a recording that was sent. It is read as a file, in a process of its own before this one
// does.
func (t *Team) lookThrough(f *stored, p Pushing, check func(path string) error) (row Run, err error) {
	if _, err := t.ownName(); err != nil { // which makes the outbox
		return row, err
	}
	dir, err := os.MkdirTemp(t.outbox.dir, ".taken-*")
	if err != nil {
		return row, t.outbox.badPlace("write to", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, Recording)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return row, t.outbox.badPlace("write to", err)
	}
	defer file.Close()
	if _, err := io.Copy(file, io.NewSectionReader(f, 0, f.size)); err != nil {
		if full := new(fs.PathError); errors.As(err, &full) {
			err = t.outbox.badPlace("write to", err)
		}
		return row, err
	}
	if err := check(path); err != nil {
		return row, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return row, err
	}
	roll, _, err := sumUp(file, true)
	if err != nil {
		return row, unreadable("the recording", err)
	}
	row = roll.row()
	if row.ID = p.Run(); row.Tags[ProjectTag] != p.Project {
		return row, wrongProject(row, p)
	}
	return row, nil
}

func wrongProject(row Run, p Pushing) error {
	return &Error{Kind: ErrPart, Text: fmt.Sprintf("the recording says project=%s and is sent into %s",
		row.Tags[ProjectTag], p.Project), Hint: "hightide push --project " + p.Project}
}
