package pickle

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"slices"
	"sync/atomic"
)

// readAhead reads ahead of the machine on another core: it takes windows from a Lender and finds the rows of
// known shapes in them. Only what bytes say by themselves is read there; what they refer to, the machine
// looks up when it comes upon them, in order. So nothing depends on where rows were looked for. A row that
// was found where the machine never comes is forgotten, one that was not found is read as it comes.
//
//	Lender ──▶ windows that overlap ──▶ scan ──▶ runs ──▶ machine: resolve ──▶ Builder
//
// With one core there is nothing to gain, and windows come as they are.
type readAhead struct {
	lend  Lender
	scan  scan
	known atomic.Pointer[knownShapes]
	keep  []byte // the end of the last window
	end   int64  // its offset
	done  int64  // where looking for rows ended

	full, spare chan *window // nil with one core
	stop        chan struct{}
}

// window is a stretch of the stream with the runs found in it, by place.
type window struct {
	b     []byte
	base  int64 // offset of b[0] in the stream
	runs  []*run
	found int   // how many of runs are of this window; the others are room for the next
	err   error // instead of all else: there is nothing more
}

// knownShapes is what those who read ahead need to know of shapes; it never changes.
type knownShapes struct {
	shapes     []*shape
	keys       [][]rawKey // of each
	generation uint32
}

// maxMisses is how many places of a window may look like the beginning of a row and be none, before the rest
// of it is left to the machine. Where rows are rare, looking for them costs more than it gains.
const maxMisses = 1 << 10

// windows is how many there are: one at the machine, one that waits for it, and one in the making.
const windows = 3

func newReadAhead(lend Lender, seed maphash.Seed) *readAhead {
	f := &readAhead{lend: lend, scan: scan{seed: seed}}
	if runtime.GOMAXPROCS(0) == 1 {
		return f
	}
	f.full, f.spare, f.stop = make(chan *window, windows), make(chan *window, windows), make(chan struct{})
	for range windows {
		f.spare <- &window{}
	}
	go f.run()
	return f
}

// publish shows the reader ahead the shapes and keys as they are now.
func (f *readAhead) publish(shapes []*shape, generation uint32) {
	k := &knownShapes{generation: generation}
	for _, s := range shapes {
		if s.form.Rows && !slices.ContainsFunc(s.raw, func(key rawKey) bool { return key.size == 0 }) {
			k.shapes, k.keys = append(k.shapes, s), append(k.keys, slices.Clone(s.raw))
		}
	}
	f.known.Store(k)
}

// run ends with the stream, or once nobody wants more.
func (f *readAhead) run() {
	for {
		select {
		case w := <-f.spare:
			if w.err = f.fetch(w); w.err == nil {
				f.findRows(w)
			}
			select {
			case f.full <- w:
			case <-f.stop:
				return
			}
			if w.err != nil {
				return
			}
		case <-f.stop:
			return
		}
	}
}

// close ends reading ahead.
func (f *readAhead) close() {
	if f.stop != nil {
		close(f.stop)
	}
}

// next gives the next window, which stays as it is until it is given back.
func (f *readAhead) next() *window {
	if f.full != nil {
		return <-f.full
	}
	w := &window{}
	w.err = f.fetch(w)
	return w
}

// back takes back the window given longest ago.
func (f *readAhead) back(w *window) {
	f.lend.Return()
	if f.full != nil {
		f.spare <- w
	}
}

// fetch gets the next window, which begins with the end of the last: there records are tried only once
// they have room.
func (f *readAhead) fetch(w *window) error {
	b, err := f.lend.Lend(f.keep)
	if err != nil {
		return err
	}
	w.b, w.base, w.found = b, f.end-int64(len(f.keep)), 0
	f.end = w.base + int64(len(b))
	f.keep = append(f.keep[:0], b[max(0, len(b)-recordRoom):]...)
	return nil
}

// findRows finds the rows that begin in a window but for its end, which the next begins with.
func (f *readAhead) findRows(w *window) {
	known := f.known.Load()
	if known == nil || len(known.shapes) == 0 {
		return
	}
	s, limit := &f.scan, len(w.b)-recordRoom
	s.b, s.i = w.b, int(max(f.done-w.base, 0))
	latest := 0
	for misses := 0; s.i < limit; {
		skip := bytes.IndexByte(w.b[s.i:limit], '}')
		if skip < 0 {
			s.i = limit
			break
		}
		s.i += skip
		if f.rows(w, known, &latest) {
			continue
		}
		s.i++
		if misses++; misses > maxMisses {
			s.i = limit
		}
	}
	f.done = w.base + int64(s.i)
}

// rows tries the shapes at a place, that of the rows before it first.
func (f *readAhead) rows(w *window, known *knownShapes, latest *int) bool {
	if w.found == len(w.runs) {
		w.runs = append(w.runs, &run{})
	}
	r := w.runs[w.found]
	for nth := range known.shapes {
		at := (*latest + nth) % len(known.shapes)
		f.scan.rows(r, known.shapes[at], known.keys[at], batchRows)
		if r.n > 0 {
			r.base, r.generation = w.base, known.generation
			w.found++
			*latest = at
			return true
		}
	}
	return false
}

// at finds the run with a row that begins at an offset, and the row's place in it. Offsets only grow.
func (w *window) at(offset int64, next *int) (*run, int) {
	for ; *next < w.found; *next++ {
		r := w.runs[*next]
		if r.base+int64(r.starts[r.n]) <= offset {
			continue
		}
		row, found := slices.BinarySearch(r.starts[:r.n], int32(offset-r.base))
		if offset < r.base || !found {
			break
		}
		return r, row
	}
	return nil, 0
}
