package matrix

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"hightide/internal/fail"
	"hightide/internal/gpus"
)

// Kept is what a matrix's folder says, read while it may be measured by another process.
type Kept struct {
	*Result
	Changed int64 // ns since 1970: of the journal's last line
	Running bool  // another process, or this one, measures it now
}

// ReadKept reads a matrix's folder and changes nothing in it.
func ReadKept(dir string, catalogue *gpus.Catalogue) (*Kept, error) {
	name := filepath.Base(dir)
	text, err := os.ReadFile(filepath.Join(dir, SpecFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Input("hightide bench begins one", "no matrix %s", name)
	}
	if err != nil {
		return nil, fail.Environment("may the data directory be read?", "read matrix %s: %w", name, err)
	}
	spec, err := ReadSpec(SpecFile, text, catalogue)
	if err != nil {
		return nil, err
	}
	spec.Name = name
	path := filepath.Join(dir, journalFile)
	lines, err := os.ReadFile(path)
	if err != nil {
		return nil, fail.Environment("may the data directory be read?", "read matrix %s: %w", name, err)
	}
	j := &Journal{Dir: dir}
	head, err := j.read(lines[:bytes.LastIndexByte(lines, '\n')+1])
	if err != nil {
		return nil, err
	}
	if head != nil {
		j.StartWall = head.StartWall
	}
	kept := &Kept{Result: j.Result(spec, spec.Cells), Running: held(dir)}
	if info, err := os.Stat(path); err == nil {
		kept.Changed = info.ModTime().UnixNano()
	}
	return kept, nil
}

// LastChange is when a trial of a matrix was last kept, ns since 1970, and whether it is being measured, without reading what was.
func LastChange(dir string) (changed int64, running bool, err error) {
	info, err := os.Stat(filepath.Join(dir, journalFile))
	if err != nil {
		return 0, false, fail.Input("hightide bench begins one", "no matrix %s", filepath.Base(dir))
	}
	return info.ModTime().UnixNano(), held(dir), nil
}

// held says whether somebody measures the matrix: its lock cannot be shared then.
func held(dir string) bool {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer lock.Close()
	return errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// PageJSON is what the matrix page is made of (web/src/matrix). Reports are addresses by run.
func PageJSON(r *Result, c *Comparison, reports map[string]string) (json.RawMessage, error) {
	packed := pack(r, c, details[0])
	packed.Reports = reports
	return json.Marshal(packed)
}
