package shm

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"testing"

	"hightide/internal/mem"
)

func open(t testing.TB, w *writer) *Channel {
	t.Helper()
	c, err := Open(w.mapping)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read hands every record that is complete to visit, in order, and gives their room back.
func read(c *Channel, final bool, visit func(Record)) error {
	for {
		record, err := c.Next(final)
		if record == nil || err != nil {
			return err
		}
		visit(record)
		c.Release(c.Position())
	}
}

// checkRecords reads a channel to its end: those records are in it, and nothing is left of them.
func checkRecords(t *testing.T, w *writer, want ...Record) {
	t.Helper()
	c := open(t, w)
	i := 0
	err := read(c, false, func(r Record) {
		if i >= len(want) || !reflect.DeepEqual(r, want[i]) {
			t.Errorf("record %d: got %#v", i, r)
		}
		i++
	})
	if err != nil || i != len(want) || c.Pending() != 0 || c.Malformed+c.Unknown != 0 {
		t.Fatalf("%d records, error %v, %d bytes pending, %+v", i, err, c.Pending(), c.Stats)
	}
	for i, b := range w.ring {
		if b != 0 {
			t.Fatalf("byte %d of the ring was not zeroed", i)
		}
	}
}

func TestRecordsOfTheAgent(t *testing.T) {
	w := newWriter(RoleAgent, minRing)
	minusOne := ^uint64(0)
	text := `{"type":"hello"}`
	w.write(kindJSON, 0, 1, append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	w.write(kindEdge, 0, 2, words(0x0002_01_03|7<<32, 9, 4096, minusOne, 8))
	w.write(kindCounters, 2, 3, words(5, 50, 6, minusOne))
	w.write(kindStep, 0, 4, words(10, 11, minusOne, half(3, 1), 12))
	checkRecords(t, w,
		&JSON{1, []byte(text)},
		&Edge{Time: 2, Phase: mem.PhaseForward, Leave: true, Module: 2, Thread: 7, Step: 9, RSS: mem.Some(4096),
			DeviceReserved: mem.Some(8)},
		&Counters{3, []Counter{{5, 50}, {6, -1}}},
		&Step{Time: 4, Step: 10, Duration: 11, MicroSteps: 3, Skipped: true, DeviceAllocated: mem.Some(12)},
	)
}

func TestRecordsOfTheHeap(t *testing.T) {
	w := newWriter(RoleHeap, minRing)
	w.write(kindCode, 0, 5, append(words(half(1, 20), half(0x030b|4<<16, 2), half(4, 0)), "a.pyff\x80\x01\x02\x03"...))
	w.write(kindAlloc, 0, 6, words(0xdead, 100, 200, 5<<24|2<<8|4, uint64(33)|2<<32|3<<48|3<<56, 1, half(16, 0), 0x7f00,
		half(0, 1)))
	w.write(kindFree, 0, 7, words(0xdead, 0))
	w.write(kindThread, 0, 8, append(words(half(33, 4)), "main"...))
	alloc := &Alloc{6, 0xdead, 100, 200, 5<<24 | 2<<8 | 4, 33, OriginRealloc, true, true, false,
		[]Frame{{1, 16, false}, {0x7f00, 0, true}}}
	checkRecords(t, w,
		&Code{5, 1, 20, 0x030b, []byte("a.py"), []byte("ff"), []byte("\x80\x01\x02\x03")},
		alloc,
		&Free{7, 0xdead, 0},
		&Thread{8, 33, []byte("main")},
	)
	if word := alloc.Word; word.Step() != 5 || word.Module() != 2 || word.Phase() != mem.PhaseBackward {
		t.Errorf("word %x", word)
	}
}

// TestRecordsOfAnotherRole: what a writer of this role has no records of is counted and left out.
func TestRecordsOfAnotherRole(t *testing.T) {
	payload := make([]byte, 64)
	agents := []Kind{kindJSON, kindEdge, kindCounters, kindStep}
	heaps := []Kind{kindCode, kindAlloc, kindFree, kindThread}
	for role, strange := range map[Role][]Kind{RoleAgent: heaps, RoleHeap: agents, 7: append(agents, heaps...)} {
		w := newWriter(role, minRing)
		for _, kind := range strange {
			w.write(kind, 0, 1, payload)
		}
		c := open(t, w)
		if r, err := c.Next(true); r != nil || err != nil || c.Malformed != uint64(len(strange)) {
			t.Errorf("role %d: %#v, %v, %+v", role, r, err, c.Stats)
		}
	}
}

// TestConcurrent: three writers and a reader at once, more than the ring holds; every record that
// was not dropped arrives once, whole, and in the order of its writer. Run with -race.
func TestConcurrent(t *testing.T) {
	const writers, each = 3, 20000
	w := newWriter(RoleHeap, minRing)
	c := open(t, w)
	var group sync.WaitGroup
	written := make([]int, writers)
	for id := range writers {
		group.Go(func() {
			for i := range each {
				payload := words(uint64(id), uint64(i), uint64(i), uint64(i), uint64(i), uint64(i), uint64(i))[:16+i%5*8]
				if w.write(kindFree, 0, uint64(i), payload) {
					written[id]++
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	got, last := make([]int, writers), []int64{-1, -1, -1}
	check := func(r Record) {
		f := r.(*Free)
		if f.Address >= writers || int64(f.Size) != f.When() || f.When() <= last[f.Address] {
			t.Fatalf("record %+v after %v", f, last)
		}
		last[f.Address] = f.When()
		got[f.Address]++
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := read(c, false, check); err != nil {
			t.Fatal(err)
		}
	}
	dropped := int(c.Writer().DroppedRecords)
	if !reflect.DeepEqual(got, written) || got[0]+got[1]+got[2]+dropped != writers*each {
		t.Fatalf("wrote %v, read %v, dropped %d", written, got, dropped)
	}
}

// TestDeadWriter: what a killed writer left half done is passed over, what follows is read.
func TestDeadWriter(t *testing.T) {
	w := newWriter(RoleHeap, minRing)
	c := open(t, w)
	w.write(kindFree, 0, 1, words(1, 0))
	w.reserve(48) // stamped busy, never committed
	w.write(kindFree, 0, 2, words(2, 0))
	unstamped := w.reserve(64) // reserved, killed before the stamp
	store64(w.ring, unstamped, 0)
	w.write(kindFree, 0, 3, words(3, 0))
	w.reserve(32)
	var seen []uint64
	visit := func(r Record) { seen = append(seen, r.(*Free).Address) }
	if err := read(c, false, visit); err != nil || len(seen) != 1 {
		t.Fatalf("alive: %v, %v", seen, err)
	}
	if err := read(c, true, visit); err != nil || !reflect.DeepEqual(seen, []uint64{1, 2, 3}) {
		t.Fatalf("dead: %v, %v", seen, err)
	}
	if c.Holes != 3 || c.HoleBytes != 48+64+32 || c.Pending() != 0 {
		t.Fatalf("%+v", c.Stats)
	}
}

// TestSecondReader: another engine continues where the first one was killed: behind what that had
// released, or said elsewhere that it had put away.
func TestSecondReader(t *testing.T) {
	w := newWriter(RoleHeap, minRing)
	c := open(t, w)
	for i := range uint64(4) {
		w.write(kindFree, 0, i, words(i, 0))
	}
	next := func(c *Channel, want uint64) {
		t.Helper()
		if r, err := c.Next(false); err != nil || r.(*Free).Address != want {
			t.Fatalf("%+v, %v, want %d", r, err, want)
		}
	}
	next(c, 0)
	first := c.Position()
	next(c, 1)
	second := c.Position()
	c.Release(first)
	c.Release(first + 1<<40) // never read
	if c.Held() != int(second-first) {
		t.Errorf("held %d", c.Held())
	}
	next(open(t, w), 1)
	last := open(t, w)
	last.Skip(second + 1<<40)
	last.Skip(second)
	next(last, 2)
	next(last, 3)
	last.Release(last.Position())
	if r, err := last.Next(false); r != nil || err != nil || last.Held() != 0 {
		t.Fatal(r, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	change := func(off int, value uint64) func([]byte) { return func(m []byte) { store64(m, off, value) } }
	for _, test := range []struct {
		name   string
		change func([]byte)
		want   error // nil: any
	}{
		{"no magic yet", change(offMagic, 0), ErrNotReady},
		{"another file", change(offMagic, 7), ErrCorrupt},
		{"newer version", change(offABI, 2), nil},
		{"ring is not a power of two", change(offRingBytes, minRing+8), ErrCorrupt},
		{"ring beyond the file", change(offRingBytes, 2*minRing), ErrCorrupt},
		{"ring beyond reason", change(offRingBytes, 1<<40), ErrCorrupt},
		{"tail beyond head", change(offTail, 8), ErrCorrupt},
		{"head beyond the ring", change(offHead, minRing+8), ErrCorrupt},
		{"head not aligned", change(offHead, 4), ErrCorrupt},
	} {
		w := newWriter(RoleAgent, minRing)
		test.change(w.mapping)
		c, err := Open(w.mapping)
		if c != nil || err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if _, err := Open(nil); !errors.Is(err, ErrNotReady) {
		t.Error(err)
	}
}

func TestCorruptRecordEndsTheChannel(t *testing.T) {
	for _, size := range []uint64{8, 12, 17, minRing, 0x7ffffff8} {
		w := newWriter(RoleAgent, minRing)
		c := open(t, w)
		w.write(kindFree, 0, 1, words(1, 0))
		store64(w.ring, 0, size|uint64(kindFree)<<32)
		for range 2 {
			if r, err := c.Next(true); r != nil || !errors.Is(err, ErrCorrupt) {
				t.Errorf("size %d: %v, %v", size, r, err)
			}
		}
	}
}

func TestControl(t *testing.T) {
	w := newWriter(RoleAgent, minRing)
	c := open(t, w)
	c.StopAtStep(10)
	c.ScanContainers()
	c.Beat(99, 100)
	for off, want := range map[int]uint64{offStopAtStep: 10,
		offScanSeq: 1, offEnginePID: 99, offEngineBeat: 100, offControlSeq: 2} {
		if got := load64(w.mapping, off); got != want {
			t.Errorf("offset %d holds %d, want %d", off, got, want)
		}
	}
	c = open(t, w)
	if c.ScanContainers(); load64(w.mapping, offScanSeq) != 2 || load64(w.mapping, offControlSeq) != 3 {
		t.Error("a second engine does not continue the sequences")
	}
	if c.PID != 4242 || c.Role != RoleAgent || c.ProcessStart != 77 {
		t.Errorf("%+v", c.Header)
	}
}

// TestTruncatedFile: a process that shortens its own channel file cannot kill the engine, whatever that does first.
func TestTruncatedFile(t *testing.T) {
	for name, touch := range map[string]func(*Channel){
		"next": func(c *Channel) {
			if err := read(c, true, func(Record) {}); !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
		},
		"pending": func(c *Channel) {
			if n := c.Pending(); n != 0 {
				t.Errorf("%d bytes to be read of a file that is gone", n)
			}
		},
		"skip":    func(c *Channel) { c.Skip(8) },
		"release": func(c *Channel) { c.tail = 8; c.Release(8) },
		"beat":    func(c *Channel) { c.Beat(1, 1) },
		"scan":    func(c *Channel) { c.ScanContainers() },
		"writer":  func(c *Channel) { c.Writer() },
		"open": func(c *Channel) {
			if _, err := Open(c.mapping); !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { touch(cutShort(t)) })
	}
}

// cutShort is a channel with a record in it, whose file was cut to nothing after it was opened.
func cutShort(t *testing.T) *Channel {
	file, err := os.Create(filepath.Join(t.TempDir(), "agent.ring"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(HeaderBytes + minRing); err != nil {
		t.Fatal(err)
	}
	mapping, err := syscall.Mmap(int(file.Fd()), 0, HeaderBytes+minRing, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mapping) })
	w := initWriter(mapping, RoleAgent, minRing)
	c := open(t, w)
	w.write(kindFree, 0, 1, words(1, 0))
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return c
}

// BenchmarkNext reads allocation records with 20 frames, the heaviest there are.
func BenchmarkNext(b *testing.B) {
	w := newWriter(RoleHeap, 1<<20)
	c := open(b, w)
	payload := words(1, 2, 3, 4, 5|20<<32)
	payload = append(payload, make([]byte, 20*frameBytes)...)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		b.StopTimer()
		for w.write(kindAlloc, 0, 1, payload) {
		}
		b.StartTimer()
		read(c, false, func(Record) { n++ })
	}
}
