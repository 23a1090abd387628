package format

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hightide/internal/format/smaps"
	"hightide/internal/mem"
)

func real(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/real", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pythonFor runs a line of Python over a pickled snapshot `s` and returns what it prints.
func pythonFor(t testing.TB, path, line string) []byte {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to write snapshots with")
	}
	out, err := exec.Command(python, "-c", "import pickle, json, sys\ns = pickle.load(open(sys.argv[1], 'rb'))\n"+line,
		path).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	return out
}

// TestWrappings: compressed, as JSON, and in every protocol, a snapshot reads as the file itself.
func TestWrappings(t *testing.T) {
	const name = "mosaic-synthetic.pickle"
	path := filepath.Join("../../testdata/real", name)
	plain := real(t, name)
	want, err := Decode(bytes.NewReader(plain), name)
	if err != nil {
		t.Fatal(err)
	}
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(plain)
	w.Close()
	encoder, _ := zstd.NewWriter(nil)
	zst := encoder.EncodeAll(plain, nil)
	cases := map[string][]byte{"gzip": gz.Bytes(), "zstd": zst, "zstd in gzip": gzipped(zst),
		"json": pythonFor(t, path, "json.dump(s, sys.stdout)")}
	for _, protocol := range []string{"0", "1", "2", "3", "4", "5"} {
		cases["protocol "+protocol] = pythonFor(t, path, "sys.stdout.buffer.write(pickle.dumps(s, "+protocol+"))")
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(bytes.NewReader(data), name)
			if err != nil {
				t.Fatal(err)
			}
			if sums(got.Snapshot) != sums(want.Snapshot) {
				t.Errorf("got %+v, want %+v", sums(got.Snapshot), sums(want.Snapshot))
			}
		})
	}
}

