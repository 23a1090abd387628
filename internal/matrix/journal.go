package matrix

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/gpus"
	"hightide/internal/system"
)

// Journal is what is kept of a matrix while it is measured: one line a trial, on the disk before the next one begins. A
// matrix that was killed goes on from it.
type Journal struct {
	Dir       string
	Seed      uint64 // of the order of the trials
	StartWall int64  // ns since 1970: when the matrix began
	Trials    []Trial
	Machines  []Machine
	New       bool // nothing was there
	Damaged   int  // lines that could not be read; their trials are made again

	file, lock *os.File
}

// line of the journal: one of its fields is there.
type line struct {
	Matrix  *header  `json:"matrix,omitempty"`
	Machine *Machine `json:"machine,omitempty"`
	Trial   *Trial   `json:"trial,omitempty"`
}

// header is the first line.
type header struct {
	Version   int    `json:"version"`
	Name      string `json:"name"`
	Spec      string `json:"spec_sha256"`
	Seed      uint64 `json:"seed"`
	StartWall int64  `json:"start_wall_ns"`
}

const (
	journalFile = "journal.jsonl"
	lockFile    = "lock"

	// SpecFile in a matrix's folder is its spec.
	SpecFile = "spec.yaml"
	// ResultFile in a matrix's folder is its result as far as it was measured.
	ResultFile = "result.json"
)

// OpenJournal begins a matrix, or goes on with one that has the same spec. again begins anew; what was there stays in
// the folder under another name. Nobody else can open it until it is closed.
func OpenJournal(dir string, spec *Spec, seed uint64, now int64, again bool) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail.Environment("use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA", "keep the matrix: %w",
			err)
	}
	j := &Journal{Dir: dir, Seed: seed, StartWall: now}
	if err := j.lockFolder(spec.Name); err != nil {
		return nil, err
	}
	if again {
		j.setAside()
	}
	if err := j.openFile(spec); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// lockFolder locks the folder. The lock ends with this process, however that does.
