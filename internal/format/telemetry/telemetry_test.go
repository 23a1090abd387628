package telemetry

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hightide/internal/mem"
)

func read(t *testing.T, name string) *mem.Run {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if !Is(data[:min(len(data), 4096)]) {
		t.Fatalf("%s is not known", name)
	}
	run, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestStormlog reads what Stormlog 0.4.3 saved: of a process on the host, and of an imaginary A10 of 2 GiB that it
// took for one.
func TestStormlog(t *testing.T) {
	cpu := read(t, "stormlog-cpu.csv")
	rss := cpu.Find(1, mem.SeriesRSS)
	if rss == nil || len(rss.Values) != 48 || rss.Values[0] != 639377408 || cpu.Find(1, mem.SeriesAllocated) != nil {
		t.Errorf("host: %+v", rss)
	}
	if p := cpu.Process(1); p.PID != 10251 || cpu.Info.Host.Name != "vm" || cpu.Info.StartWall != 1795380314047807488 {
		t.Errorf("of whom: %+v, %+v", p, cpu.Info)
	}
	gpu := read(t, "stormlog-gpu.json")
	allocated, used := gpu.Find(1, mem.SeriesAllocated), gpu.Find(0, mem.SeriesDeviceUsed)
	if allocated == nil || allocated.Values[allocated.Peak()] != 6<<28 || allocated.Device != "gpu:0" || used == nil ||
		gpu.Find(1, mem.SeriesRSS) != nil {
		t.Errorf("device: %+v, %+v", allocated, used)
	}
	alerts := 0
	for _, e := range gpu.Events {
		if e.Kind == "alert" {
			alerts++
		}
	}
	if memory, ok := gpu.Info.Host.GPUs[0].Memory.Get(); alerts == 0 || !ok || memory <= 0 {
		t.Errorf("%d limits were passed, GPUs %+v", alerts, gpu.Info.Host.GPUs)
	}
}

// TestColumns reads tfmemprof's columns, as its track command saves them.
func TestColumns(t *testing.T) {
	run, err := Read(strings.NewReader(`{"peak_memory": 3.5, "memory_usage": [1.0, 3.5], "timestamps": [1795380314.5, 1795380315.5], "alerts": []}`))
	if err != nil {
		t.Fatal(err)
	}
	s := run.Find(1, mem.SeriesAllocated)
	if want := []int64{1 << 20, 7 << 19}; !reflect.DeepEqual(s.Values, want) || s.Times[1]-s.Times[0] != 1e9 {
		t.Errorf("%v at %v, want %v", s.Values, s.Times, want)
	}
}

// TestRoundTrip: what is written reads as it was, in both forms.
func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"stormlog-cpu.csv", "stormlog-gpu.json"} {
		first := read(t, name)
		for form, write := range map[string]func(*bytes.Buffer, *mem.Run) error{
			"json": func(b *bytes.Buffer, r *mem.Run) error { return WriteJSON(b, r) },
			"csv":  func(b *bytes.Buffer, r *mem.Run) error { return WriteCSV(b, r) },
		} {
			var text bytes.Buffer
			if err := write(&text, first); err != nil {
				t.Fatal(err)
			}
			again, err := Read(bytes.NewReader(text.Bytes()))
			if err != nil {
				t.Fatalf("%s as %s: %v", name, form, err)
			}
			for _, q := range []mem.Quantity{mem.SeriesTreeRSS, mem.SeriesAllocated, mem.SeriesReserved, mem.SeriesDeviceUsed} {
				a, b := find(first, q), find(again, q)
				if (a == nil) != (b == nil) || a != nil &&
					!(reflect.DeepEqual(a.Values, b.Values) && reflect.DeepEqual(a.Times, b.Times)) {
					t.Errorf("%s as %s: %s differs: %+v, %+v", name, form, q, a, b)
				}
			}
		}
	}
}

func find(r *mem.Run, name mem.Quantity) *mem.Series {
	for _, s := range r.Series {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// TestRefused: each says which event is wrong.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                 "no readings",
		`[{"allocator_allocated_bytes": 5}]`: "event 1: it has no time",
		`[{"timestamp_ns": 5, "allocator_allocated_bytes": -5}]`:                                  "event 1: -5 bytes is not a size",
		`[{"timestamp_ns": 5}, {"timestamp_ns": "x"}]`:                                            "event 2",
		`[{"timestamp_ns": 5}`:                                                                    "EOF",
		`{"memory_usage": [1], "timestamps": []}`:                                                 "1 sizes but 0 times",
		`{"memory_usage": [1e300], "timestamps": [1]}`:                                            "is not a size",
		"timestamp_ns,allocator_allocated_bytes\n1,x\n":                                           "line 2: allocator_allocated_bytes",
		"timestamp,memory_allocated\n-1,5\n":                                                      "event 1: it has no time",
		`[{"timestamp_ns": 9223372036854775807, "allocator_allocated_bytes": 72057594037927937}]`: "is not a size",
	} {
		if run, err := Read(strings.NewReader(text)); err == nil || run != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzTelemetry: a recording or an error, never both; what was read can be written and read again.
func FuzzTelemetry(f *testing.F) {
	for _, name := range []string{"stormlog-cpu.csv", "stormlog-gpu.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"memory_usage": [1.5], "timestamps": [2]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := Read(bytes.NewReader(data))
		if (run == nil) == (err == nil) {
			t.Fatalf("%v, %v", run, err)
		}
		if run == nil || len(Events(run)) == 0 {
			return
		}
		var text bytes.Buffer
		if err := WriteJSON(&text, run); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&text); err != nil {
			t.Fatal(err)
		}
	})
}