// sums are what two snapshots that say the same have in common.
func sums(s *mem.AllocatorSnapshot) (out struct {
	totals                   mem.AllocatorTotals
	events, stacks, segments int
	bytes                    mem.Bytes
}) {
	out.totals, out.stacks, out.segments = s.Totals(-1), s.Stacks.Len(), len(s.Segments)
	for i := range s.Traces {
		out.events += s.Traces[i].Len()
		for _, size := range s.Traces[i].Size {
			out.bytes += size
		}
	}
	return out
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

func TestUnknown(t *testing.T) {
	for _, text := range []string{"hello\n", "\x00\x01\x02", `{"a": 1}`, "PK\x03\x04"} {
		if d, err := Decode(strings.NewReader(text), "x"); !errors.Is(err, ErrUnknown) || d != nil {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	if d, err := Decode(bytes.NewReader(gzipped([]byte("hello"))), "x"); !errors.Is(err, ErrUnknown) {
		t.Errorf("compressed nothing: %v, %v", d, err)
	}
	for _, empty := range [][]byte{nil, gzipped(nil)} {
		if d, err := Decode(bytes.NewReader(empty), "x"); !errors.Is(err, ErrEmpty) || d != nil {
			t.Errorf("empty: %v, %v", d, err)
		}
	}
}

// TestBehindTheEnd: what follows a whole compressed file is left out and said. Zeros are a tape's padding, a further
// part is read, and only what lacks its end "ends in the middle".
func TestBehindTheEnd(t *testing.T) {
	file, err := os.ReadFile("../../testdata/imagined/old-2.0.pickle")
	if err != nil {
		t.Fatal(err)
	}
	encoder, _ := zstd.NewWriter(nil)
	zipped, zst := gzipped(file), encoder.EncodeAll(file, nil)
	parts := append(gzipped(file[:5000]), gzipped(file[5000:])...)
	const page = "<html>an answer of some server</html>"
	with := func(data []byte, behind string) []byte { return append(bytes.Clone(data), behind...) }
	for name, test := range map[string]struct {
		data []byte
		said string // by a note
	}{
		"gzip":                {zipped, ""},
		"gzip, zeros":         {with(zipped, "\x00\x00\x00\x00"), ""},
		"gzip, a few bytes":   {with(zipped, "ab\n"), "is no part of it"},
		"gzip, one byte":      {with(zipped, "\x1f"), "is no part of it"},
		"gzip, more":          {with(zipped, page), "is no part of it"},
		"two parts":           {parts, ""},
		"two parts, more":     {with(parts, page), "is no part of it"},
		"zstd, more":          {with(zst, page), "is no part of it"},
		"zstd in gzip, more":  {with(gzipped(zst), page), "is no part of it"},
		"zstd, more, in gzip": {gzipped(with(zst, page)), "is no part of it"},
	} {
		d, err := Decode(bytes.NewReader(test.data), "x")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if said := strings.Join(d.Snapshot.Notes, " "); strings.Contains(said, "is no part of it") != (test.said != "") {
			t.Errorf("%s: notes %q", name, said)
		}
	}
	for name, data := range map[string][]byte{"gzip": zipped[:len(zipped)-3], "a second part": parts[:len(parts)-3],
		"its header": with(zipped, "\x1f\x8b\x08"),
		"its magic":  with(zipped, gzipMagic), "zstd": zst[:len(zst)-3]} {
		if _, err := Decode(bytes.NewReader(data), "x"); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
}

// TestDamagedCompression: what was decompressed is held against the checksum at the end, which no decoder reads.
func TestDamagedCompression(t *testing.T) {
	file, err := os.ReadFile("../../testdata/imagined/old-2.0.pickle")
	if err != nil {
		t.Fatal(err)
	}
	whole := gzipped(file)
	for at := len(whole) - 8; at < len(whole); at++ {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1
		if _, err := Decode(bytes.NewReader(damaged), "x"); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
	if _, err := Decode(bytes.NewReader(whole[:len(whole)-4]), "x"); err == nil {
		t.Error("a file without all of its checksum is read")
	}
}

// TestSmaps compares this process's own smaps with the sums that the kernel gives.
func TestSmaps(t *testing.T) {
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("this kernel has no smaps")
	}
	d, err := Decode(bytes.NewReader(data), "smaps")
	if err != nil {
		t.Fatal(err)
	}
	var rss, told, count int64
	names := map[string]bool{}
	for _, m := range d.Mappings.List {
		rss += m.RSS.Or(0)
		count += m.Count
		if names[m.Name] {
			t.Errorf("%q twice", m.Name)
		}
		names[m.Name] = true
	}
	for _, line := range bytes.Split(data, []byte("\n")) {
		if kilo, ok := bytes.CutPrefix(line, []byte("Rss:")); ok {
			n, _ := strconv.ParseInt(strings.Fields(string(kilo))[0], 10, 64)
			told += n * 1024
		}
	}
	if n := bytes.Count(data, []byte("\nRss:")); count != int64(n) || rss != told || told < int64(mem.MiB) ||
		!names["[stack]"] {
		t.Errorf("%d mappings of %d, RSS %d of %d, names %v", count, n, rss, told, names)
	}
	text := "00400000-7ffe ---p 00000000 00:00 0    [rollup]\nRss: 1 kB\n"
	if _, err := smaps.Read(strings.NewReader(text)); err == nil {
		t.Error("a mapping that ends before it begins was accepted")
	}
	for _, bad := range []string{"Rss: 1 kB\n", "1000-2000 r--p 0 0:0 0\nRss: -1 kB\n",
		"1000-2000 r--p 0 0:0 0\nRss: 1 MB\n", "1000-2000 r--p 0 0:0 0\nwhat\n"} {
		if _, err := smaps.Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestSchemas reads what each version of PyTorch writes differently.
func TestSchemas(t *testing.T) {
	frame := `{"filename": "train.py", "line": 7, "name": "step"}`
	event := func(extra string) string {
		return `{"action": "alloc", "addr": 4096, "size": 500, "stream": 0, "frames": [` + frame + `]` + extra + `}`
	}
	snapshot := func(events, blocks, rest string) string {
		return `{"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 512, "active_size": 512, "stream": 0,
			"segment_type": "small", "blocks": [` + blocks + `]}], "device_traces": [[` + events + `]]` + rest + `}`
	}
	oldBlock := `{"size": 512, "state": "active_allocated", "history": [{"addr": 4096, "real_size": 500, "frames": [` +
		frame + `]}]}, {"size": 2096640, "state": "inactive"}`
	block := `{"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": [` + frame +
		`]}, {"address": 4608, "size": 2096640, "requested_size": 77, "state": "inactive", "frames": []}`
	annotations := `, "external_annotations": [{"name": "opt", "stage": "START", "device": 0, "time_us": 3}, {"name": "opt", "stage": "END", "device": 0, "time_us": 4}]`
	for _, test := range []struct {
		name, text, versions string
		check                func(s *mem.AllocatorSnapshot) bool
	}{
		{"2.0", snapshot(event(""), oldBlock, ""), "2.0 or older",
			func(s *mem.AllocatorSnapshot) bool { return s.Traces[0].Time == nil }},
		{"2.1", snapshot(event(""), block, ""), "2.1 or older", nil},
		{"2.3", snapshot(event(`, "time_us": 5`), block, ""), "2.2 to 2.4",
			func(s *mem.AllocatorSnapshot) bool { return s.Traces[0].Time[0] == 5000 }},
		{"2.6", snapshot(event(`, "time_us": 5`), block, annotations), "2.5 to 2.7",
			func(s *mem.AllocatorSnapshot) bool { return len(s.Annotations) == 2 && s.Annotations[1].End }},
		{"2.9", snapshot(event(`, "time_us": 5, "compile_context": "Torch-Compiled Region: 0/0"`), block, annotations), "2.8 to 2.9",
			func(s *mem.AllocatorSnapshot) bool {
				return s.Text(s.Traces[0].Context[0]) == "Torch-Compiled Region: 0/0"
			}},
		{"2.10", snapshot(event(`, "time_us": 5, "compile_context": "N/A", "user_metadata": {"step": 3}`), block,
			annotations), "2.10 to 2.12",
			func(s *mem.AllocatorSnapshot) bool {
				return s.Text(s.Traces[0].Metadata[0]) == "step:3" && s.Traces[0].Context == nil
			}},
		{"2.13", snapshot(event(`, "time_us": 5, "compile_context": "N/A", "user_metadata": ""`), block,
			annotations+`, "allocator_settings": {"max_round_threshold": -1, "roundup_power2_divisions": {"1": 0, "2": 4}}`), "2.13",
			func(s *mem.AllocatorSnapshot) bool { return s.Settings["roundup_power2_divisions"] == "1:0,2:4" }},
		{"2.15", snapshot(event(`, "time_us": 5, "pool_id": [0, 3], "forward_frames": ["  File \"m.py\", line 12, in forward\n    x = y"], "internal_metadata": "mallocWithAddress"`), block,
			`, "host_segments": [{"device": -1, "address": 1, "total_size": 10, "blocks": []}], "host_traces": [`+event(`, "time_us": 1`)+`]`), "2.14 or later",
			func(s *mem.AllocatorSnapshot) bool {
				trace := s.Traces[0]
				forward := s.Stacks.Frames(trace.Forward[0])
				return trace.Pool[0] == mem.PoolID{0, 3} && forward[0].File == "m.py" && forward[0].Line == 12 &&
					s.Text(trace.Internal[0]) == "mallocWithAddress" &&
					len(s.HostSegments) == 1 && s.HostTraces[0].Device == -1
			}},
		{"profiler", `{"device_traces": [[` + event(`, "category": "gradient"`) +
			`], []], "segments": [{"device": 1, "address": 0, "total_size": 30, "stream": 0, "blocks": [{"size": 30, "state": "inactive"}]}]}`, "2.1 or older",
			func(s *mem.AllocatorSnapshot) bool { return s.Text(s.Traces[0].Category[0]) == "gradient" }},
		{"bare list", `[{"device": 0, "address": 4096, "total_size": 2097152, "stream": 0, "segment_type": "small", "blocks": [` + block + `]}]`, "", nil},
		{"unknown keys", snapshot(event(`, "colour": "red", "time_us": 5`), block, annotations+`, "weather": []`),
			"2.5 to 2.7",
			func(s *mem.AllocatorSnapshot) bool {
				return reflect.DeepEqual(s.Unknown, []string{"event.colour", "weather"})
			}},
		{"generated code", snapshot(strings.Replace(event(`, "time_us": 5`), `"step"}`,
			`"step", "fx_node_op": "call_function", "fx_node_name": "mm", "fx_node_target": null}`, 1), block, annotations), "2.5 to 2.7",
			func(s *mem.AllocatorSnapshot) bool { return len(s.FX) == 1 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			document, err := Decode(strings.NewReader(test.text), test.name)
			if err != nil {
				t.Fatal(err)
			}
			s := document.Snapshot
			if s.Versions.String() != test.versions || test.check != nil && !test.check(s) {
				text, _ := json.Marshal(s)
				t.Errorf("versions %q, want %q: %s", s.Versions, test.versions, text)
			}
			if test.name != "unknown keys" && len(s.Unknown) > 0 {
				t.Errorf("unknown %v", s.Unknown)
			}
			if totals := s.Totals(0); test.name != "profiler" &&
				(totals.Requested != 500 || totals.Allocated != 512 || totals.Reserved != 2*mem.MiB) {
				t.Errorf("totals %+v", totals)
			}
		})
	}
}

// TestReadFormatsAreDocumented: what is read has a row that says how to make one.
func TestReadFormatsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/intake.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats {
		if f.Reads != "" && !bytes.Contains(page, []byte("\n| `"+f.Name+"` |")) {
			t.Errorf("docs/formats/intake.md has no row of %s", f.Name)
		}
	}
}