func (j *Journal) lockFolder(name string) error {
	lock, err := os.OpenFile(filepath.Join(j.Dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fail.Environment("use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA", "keep the matrix: %w", err)
	}
	if err := system.Lock(lock, false); err != nil {
		who := make([]byte, 20)
		n, _ := lock.ReadAt(who, 0)
		lock.Close()
		if !errors.Is(err, system.ErrLocked) {
			return fail.Environment("is the data directory on a file system with locks?", "lock %s: %w", j.Dir, err)
		}
		return fail.Input("wait for it, or give this one another name: --name "+name+"-2",
			"matrix %s is being measured by process %s", name, strings.TrimSpace(string(who[:n])))
	}
	_ = lock.Truncate(0)
	_, _ = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	j.lock = lock
	return nil
}

// setAside gives an older journal and its spec other names.
func (j *Journal) setAside() {
	for n := 1; ; n++ {
		old := filepath.Join(j.Dir, fmt.Sprintf("journal.%d.jsonl", n))
		if _, err := os.Lstat(old); err == nil {
			continue
		}
		_ = os.Rename(filepath.Join(j.Dir, journalFile), old)
		_ = os.Rename(filepath.Join(j.Dir, SpecFile), filepath.Join(j.Dir, fmt.Sprintf("spec.%d.yaml", n)))
		return
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// openFile reads what is there, and begins where there is nothing. A last line that was not written whole is taken away.
func (j *Journal) openFile(spec *Spec) error {
	path := filepath.Join(j.Dir, journalFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail.Environment("", "read the matrix's journal: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return fail.Environment("", "keep the matrix: %w", err)
	}
	head, err := j.readLines(text[:whole])
	if err != nil {
		return err
	}
	if head == nil && len(j.Trials) > 0 {
		return fail.Input("--again measures everything again", "%s cannot be read: its first line is damaged", path)
	}
	if head == nil {
		return j.writeHeader(spec)
	}
	if err := j.same(head, spec); err != nil {
		return err
	}
	j.Seed, j.StartWall = head.Seed, head.StartWall
	if err := j.file.Truncate(int64(whole)); err != nil {
		return fail.Environment("", "keep the matrix: %w", err)
	}
	_, err = j.file.Seek(0, 2)
	return err
}

// same refuses a spec with another text than that of the trials that are there.
func (j *Journal) same(head *header, spec *Spec) error {
	if head.Spec == digest(spec.Text) {
		return nil
	}
	return fail.Input("--again measures everything again; --name "+spec.Name+"-2 makes another matrix of it",
		"%s has changed since %d trials of the matrix %s were measured; as it was: %s", filepath.Base(spec.File),
		len(j.Trials), spec.Name, filepath.Join(j.Dir, SpecFile))
}

// PeekJournal is what OpenJournal would find, without holding or changing anything.
func PeekJournal(dir string, spec *Spec, seed uint64) ([]Trial, uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, seed, nil // there is none
	}
	j := &Journal{Dir: dir}
	head, err := j.readLines(text[:bytes.LastIndexByte(text, '\n')+1])
	if err != nil || head == nil {
		return nil, seed, err
	}
	return j.Trials, head.Seed, j.same(head, spec)
}

// writeHeader writes the first line, and the spec beside it.
func (j *Journal) writeHeader(spec *Spec) error {
	j.Trials, j.Machines, j.Damaged, j.New = nil, nil, 0, true
	if err := j.file.Truncate(0); err != nil {
		return fail.Environment("", "keep the matrix: %w", err)
	}
	if err := os.WriteFile(filepath.Join(j.Dir, SpecFile), []byte(spec.Text), 0o600); err != nil {
		return fail.Environment("", "keep the matrix: %w", err)
	}
	return j.append(line{Matrix: &header{ResultVersion, spec.Name, digest(spec.Text), j.Seed, j.StartWall}})
}

// readLines takes in whole lines; nil: there is no first one.
func (j *Journal) readLines(text []byte) (*header, error) {
	var head *header
	for one := range bytes.Lines(text) {
		var l line
		err := json.Unmarshal(one, &l)
		switch {
		case err != nil:
			j.Damaged++
		case l.Matrix != nil && l.Matrix.Version > ResultVersion:
			return nil, fail.Input("use that version, or --again", "%s was written by a newer hightide",
				filepath.Join(j.Dir, journalFile))
		case l.Matrix != nil:
			head = l.Matrix
		case l.Machine != nil:
			j.addMachine(*l.Machine)
		case l.Trial != nil:
			j.addTrial(*l.Trial)
		}
	}
	return head, nil
}

// addTrial keeps one of each cell and repeat, the later one: of a trial that was lost, what came of it later.
func (j *Journal) addTrial(t Trial) {
	for i, old := range j.Trials {
		if old.Cell == t.Cell && old.Repeat == t.Repeat && old.State == Lost {
			j.Trials[i] = t
			return
		}
	}
	j.Trials = append(j.Trials, t)
}

func (j *Journal) addMachine(m Machine) bool {
	for i, old := range j.Machines {
		if old == m {
			return false
		}
		if old.Name == m.Name {
			j.Machines[i] = m
			return true
		}
	}
	j.Machines = append(j.Machines, m)
	return true
}

// Add keeps a trial, and the machine that it ran on. When it returns the trial is on the disk.
func (j *Journal) Add(t Trial, m Machine) error {
	if m.Name != "" && j.addMachine(m) {
		if err := j.append(line{Machine: &m}); err != nil {
			return err
		}
	}
	if err := j.append(line{Trial: &t}); err != nil {
		return err
	}
	j.addTrial(t)
	return nil
}

func (j *Journal) append(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the matrix's journal: %w", err)
	}
	_, err = j.file.Write(append(text, '\n'))
	if err := errors.Join(err, j.file.Sync()); err != nil {
		return fail.Environment("make room there; the same command then goes on", "write the matrix's journal: %w", err)
	}
	return nil
}

// Close gives the matrix back.
func (j *Journal) Close() {
	if j.file != nil {
		_ = j.file.Close()
	}
	_ = j.lock.Close()
}

// Save leaves the result beside the journal.
func (j *Journal) Save(r *Result) error {
	return files.Write(filepath.Join(j.Dir, ResultFile), "the matrix's result",
		func(w io.Writer) error { return WriteJSON(w, r, nil) })
}

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
	head, err := j.readLines(lines[:bytes.LastIndexByte(lines, '\n')+1])
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

// LastChange is when a trial of a matrix was last kept, ns since 1970, and whether it is being measured, without
// reading what was.
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
	return errors.Is(system.Lock(lock, true), system.ErrLocked)
}

// PageJSON is what the matrix page is made of (web/src/matrix). Reports are addresses by run.
func PageJSON(r *Result, c *Comparison, reports map[string]string) (json.RawMessage, error) {
	packed := pack(r, c, details[0])
	packed.Reports = reports
	return json.Marshal(packed)
}
