package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"hightide/internal/mem"
	"hightide/internal/system"
	"hightide/internal/wire"
)

// blockFile is a recording being appended to. Each Write is one block, or nothing: what a full disk
// took of it is cut off again.
type blockFile struct {
	file interface {
		io.Writer
		Truncate(int64) error
	}
	size   int64  // of the whole blocks
	writes uint64 // blocks written
}

func (b *blockFile) Write(p []byte) (int, error) {
	n, err := b.file.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if cut := b.file.Truncate(b.size); cut != nil {
			b.size += int64(n) // the reader finds its way around the torn block
		}
		return n, err
	}
	b.size += int64(n)
	b.writes++
	return n, nil
}

// recording is the Writer of every kind of store.
type recording struct {
	id      string
	place   place
	mu      sync.Mutex // of all below
	closed  bool
	out     *blockFile
	wire    *wire.Writer
	roll    *rollup
	current pending // in the block in the making
	lost    pending // lost with a block: begins the next one
	waits   bool    // what was lost is more than a block, and was refused: nothing more before the next flush
	many    uint64  // frames of the block in the making that would be lost with it
	bytes   uint64
	loss    Loss
	told    uint64 // frames of the loss that the recording knows of
}

// place is what a recording needs to know of where its bytes go.
type place interface {
	followed() bool
	flushed()                  // the recording was
	end()                      // makes room for what could not be written, where it can
	paths() (dir, file string) // for people; "": there is none
	close() error              // after the last flush
}

// Followed implements Writer.
func (r *recording) Followed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closed && r.place.followed()
}

// write takes one frame. A frame that cannot be written for its own sake is counted as lost.
func (r *recording) write(f mem.Frame) {
	r.roll.add(f)
	r.rewrite()
	if !r.waits {
		r.putFrame(f)
		return
	}
	if !r.lost.putFrame(f) {
		r.loss.Frames++
	}
}

// putFrame adds a frame to the block in the making, which may end the block.
func (r *recording) putFrame(f mem.Frame) {
	before, writes := r.wire.Buffered(), r.out.writes
	err := r.wire.Write(f)
	if !r.current.putFrame(f) {
		r.many++
		r.bytes += uint64(max(0, r.wire.Buffered()-before))
	}
	r.settle(err, writes)
}

// settle looks whether a block was written or lost.
func (r *recording) settle(err error, writes uint64) {
	switch {
	case err != nil:
		r.loss.Frames += r.many
		r.loss.Bytes += r.bytes
		r.loss.Err = err
		r.told = 0 // what was said of it is lost too, and will be said anew
		for _, f := range r.current.frames {
			if !ofLoss(f) && !r.lost.putFrame(f) {
				r.loss.Frames++
			}
		}
	case r.out.writes == writes:
		return
	}
	r.current.clear()
	r.many, r.bytes = 0, 0
}

// rewrite begins a block with what was lost with an earlier one and can be written again, so that
// later frames find their definitions and newer facts follow older ones.
func (r *recording) rewrite() {
	if len(r.lost.frames) == 0 || r.wire.Buffered() > 0 || r.waits {
		return
	}
	lost := r.lost
	r.lost = pending{}
	for i, f := range lost.frames {
		r.putFrame(f)
		if len(r.lost.frames) > 0 { // a block was full, and refused
			for _, f := range lost.frames[i+1:] {
				r.lost.putFrame(f)
			}
			r.waits = true
			return
		}
	}
}

func (r *recording) flush() {
	r.waits = false
	r.rewrite()
	if r.waits {
		return
	}
	if lost := r.loss.Frames; lost != r.told {
		r.told = lost
		r.write(mem.Drop{Place: "disk", Records: lost, Bytes: r.loss.Bytes})
		r.write(mem.Event{Time: r.roll.last, Kind: "drop", Facts: map[string]string{"place": "disk"},
			Text: fmt.Sprintf("%d records could not be written: %v", lost, cause(r.loss.Err))})
	}
	writes := r.out.writes
	r.settle(r.wire.Flush(), writes)
}

