package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// Memory is a store that ends with the process: recordings are encoded as on disk, and kept in
// memory. Its zero value works.
type Memory struct {
	mu   sync.Mutex
	runs map[string]*memoryRun
}

type memoryRun struct {
	data      buffer
	followers atomic.Int32
	writer    *recording // the newest
	attached  map[string][]byte
}

// buffer is a recording in memory, to be appended to and read at once.
type buffer struct {
	mu    sync.Mutex
	data  []byte // only appended to: what was read of it stays
	grown time.Time
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.grown = append(b.data, p...), time.Now()
	return len(p), nil
}

func (b *buffer) Truncate(size int64) error { return nil } // it never takes half a block

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data
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
	run := &memoryRun{attached: map[string][]byte{}}
	m.runs[info.ID] = run
	out := &blockFile{file: &run.data}
	encoder, err := wire.NewWriter(out)
	if err != nil {
		return nil, err
	}
	run.writer = &recording{id: info.ID, place: run, out: out, wire: encoder, roll: newRollup(true)}
	run.writer.writeInfo(info)
	return run.writer, nil
}

func (r *memoryRun) followed() bool       { return r.followers.Load() > 0 }
func (r *memoryRun) flushed()             {}
func (r *memoryRun) end()                 {}
func (r *memoryRun) paths() (_, _ string) { return "", "" }
func (r *memoryRun) close() error         { return nil }

// Reopen implements Store.
func (m *Memory) Reopen(id string) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return nil, notFound(id)
	}
	if run.writer.Run().State == Running {
		return nil, stillRunning(id)
	}
	data := run.data.bytes()
	roll, sequence, err := sumUp(bytes.NewReader(data), true)
	if err != nil {
		return nil, unreadable(id, err)
	}
	out := &blockFile{file: &run.data, size: int64(len(data))}
	run.writer = &recording{id: id, place: run, out: out, wire: wire.Append(out, sequence), roll: roll}
	return run.writer, nil
}

func stillRunning(id string) error {
	return &Error{Kind: ErrRunning, Text: fmt.Sprintf("run %s is still being recorded", id),
		Hint: "end it first, or wait until it has ended"}
}

// List implements Store.
func (m *Memory) List(filter Filter) ([]Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var runs []Run
	for _, run := range m.runs {
		row := run.writer.Run()
		for _, data := range run.attached {
			row.Size += int64(len(data))
		}
		runs = append(runs, row)
	}
	slices.SortFunc(runs, newestFirst)
	return filter.apply(runs), nil
}

// Remove implements Store.
func (m *Memory) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return notFound(id)
	}
	if run.writer.Run().State == Running {
		return stillRunning(id)
	}
	delete(m.runs, id)
	return nil
}

// Attach implements Store.
func (m *Memory) Attach(id, name string, write func(io.Writer) error) (string, error) {
	var data bytes.Buffer
	if err := write(&data); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil || !validName(name) {
		return "", notFound(id + "/" + name)
	}
	run.attached[name] = data.Bytes()
	return "", nil
}

// Detach implements Store.
func (m *Memory) Detach(id, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[id] == nil || m.runs[id].attached[name] == nil {
		return fs.ErrNotExist
	}
	delete(m.runs[id].attached, name)
	return nil
}

// Open implements Store.
func (m *Memory) Open(id, name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return nil, fs.ErrNotExist
	}
	data, ok := run.attached[name]
	if name == Recording {
		data, ok = run.data.bytes(), true
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Attached implements Store.
func (m *Memory) Attached(id string) ([]Attachment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	if run == nil {
		return nil, notFound(id)
	}
	attached := []Attachment{}
	for _, name := range slices.Sorted(maps.Keys(run.attached)) {
		attached = append(attached, Attachment{name, int64(len(run.attached[name]))})
	}
	return attached, nil
}

// Follow implements Store.
func (m *Memory) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		m.mu.Lock()
		run := m.runs[id]
		m.mu.Unlock()
		if run == nil {
			yield(Batch{}, notFound(id))
			return
		}
		run.followers.Add(1)
		defer run.followers.Add(-1)
		follow(ctx, id, memorySource{m, id, run}, from)(yield)
	}
}

type memorySource struct {
	store *Memory
	id    string
	run   *memoryRun
}

func (s memorySource) look() (look, error) {
	s.store.mu.Lock()
	writer, removed := s.run.writer, s.store.runs[s.id] != s.run
	s.store.mu.Unlock()
	writing := writer.Run().State == Running
	data := &s.run.data
	data.mu.Lock()
	defer data.mu.Unlock()
	return look{size: int64(len(data.data)), writing: writing, removed: removed, silent: time.Since(data.grown)}, nil
}

func (s memorySource) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(s.run.data.bytes()).ReadAt(p, at)
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
