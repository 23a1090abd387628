package observe

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// snapshots copies allocator snapshots, which the agent leaves as files in the run's folder, into
// the recording, piece by piece so that no visit takes long.
type snapshots struct{ waiting []*snapshotFile }

type snapshotFile struct {
	frame mem.Snapshot
	path  string
	file  *os.File
}

const (
	snapshotPiece    = 1 << 20
	snapshotPerFlush = 32 // pieces; all of them at the end
)

func (s *snapshots) add(process uint32, at int64, m *message) {
	s.waiting = append(s.waiting, &snapshotFile{path: m.Path, frame: mem.Snapshot{
		Process: process, Time: at, Name: filepath.Base(m.Path), Format: m.Format,
	}})
}

// copy moves the next pieces, all that is left with last. A file that cannot be read is an event.
func (s *snapshots) copy(r *Recorder, last bool) {
	for pieces := 0; len(s.waiting) > 0 && (last || pieces < snapshotPerFlush); pieces++ {
		file := s.waiting[0]
		done, err := file.next(r)
		if err != nil {
			r.log(file.frame.Process, "cannot read allocator snapshot: "+err.Error())
		}
		if done || err != nil {
			s.waiting = s.waiting[1:]
		}
	}
}

// next writes one piece. The file is deleted once it is whole in the recording, unless it
// is to be kept.
func (f *snapshotFile) next(r *Recorder) (done bool, err error) {
	if f.file == nil {
		if f.file, err = openSnapshot(r.opts.OutDir, f.path); err != nil {
			return true, err
		}
	}
	piece := make([]byte, snapshotPiece)
	n, err := io.ReadFull(f.file, piece)
	done = err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !done {
		f.file.Close()
		return true, err
	}
	frame := f.frame
	frame.Piece, frame.Last = piece[:n], done
	r.emit(frame)
	if done {
		f.file.Close()
		if r.fail == nil && !r.opts.KeepSnapshots {
			_ = os.Remove(f.path)
		}
	}
	return done, nil
}

// openSnapshot opens a path that comes from another process. Only a file in the run's own folder is meant, no
// link, and no pipe, which would hold the engine until somebody writes.
func openSnapshot(folder, path string) (*os.File, error) {
	if inside, err := filepath.Rel(folder, path); err != nil || !filepath.IsLocal(inside) {
		return nil, os.ErrPermission
	}
	file, err := os.OpenFile(path, os.O_RDONLY|system.NoFollow|system.NonBlock, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	return file, nil
}
