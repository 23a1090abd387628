package observe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
	"hightide/internal/wire"
)

const testRing = 64 << 10

// noProcess is a pid beyond what the kernel gives.
const noProcess = 1<<22 + 1

// ringFile is the bytes of a channel whose writer is dead: docs/formats/channel.md.
func ringFile(role uint32, tail, head uint64, content []byte) []byte {
	file := make([]byte, shm.HeaderBytes+testRing)
	put := binary.LittleEndian
	put.PutUint64(file, shm.Magic)
	put.PutUint32(file[8:], shm.ABI)
	put.PutUint32(file[12:], role)
	put.PutUint32(file[16:], noProcess)
	put.PutUint32(file[20:], shm.HeaderBytes)
	put.PutUint64(file[24:], 77)
	put.PutUint64(file[32:], testRing)
	put.PutUint64(file[64:], head)
	put.PutUint64(file[128:], tail)
	for i, b := range content {
		file[shm.HeaderBytes+(tail+uint64(i))%testRing] = b
	}
	return file
}

// ringRecord is one record of a ring: kind, number of counters, time, then its words.
func ringRecord(kind, aux uint16, time uint64, words ...uint64) []byte {
	record := binary.LittleEndian.AppendUint32(nil, uint32(16+8*len(words)))
	record = binary.LittleEndian.AppendUint16(record, kind)
	record = binary.LittleEndian.AppendUint16(record, aux)
	for _, word := range append([]uint64{time}, words...) {
		record = binary.LittleEndian.AppendUint64(record, word)
	}
	return record
}

// ringText is a record of the agent's JSON.
func ringText(text string) []byte {
	payload := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	payload = append(payload, make([]byte, 7)...)[:(len(payload)+7)&^7]
	words := make([]uint64, len(payload)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(payload[8*i:])
	}
	return ringRecord(1, 0, 1, words...)
}

// leftover puts channels into a folder of a run whose engine is gone.
func leftover(t testing.TB, files map[string][]byte) Leftover {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Leftover{ID: "x", Dir: dir}
}

// TestHeapRecordsOfAnAgent: a channel tells only what its role has to tell. Records of the heap in an
// agent's channel have no heap that they could belong to.
func TestHeapRecordsOfAnAgent(t *testing.T) {
	content := append(ringRecord(65, 0, 1, 0xdead, 100, 100, 0, 0), ringRecord(66, 0, 2, 0xdead, 0)...)
	content = append(content, ringRecord(64, 0, 3, 1, 0, 0)...)
	content = append(content, ringRecord(4, 0, 4, 1, 10, 4096, 1, ^uint64(0))...)
	sink := memorySink{t, mem.NewRun()}
	l := leftover(t, map[string][]byte{"agent-1-1.ring": ringFile(1, 0, uint64(len(content)), content)})
	if err := Recover(l, mem.NewRun(), t.TempDir(), sink); err != nil {
		t.Fatal(err)
	}
	if got := sink.run.Drops; len(got) != 1 || got[0].Place != "ring" || got[0].Records != 3 {
		t.Errorf("drops %+v", got)
	}
	if len(sink.run.Steps) != 1 || len(sink.run.Heap) != 0 {
		t.Errorf("steps %v, heap %v: want the step alone", sink.run.Steps, sink.run.Heap)
	}
}

