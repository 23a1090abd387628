package shm

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"unsafe"
)

// mapped reads a recorded channel into memory that is aligned as a mapping is.
func mapped(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, (len(content)+7)/8)
	mapping := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:len(content)]
	copy(mapping, content)
	return mapping
}

// heapVector is testdata/channel/heap.json: what another reader, in Python, finds in heap.ring, which
// the real library wrote.
type heapVector struct {
	Header struct {
		PID   int    `json:"pid"`
		Start uint64 `json:"process_start"`
		Ring  int    `json:"ring_bytes"`
		Mono  int64  `json:"created_mono_ns"`
	}
	Threads map[string]string
	Codes   []heapCode
	Events  []heapEvent
	Live    uint64 `json:"live_bytes"`
}

type heapCode struct {
	Code      uint32
	FirstLine int32 `json:"first_line"`
	Python    uint16
	Filename  string
	Name      string
	Table     int `json:"table_bytes"`
}

type heapEvent struct {
	Kind    string
	Time    int64 `json:"time_ns"`
	Address uint64
	Size    uint64
	Weight  uint64
	Word    uint64
	TID     uint32 `json:"tid"`
	Origin  string
	Flags   uint8
	Native  int `json:"native_frames"`
	Stack   []heapFrame
}

type heapFrame struct {
	Code  uint64
	Lasti int32
	Line  *int
}

var originNames = map[Origin]string{OriginMalloc: "malloc", OriginCalloc: "calloc", OriginRealloc: "realloc",
	OriginAligned: "aligned", OriginMmap: "mmap", OriginShared: "mmap-shared"}

func TestHeapVector(t *testing.T) {
	text, err := os.ReadFile("../../testdata/channel/heap.json")
	if err != nil {
		t.Fatal(err)
	}
	var want heapVector
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	c, err := Open(mapped(t, "../../testdata/channel/heap.ring"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Role != RoleHeap || c.PID != want.Header.PID || c.ProcessStart != want.Header.Start ||
		c.RingBytes != want.Header.Ring || c.CreatedMono != want.Header.Mono {
		t.Errorf("%+v", c.Header)
	}
	var got heapVector
	codes := map[uint64]Code{}
	live := map[uint64]uint64{}
	threads := 0
	err = read(c, true, func(r Record) {
		switch r := r.(type) {
		case *Code:
			got.Codes = append(got.Codes, heapCode{r.ID, r.FirstLine, r.Python, string(r.File), string(r.Name), len(r.Table)})
			kept := *r
			kept.Table = append([]byte(nil), r.Table...)
			codes[uint64(r.ID)] = kept
		case *Thread:
			threads++
			if want.Threads[jsonNumber(r.ID)] != string(r.Name) {
				t.Errorf("thread %d is called %q", r.ID, r.Name)
			}
		case *Alloc:
			got.Events = append(got.Events, event(r, codes))
			live[r.Address] = r.Weight
		case *Free:
			got.Events = append(got.Events, heapEvent{Kind: "free", Time: r.When(), Address: r.Address, Size: r.Size})
			if r.Size == 0 {
				delete(live, r.Address)
			}
		default:
			t.Errorf("a %T in a heap channel", r)
		}
	})
	if err != nil || c.Malformed+c.Unknown+c.Holes != 0 {
		t.Fatalf("%v, %+v", err, c.Stats)
	}
	for _, weight := range live {
		got.Live += weight
	}
	if threads != len(want.Threads) || got.Live != want.Live || !reflect.DeepEqual(got.Codes, want.Codes) {
		t.Errorf("%d threads, %d bytes live, codes %+v", threads, got.Live, got.Codes)
	}
	if len(got.Events) != len(want.Events) {
		t.Fatalf("%d events, want %d", len(got.Events), len(want.Events))
	}
	for i := range want.Events {
		w, g := want.Events[i], got.Events[i]
		if w.Kind == "free" {
			w.Stack = nil
		}
		if len(w.Stack) == 0 {
			w.Stack = nil
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("event %d: got %+v\nwant %+v", i, g, w)
		}
	}
}

func event(r *Alloc, codes map[uint64]Code) heapEvent {
	e := heapEvent{Kind: "alloc", Time: r.When(), Address: r.Address, Size: r.Size, Weight: r.Weight, Word: uint64(r.Word),
		TID: r.Thread, Origin: originNames[r.Origin]}
	if r.Truncated {
		e.Flags |= 1
	}
	if r.OtherStack {
		e.Flags |= 2
	}
	for _, f := range r.Frames {
		if f.Native {
			e.Native++
			continue
		}
		frame := heapFrame{Code: f.Where, Lasti: f.Lasti}
		code := codes[f.Where]
		if line, ok := Line(code.Python, code.Table, code.FirstLine, f.Lasti); ok {
			frame.Line = &line
		}
		e.Stack = append(e.Stack, frame)
	}
	return e
}

func jsonNumber(n uint32) string {
	text, _ := json.Marshal(n)
	return string(text)
}
