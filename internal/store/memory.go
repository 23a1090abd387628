package store

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// Memory is a store for tests: recordings are encoded as on disk, and kept in memory. Its zero
// value works.
type Memory struct {
	mu   sync.Mutex
	runs map[string]*memoryRun
}

type memoryRun struct {
	data     bytes.Buffer
	roll     *rollup
	writing  bool
	findings mem.Optional
	created  int64
}

// Create implements Store.
func (m *Memory) Create(info mem.RunInfo) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs == nil {
		m.runs = map[string]*memoryRun{}
	}
	for info.ID == "" || m.runs[info.ID] != nil {
		info.ID = NewID(time.Now())
	}
	run := &memoryRun{roll: newRollup(), created: time.Now().UnixNano()}
	m.runs[info.ID] = run
	out := &blockFile{file: noTruncate{&run.data}}
	encoder, err := wire.NewWriter(out)
	if err != nil {
		return nil, err
	}
	w := m.writer(info.ID, run, out, encoder)
	if len(info.Command) > 0 {
		w.rec.write(info)
	}
	run.roll.info = info
	return w, nil
}

func (m *Memory) writer(id string, run *memoryRun, out *blockFile, encoder *wire.Writer) *memoryWriter {
	run.writing = true
	w := &memoryWriter{store: m, id: id, run: run}
	w.rec = recording{out: out, wire: encoder, roll: run.roll}
	return w
}

// noTruncate: a buffer never takes half a block.
type noTruncate struct{ *bytes.Buffer }

func (noTruncate) Truncate(int64) error { return nil }

// Reopen implements Store.
func (m *Memory) Reopen(id string) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return nil, notFound(id)
	}
	if run.writing {
		return nil, &Error{Kind: ErrRunning, Text: fmt.Sprintf("run %s is still being recorded", id)}
	}
	roll, sequence, err := sumUp(bytes.NewReader(run.data.Bytes()))
	if err != nil {
		return nil, unreadable(id, err)
	}
	run.roll = roll
	out := &blockFile{file: noTruncate{&run.data}}
	return m.writer(id, run, out, wire.Append(out, sequence)), nil
}

func (m *Memory) row(id string, run *memoryRun) Run {
	row := run.roll.row()
	row.ID, row.Size, row.Findings = id, int64(run.data.Len()), run.findings
	if run.writing {
		row.State = Running
	}
	if row.Start == 0 {
		row.Start = run.created
	}
	return row
}

// List implements Store.
func (m *Memory) List(filter Filter) ([]Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var runs []Run
	for id, run := range m.runs {
		runs = append(runs, m.row(id, run))
	}
	slices.SortFunc(runs, newestFirst)
	return filter.apply(runs), nil
}

// Resolve implements Store.
func (m *Memory) Resolve(ref string) (Run, error) {
	runs, err := m.List(Filter{})
	if err != nil {
		return Run{}, err
	}
	return pick(runs, ref)
}

// Load implements Store.
func (m *Memory) Load(ref string) (*mem.Run, error) {
	row, err := m.Resolve(ref)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return wire.Load(bytes.NewReader(m.runs[row.ID].data.Bytes()))
}

// Remove implements Store.
func (m *Memory) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return notFound(id)
	}
	if run.writing {
		return &Error{Kind: ErrRunning, Text: fmt.Sprintf("run %s is still being recorded", id)}
	}
	delete(m.runs, id)
	return nil
}

// Tag implements Store.
func (m *Memory) Tag(id string, set map[string]string, remove []string, name *string) error {
	w, err := m.Reopen(id)
	if err != nil {
		return err
	}
	info := m.runs[id].roll.info
	info.Tags = retag(info.Tags, set, remove)
	if name != nil {
		info.Name = *name
	}
	if err := w.Write(info); err != nil {
		return err
	}
	return w.Close()
}

// Note implements Store.
func (m *Memory) Note(id string, findings int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run := m.runs[id]; run != nil {
		run.findings = mem.Some(int64(findings))
	}
	return nil
}

// Prune implements Store.
func (m *Memory) Prune(limits Limits) ([]Run, error) {
	runs, err := m.List(Filter{})
	if err != nil {
		return nil, err
	}
	return prune(runs, limits, m.Remove)
}

// Reindex implements Store: there is no index.
func (m *Memory) Reindex(progress func(done, total int)) error {
	if progress != nil {
		progress(len(m.runs), len(m.runs))
	}
	return nil
}

// Close implements Store.
func (m *Memory) Close() error { return nil }

type memoryWriter struct {
	store *Memory
	id    string
	run   *memoryRun
	rec   recording
}

func (w *memoryWriter) ID() string   { return w.id }
func (w *memoryWriter) Dir() string  { return "" }
func (w *memoryWriter) File() string { return "" }
func (w *memoryWriter) Lost() Loss   { return w.rec.loss }

func (w *memoryWriter) Write(f mem.Frame) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.rec.write(f)
	return nil
}

func (w *memoryWriter) Flush() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.rec.flush()
	return nil
}

func (w *memoryWriter) Close() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.rec.flush()
	w.run.writing = false
	return nil
}