// TestLostIsAddedUp: a process has several channels, and each one's losses count, records as well as bytes. The engine
// before us has counted its own, of which the reader of a channel begins anew.
func TestLostIsAddedUp(t *testing.T) {
	lost := func(role uint32, records, bytes uint64, content []byte) []byte {
		file := ringFile(role, 0, uint64(len(content)), content)
		binary.LittleEndian.PutUint64(file[72:], records)
		binary.LittleEndian.PutUint64(file[80:], bytes)
		return file
	}
	unknown := ringRecord(999, 0, 1)
	sink := memorySink{t, mem.NewRun()}
	l := leftover(t, map[string][]byte{
		"agent-1-1.ring": lost(1, 3, 100, unknown), "heap-1-1.ring": lost(2, 4, 1000, nil),
	})
	if err := Recover(l, mem.NewRun(), t.TempDir(), sink); err != nil {
		t.Fatal(err)
	}
	if got := sink.run.Drops; len(got) != 1 || got[0].Records != 8 || got[0].Bytes != 1100 {
		t.Errorf("drops %+v, want 8 records and 1100 bytes", got)
	}

	r := newRecorder(&Options{ID: "x"}, sink)
	path := filepath.Join(t.TempDir(), "agent-1-1.ring")
	if err := os.WriteFile(path, lost(1, 5, 140, unknown), 0o600); err != nil {
		t.Fatal(err)
	}
	r.left = map[string]*savedChannel{"agent-1-1.ring": {Drops: 3, DropBytes: 100}}
	c, err := openChannel(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	p := r.process(c.key)
	p.dropped["ring"] = mem.Drop{Process: p.ID, Place: "ring", Records: 9, Bytes: 1100} // with six of the old reader
	r.continues(p, c)
	c.peek(true) // what is unknown
	r.drops(p, c)
	if got := p.dropped["ring"]; got.Records != 9+2+1 || got.Bytes != 1140 {
		t.Errorf("after an engine before: %+v, want 2 records and 40 bytes more, and what is unknown", got)
	}
}

// TestWhatTheHeapLibrarySees: an allocator behind the library hides nothing, one before it all but mappings.
func TestWhatTheHeapLibrarySees(t *testing.T) {
	r := newRecorder(&Options{ID: "x"}, memorySink{t, mem.NewRun()})
	for flags, want := range map[shm.HeapFlags]string{
		0: "sampled", shm.HeapForeignMalloc: "sampled",
		shm.HeapBypassed | shm.HeapForeignMalloc: "only mappings are seen: another allocator takes the other calls",
		shm.HeapNoPython:                         "sampled, native stacks: no Python in it",
	} {
		p := r.process(procKey{noProcess, 7})
		if p.heapFacts(shm.WriterStats{HeapFlags: flags}); p.facts["heap"] != want {
			t.Errorf("flags %d: %q", flags, p.facts["heap"])
		}
	}
}

// TestStepsOutOfOrder: a stranger's steps may come at any time and with any number.
func TestStepsOutOfOrder(t *testing.T) {
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x"}, sink)
	p := r.process(procKey{noProcess, 7})
	const steps = 2000
	for i := range uint64(steps) {
		r.step(p, &shm.Step{Time: shm.Time(1<<62 - i<<50), Step: i % 3, RSS: mem.Some(int64(i) << 20)})
	}
	p.growth.worthScanning(1 << 62)
	r.flush(true)
	if total := sink.run.Totals[p.ID].Steps; total != steps {
		t.Errorf("%d steps counted, %d told", total, steps)
	}
}

// TestSpokeBeforeItsEnd: a process that is gone before its channel was read is not called silent.
func TestSpokeBeforeItsEnd(t *testing.T) {
	sink := memorySink{t, mem.NewRun()}
	hello := ringText(`{"type":"hello","argv":["short.py"],"python":"3.11.7"}`)
	l := leftover(t, map[string][]byte{"agent-1-1.ring": ringFile(1, 0, uint64(len(hello)), hello)})
	r := newRecorder(&Options{ID: "x", Channels: l.Dir}, sink)
	p, mute := r.process(procKey{noProcess, 77}), r.process(procKey{noProcess + 1, 77})
	p.silent, mute.silent = "the agent did not start in it", "it is another Python"
	r.ended(p, 5)
	r.ended(mute, 5)
	if events := sink.run.Events; len(events) != 1 || !strings.Contains(events[0].Text, "another Python") {
		t.Errorf("events %+v: want the one of the process that never spoke", events)
	}
}

// TestCrashOfOneJustSeen: a process that crashed before its channel was looked at says by which signal, and where.
func TestCrashOfOneJustSeen(t *testing.T) {
	sink := memorySink{t, mem.NewRun()}
	hello := ringText(`{"type":"hello","argv":["short.py"],"python":"3.11.7"}`)
	crash := "Fatal Python error: Bus error\n\nCurrent thread 0x1 (most recent call first):\n  File \"short.py\", line 4 in f\n"
	l := leftover(t, map[string][]byte{"agent-1-1.ring": ringFile(1, 0, uint64(len(hello)), hello),
		"agent-1-1.crash": []byte(crash)})
	r := newRecorder(&Options{ID: "x", Channels: l.Dir}, sink)
	p := r.process(procKey{noProcess, 77})
	r.ended(p, 5)
	events := sink.run.Events
	if p.Signal != mem.Some(int64(syscall.SIGBUS)) || len(events) != 1 || events[0].Where == nil || events[0].Where.Line != 4 {
		t.Errorf("signal %v, events %+v", p.Signal, events)
	}
}

// TestChannelsAreReadOnce: a channel whose reading ended the program is left alone by the next
// command; one that could not be written is read again; one that is refused is named.
func TestChannelsAreReadOnce(t *testing.T) {
	step := ringRecord(4, 0, 4, 1, 10, 4096, 1, ^uint64(0))
	broken := append(bytes.Clone(step), ringRecord(4, 0, 5)...)
	broken[len(step)] = 0xf0 // longer than the ring is written
	l := leftover(t, map[string][]byte{"agent-1-1.ring": ringFile(1, 0, uint64(len(broken)), broken)})
	func() {
		defer func() { _ = recover() }()
		_ = Recover(l, mem.NewRun(), t.TempDir(), brokenSink{})
	}()
	sink := memorySink{t, mem.NewRun()}
	if err := Recover(l, mem.NewRun(), t.TempDir(), sink); err != nil || len(sink.run.Steps) != 0 || sink.run.End == nil {
		t.Errorf("after a crash: %v, %+v", err, sink.run)
	}
	if _, err := os.Stat(l.Dir); err == nil || len(sink.run.Events) != 1 {
		t.Errorf("the folder stays (%v), or nobody is told: %+v", err, sink.run.Events)
	}

	l = leftover(t, map[string][]byte{"agent-1-1.ring": ringFile(1, 0, uint64(len(broken)), broken)})
	if err := Recover(l, mem.NewRun(), t.TempDir(), fullSink{}); err == nil {
		t.Error("a full disk is not an error")
	}
	sink = memorySink{t, mem.NewRun()}
	if err := Recover(l, mem.NewRun(), t.TempDir(), sink); err != nil || len(sink.run.Steps) != 1 {
		t.Errorf("after a full disk: %v, steps %v", err, sink.run.Steps)
	}
	if events := sink.run.Events; len(events) != 1 || !strings.Contains(events[0].Text, "agent-1-1.ring") {
		t.Errorf("events %+v: want the channel that is refused", events)
	}
}

// fullSink takes nothing; brokenSink ends the program.
type (
	fullSink   struct{}
	brokenSink struct{ fullSink }
)

func (fullSink) Write(mem.Frame) error   { return errors.New("no space left") }
func (fullSink) Flush() error            { return nil }
func (brokenSink) Write(mem.Frame) error { panic("a defect of ours") }

// wireSink writes a recording as the store does.
type wireSink struct{ *wire.Writer }

// FuzzChannel takes a stranger's channel the whole way: from its file through one engine, which is then
// killed, and through the recovery of what that left. Every frame can be written and read again.
func FuzzChannel(f *testing.F) {
	for name, role := range map[string]uint32{"agent.ring": 1, "heap.ring": 2} {
		file, err := os.ReadFile(filepath.Join("../../testdata/channel", name))
		if err != nil {
			f.Fatal(err)
		}
		head := binary.LittleEndian.Uint64(file[64:])
		f.Add(file[shm.HeaderBytes:][:min(head, 2<<10)], role, uint64(0), min(head, 2<<10), role == 1)
	}
	alloc := ringRecord(65, 0, 6, 0xdead, 100, 200, 5, uint64(33)|1<<32, 1, 16)
	mapped := ringRecord(65, 0, 6, 0x7000, 8192, 8192, 5, uint64(33)|5<<48)
	unmap := ringRecord(66, 0, 7, 0x7800, 256)
	enter := ringRecord(2, 0, 8, 3, 1, 4096, 0, 0)
	leave := ringRecord(2, 0, 9, 3|1<<8, 1, 4096, 0, 0)
	step := ringRecord(4, 0, 1<<60, 1, 10, 4096, 1, ^uint64(0))
	early := ringRecord(4, 0, 5, 2, 10, 4096, 1, 9)
	series := ringText(`{"type":"series","id":5,"name":"torch.allocated","unit":"bytes","device":"cuda:0"}`)
	look := ringText(`{"type":"python_heap","files":["a.py"],"sites":[[4096,2,0,7]],"rest":[1,1],"own_bytes":9}`)
	count := ringRecord(3, 1, 3, 5, 50)
	for role, records := range map[uint32][][]byte{
		1: {alloc, step, early, enter, leave, series, count, look},
		2: {alloc, mapped, unmap, step},
	} {
		content := bytes.Join(records, nil)
		f.Add(content, role, uint64(testRing-64), uint64(testRing-64+len(content)), true)
		f.Add(content, role, uint64(0), uint64(len(content)), false)
	}
	f.Fuzz(func(t *testing.T, content []byte, role uint32, tail, head uint64, killed bool) {
		l := leftover(t, map[string][]byte{"any-1-1.ring": ringFile(role, tail, head, content)})
		out := t.TempDir()
		var recording bytes.Buffer
		writer, err := wire.NewWriter(&recording)
		if err != nil {
			t.Fatal(err)
		}
		first := mem.NewRun()
		if killed {
			first = recordChannel(t, l, out, wireSink{writer}, &recording)
		}
		if err := Recover(l, first, out, wireSink{writer}); err != nil {
			t.Fatal(err)
		}
		run, err := wire.Load(&recording)
		if err != nil || len(run.Damage) > 0 {
			t.Fatalf("the recording cannot be read: %v, %+v", err, run.Damage)
		}
		for _, s := range run.Series {
			for i := 1; i < len(s.Times); i++ {
				if s.Times[i] < s.Times[i-1] {
					t.Fatalf("series %s goes back in time: %v", s.Name, s.Times)
				}
			}
		}
	})
}

// recordChannel is the part of an engine that visits channels, until it is killed after a flush.
func recordChannel(t *testing.T, l Leftover, out string, sink Sink, recording *bytes.Buffer) *mem.Run {
	r := newRecorder(&Options{ID: l.ID, Label: mem.Measured, Channels: l.Dir, OutDir: out}, sink)
	r.scan()
	for _, p := range r.order {
		r.drain(p, false)
	}
	r.sampleHeap(r.now())
	r.flush(false)
	for _, p := range r.order {
		for _, c := range p.channels {
			c.close()
		}
	}
	run, err := wire.Load(bytes.NewReader(recording.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return run
}