// ofLoss says whether a frame is one that flush itself adds.
func ofLoss(f mem.Frame) bool {
	switch f := f.(type) {
	case mem.Drop:
		return f.Place == "disk"
	case mem.Event:
		return f.Kind == "drop" && f.Facts["place"] == "disk"
	}
	return false
}

// settled says whether all is written, or said to be lost.
func (r *recording) settled() bool { return len(r.lost.frames) == 0 && r.told == r.loss.Frames }

// cause is what the system said, without our own words and paths.
func cause(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// ID implements Writer.
func (r *recording) ID() string { return r.id }

// Info implements Writer.
func (r *recording) Info() mem.RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.roll.run.Info
}

// Write implements Writer.
func (r *recording) Write(f mem.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed
	}
	r.write(f)
	return nil
}

// Lost implements Writer.
func (r *recording) Lost() Loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loss
}

// Flush implements Writer.
func (r *recording) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed
	}
	r.flush()
	r.place.flushed()
	return nil
}

// Run implements Writer.
func (r *recording) Run() Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row()
	row.Dir, row.File = r.place.paths()
	return row
}

func (r *recording) row() Run {
	row := r.roll.row()
	row.ID, row.Size = r.id, r.out.size
	if !r.closed {
		row.becomes(Running)
	}
	return row
}

// End implements Writer.
func (r *recording) End() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed
	}
	r.end()
	return nil
}

func (r *recording) end() {
	r.flush()
	if r.place.end(); !r.settled() {
		r.flush()
	}
}

// Close implements Writer.
func (r *recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return os.ErrClosed
	}
	r.closed = true
	r.end()
	return r.place.close()
}

// writeInfo writes what is known of a new run, so that whoever looks sees what runs, also where we die at once.
func (r *recording) writeInfo(info mem.RunInfo) {
	if len(info.Command) > 0 {
		r.write(info)
		r.flush()
	}
	if info.StartWall == 0 { // known with the first RunInfo
		info.StartWall = time.Now().UnixNano()
	}
	r.roll.run.Info = info
}

// onDisk is the place of a recording of Files.
type onDisk struct {
	*recording
	store *Files
	file  *os.File
	index *indexer
	next  time.Time // of the index
}

// indexEvery is the time between two entries of a running run into the index.
const indexEvery = 2 * time.Second

func (w *onDisk) paths() (dir, file string) { return w.store.runDir(w.id), w.store.recording(w.id) }

func (w *onDisk) flushed() {
	if now := time.Now(); now.After(w.next) {
		w.next = now.Add(indexEvery)
		w.index.putEntry(entry{run: w.row()}) // no stamp: were we to die, the row would be an old one
	}
}

// end gives back the space held in reserve, so that on a full disk the end and what is missing can be written.
func (w *onDisk) end() { _ = os.Remove(w.store.reserve(w.id)) }

func (w *onDisk) close() error {
	syncErr := w.file.Sync()
	row := w.store.sumUpFile(w.id, w.store.recording(w.id)) // from what is in the file, as whoever makes the index anew
	row.Size = w.store.size(w.id)
	if info, err := w.file.Stat(); err == nil {
		w.index.putEntry(entry{row, stampOf(info), w.store.folderStamp(w.id)})
	}
	w.index.close()
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("close recording: %w", err)
	}
	if syncErr != nil && !errors.Is(syncErr, syscall.EINVAL) { // EINVAL: a file system without sync
		return fmt.Errorf("close recording: %w", syncErr)
	}
	return nil
}

// reserveBytes is held back on the disk for the end of the recording.
const reserveBytes = 256 << 10

func (s *Files) reserve(id string) string { return filepath.Join(s.runDir(id), ".reserve") }

// holdReserve is best effort: a file system without it only loses the ability.
func (s *Files) holdReserve(id string) {
	file, err := os.OpenFile(s.reserve(id), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	if system.Reserve(file, reserveBytes) != nil {
		_, _ = file.Write(make([]byte, reserveBytes))
	}
}
