package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hightide/internal/wire"
)

// How a server of a team shows a run of another machine while it is recorded there.
//
//	a client ──▶ Stream: bytes, and their place ──▶ live/<run>/run.hightide, on the server's machine ──▶ Follow
//	                                           └──▶ the row of the run, every two seconds
//
// What is seen of a run so is a copy for its viewers. It may end anywhere, and goes once the run was sent whole. Who
// sends begins where this machine says that it ends, so a server that was killed and a network that was cut lose
// nothing.

// Streamed says where a stream stands.
type Streamed struct {
	Run     string // how the team calls it
	At      int64  // so many bytes of it are there
	There   bool   // the whole run is, and nothing need be sent
	Watched bool   // somebody looks at it
}

// Stream takes bytes of a recording that is being made, at a place of it. They count where they begin at the end of
// what is there: the answer says where that is. A stream that begins takes the place of one that has fallen silent.
func (t *Team) Stream(ctx context.Context, p Pushing, stream string, at int64, data []byte,
	limit int64) (now Streamed, err error) {
	if err := p.check(Recording); err != nil {
		return now, err
	}
	now = Streamed{Run: p.Run(), Watched: t.live.watched(p.Run())}
	l, release := t.live.use(now.Run)
	defer release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := t.openLive(ctx, l, now.Run, stream); err != nil {
		now.There = errors.Is(err, errWhole)
		if now.There {
			err = t.dropLive(now.Run)
		}
		return now, err
	}
	if now.At = l.size; at != l.size {
		return now, nil
	}
	if l.size+int64(len(data)) > limit {
		return now, &Error{Kind: ErrPart, Text: "the recording is longer than this server takes",
			Hint: "it is sent at its end, in parts"}
	}
	n, err := l.file.WriteAt(data, l.size)
	l.size += int64(n)
	if now.At = l.size; err != nil {
		return now, t.outbox.badPlace("write to", err)
	}
	row, known, err := l.take(p)
	if err != nil {
		return now, errors.Join(err, t.dropLive(now.Run))
	}
	if known && (row.State == Finished || time.Since(l.told) > indexEvery) {
		if now.There, err = t.tellLive(ctx, p, row); err == nil {
			l.told = time.Now()
		}
	}
	return now, err
}

// errWhole says that a run was sent whole.
var errWhole = errors.New("the run is there")

// openLive opens the copy of a run for a stream.
func (t *Team) openLive(ctx context.Context, l *sentRun, run, stream string) (err error) {
	if l.file == nil {
		if _, err := t.find(ctx, run, Recording); err == nil {
			return errWhole
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := t.readLive(l, run); err != nil {
			return t.outbox.badPlace("write to", err)
		}
	}
	if l.stream == stream {
		return nil
	}
	if l.stream != "" && time.Since(l.told) < heardFor {
		return &Error{Kind: ErrRunning, Text: "another machine sends a run of this name now",
			Hint: "it is sent at its end"}
	}
	if err := l.file.Truncate(0); err != nil {
		return t.outbox.badPlace("write to", err)
	}
	l.size, l.stream, l.roll, l.tail = 0, stream, newRollup(false), wire.NewTail(l.file, 0)
	if err := os.WriteFile(filepath.Join(t.liveDir(run), "stream"), []byte(stream), 0o600); err != nil {
		return t.outbox.badPlace("write to", err)
	}
	return nil
}

// readLive reads what there is of a run, as after a restart.
func (t *Team) readLive(l *sentRun, run string) error {
	if _, err := t.ownName(); err != nil { // which makes the outbox
		return err
	}
	if err := os.MkdirAll(t.liveDir(run), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(t.liveDir(run), Recording), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	stream, err := os.ReadFile(filepath.Join(t.liveDir(run), "stream"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		file.Close()
		return err
	}
	l.file, l.size, l.stream = file, info.Size(), string(stream)
	l.tail, l.roll = wire.NewTail(file, 0), newRollup(false)
	return nil
}

// take reads what has come, and gives the row of the run; known says that there is one yet.
func (l *sentRun) take(p Pushing) (row Run, known bool, err error) {
	for {
		batch, err := l.tail.Next(l.size)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(batch.Damage) > 0 {
			return row, false, &Error{Kind: ErrPart, Text: "what was sent is no recording", Err: err, Hint: "send it at its end"}
		}
		for _, f := range batch.Frames {
			l.roll.add(f)
		}
	}
	if l.roll.run.Info.ID == "" {
		return row, false, nil
	}
	row = l.roll.row()
	if row.Tags[ProjectTag] != p.Project {
		return row, false, wrongProject(row, p)
	}
	if row.ID, row.Size = p.Run(), l.size; row.State != Finished {
		row.becomes(Running)
	}
	return row, true, nil
}

// tellLive enters the row of a run that is being sent; there says that it was sent whole meanwhile.
func (t *Team) tellLive(ctx context.Context, p Pushing, row Run) (there bool, err error) {
	err = t.db.change(ctx, func(s *session) error {
		var other string
		err := s.row("SELECT writer FROM recorded WHERE id = ? FOR UPDATE", row.ID).Scan(&other)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && other != p.Writer {
			return taken(1, p)
		}
		err = s.row("SELECT TRUE FROM files WHERE run = ? AND name = ? AND whole", row.ID, Recording).Scan(&there)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := putTeamRow(s, row); err != nil {
			return err
		}
		_, err = s.exec("UPDATE recorded SET heard = CASE WHEN ? THEN NULL ELSE now() END, writer = ?, sender = ? "+
			"WHERE id = ?", row.State == Finished, p.Writer, p.Sender(), row.ID)
		return err
	})
	return there, err
}
