package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/analyze/trace"
	"hightide/internal/format/stacks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

var update = flag.Bool("update", false, "rewrite golden files")

func snapshotFile(t testing.TB, path string) *mem.AllocatorSnapshot {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d, err := Decode(file, path)
	if err != nil {
		t.Fatal(err)
	}
	return d.Snapshot
}

// tiny has one of everything: two devices, a pool, an annotation, an OOM, metadata, an address from
// 2^63 on, a stack without frames.
func tiny(t testing.TB) *mem.AllocatorSnapshot { return snapshotFile(t, "testdata/tiny.json") }

func written(t testing.TB, f Format, from Source, table *Table) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.Write(&out, from, table); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSnapshotFormats is what every format keeps, of a snapshot and of a profile. It changes nothing,
// says when it cannot write, gives the same each time, and, where it is text, the golden file.
func TestSnapshotFormats(t *testing.T) {
	for _, f := range Formats {
		for _, kind := range []Kinds{Snapshots, Profiles} {
			if f.Takes&kind == 0 {
				continue
			}
			tables := []*Table{nil}
			if f.Tables {
				tables = TablesOf(Snapshots)
			}
			for _, table := range tables {
				name := f.Name
				if table != nil {
					name += "-" + table.Name
				}
				if kind == Profiles {
					name += "-profile"
				}
				t.Run(name, func(t *testing.T) { checkFormat(t, f, kind, table, name) })
			}
		}
	}
}

func checkFormat(t *testing.T, f Format, kind Kinds, table *Table, name string) {
	source := func() Source {
		if kind == Profiles {
			return Source{Profile: OfSnapshot(tiny(t))}
		}
		return Source{Snapshot: tiny(t)}
	}
	from := source()
	first := written(t, f, from, table)
	if !reflect.DeepEqual(from, source()) {
		t.Error("the source was changed")
	}
	if !bytes.Equal(first, written(t, f, from, table)) {
		t.Error("two exports differ")
	}
	for _, room := range []int{0, 10} {
		if err := f.Write(&fullAfter{room}, from, table); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	if private := written(t, f, from.Redact(), table); bytes.Contains(private, []byte("alice")) {
		t.Error("redacted, but holds a folder of alice")
	}
	if !reflect.DeepEqual(from, source()) {
		t.Error("redaction changed the source")
	}
	readsBack(t, f, from, table)
	if !f.Binary {
		golden(t, name, first)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s:\n%s", path, got)
	}
}

// TestPprofTool opens a profile of a real H100 training step in go tool pprof.
func TestPprofTool(t *testing.T) {
	s := snapshotFile(t, "../../testdata/real/h100-lm-ctx128-train-step.pickle")
	path := filepath.Join(t.TempDir(), "peak.pb.gz")
	if err := os.WriteFile(path, written(t, *Find("pprof"), Source{Snapshot: s}, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-sample_index=space", "-unit=B", "-cum", "-top", "-nodecount=4000",
		"-nodefraction=0", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	total := usage.FromTrace(s, 0, usage.Whole).Peak.Bytes
	text := string(out)
	if !strings.Contains(text, "Type: space") || !strings.Contains(text, "100% of "+digits(int64(total))+"B total") ||
		!strings.Contains(text, "run_memory_foward_fullstep") || !strings.Contains(text, "<module>") ||
		strings.Contains(text, "unwind::unwind") {
		t.Errorf("want all of %d bytes:\n%.2000s", int64(total), text)
	}
	back, err := Decode(bytes.NewReader(written(t, *Find("pprof"), Source{Snapshot: s}, nil)), "peak")
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, sample := range back.Profile.Samples {
		sum += sample.Values[back.Profile.Default]
	}
	if sum != int64(total) {
		t.Errorf("read back: %d bytes, want %d", sum, int64(total))
	}
}

func digits(n int64) string { text, _ := json.Marshal(n); return string(text) }

// TestPeakWays: every format that sums the peak sums it to the same bytes.
func TestPeakWays(t *testing.T) {
	s := snapshotFile(t, "../../testdata/real/h100-lm-ctx256-forward-bf16.pickle")
	want := int64(usage.FromTrace(s, 0, usage.Whole).Peak.Bytes)
	var folded int64
	for line := range strings.Lines(string(written(t, *Find("folded"), Source{Snapshot: s}, nil))) {
		var n int64
		if err := json.Unmarshal([]byte(line[strings.LastIndexByte(line, ' '):]), &n); err != nil {
			t.Fatal(err)
		}
		folded += n
	}
	rows, err := csv.NewReader(bytes.NewReader(written(t, *Find("csv"), Source{Snapshot: s},
		FindTable(Snapshots, "peak")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var table int64
	for _, row := range rows[1:] {
		var n int64
		_ = json.Unmarshal([]byte(row[slices.Index(rows[0], "size_bytes")]), &n)
		table += n
	}
	var counters int64
	var trace struct {
		TraceEvents []struct {
			Name string
			Args struct{ Value int64 }
		}
	}
	if err := json.Unmarshal(written(t, *Find("perfetto"), Source{Snapshot: s}, nil), &trace); err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.TraceEvents {
		if e.Name == "allocated (bytes)" {
			counters = max(counters, e.Args.Value)
		}
	}
	if folded != want || table != want || counters != want {
		t.Errorf("folded %d, table %d, counters %d, want %d", folded, table, counters, want)
	}
}

func explained(t *testing.T, s *mem.AllocatorSnapshot, file string, o trace.Options) *report.Report {
	t.Helper()
	x := trace.Explaining{Report: report.New(), Options: o}
	if err := x.Add(trace.File{AllocatorSnapshot: s, Name: file}); err != nil {
		t.Fatal(err)
	}
	return x.Report
}

// TestMeasures: each measure of the folded stacks sums to that of the report's flame graph, to the byte.
func TestMeasures(t *testing.T) {
	for _, file := range []string{"real/h100-lm-ctx128-train-step.pickle", "imagined/every-field-2.15.pickle"} {
		s := snapshotFile(t, "../../testdata/"+file)
		r := explained(t, s, file, trace.Options{Pictures: true})
		for m, measure := range report.Flames {
			var want, got int64
			for _, flames := range r.Stacks {
				if flames.Number == mem.Some(int64(mem.HostDevice)) { // profiles are of devices
					continue
				}
				want += flames.Measures[m].Total
			}
			for line := range strings.Lines(string(written(t, *Find("folded"), Source{Snapshot: s, Measure: measure}, nil))) {
				n, err := strconv.ParseInt(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
			if got != want || want == 0 {
				t.Errorf("%s by %s: folded %d, flame graph %d", file, measure, got, want)
			}
		}
	}
	if err := (Source{Snapshot: tiny(t), Measure: "byte"}).CheckMeasure(); err == nil || !strings.Contains(err.Error(), "blocks, bytes, bytes-time, count, churn") {
		t.Errorf("a measure that is none: %v", err)
	}
}

// TestSpeedscopeSchema checks a real file against the rules of the format's schema.
func TestSpeedscopeSchema(t *testing.T) {
	s := snapshotFile(t, "../../testdata/real/h100-lm-ctx128-train-step.pickle")
	decoder := json.NewDecoder(bytes.NewReader(written(t, *Find("speedscope"), Source{Snapshot: s}, nil)))
	decoder.DisallowUnknownFields()
	var file stacks.SpeedscopeFile
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Schema != "https://www.speedscope.app/file-format-schema.json" || len(file.Profiles) != len(usage.Kinds) ||
		file.Profiles[1].Unit != "bytes" || file.Active != 1 {
		t.Errorf("%s, %d profiles", file.Schema, len(file.Profiles))
	}
	for _, p := range file.Profiles {
		var sum int64
		for i, stack := range p.Samples {
			sum += p.Weights[i]
			for _, frame := range stack {
				if int(frame) >= len(file.Shared.Frames) || file.Shared.Frames[frame].Name == "" {
					t.Fatalf("frame %d of %d", frame, len(file.Shared.Frames))
				}
			}
		}
		if len(p.Samples) != len(p.Weights) || p.Type != "sampled" || p.Start != 0 || p.End != sum || sum == 0 {
			t.Errorf("%s: %d stacks, %d weights, ends at %d, want %d", p.Name, len(p.Samples), len(p.Weights), p.End, sum)
		}
	}
}

// TestTorchRoundTrip: a snapshot that was written again is to Python what it was, except for what
// files say of inactive blocks, which is stale.
func TestTorchRoundTrip(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to compare with")
	}
	files, _ := filepath.Glob("../../testdata/real/*.pickle")
	fields, _ := filepath.Glob("../../testdata/imagined/every-field-*.pickle")
	if len(files) < 3 || len(fields) == 0 {
		t.Fatalf("%d real files, %d with every field", len(files), len(fields))
	}
	for _, path := range append(files, fields...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			again := filepath.Join(t.TempDir(), "again.pickle")
			if err := os.WriteFile(again, written(t, *Find("torch-pickle"), Source{Snapshot: snapshotFile(t, path)}, nil),
				0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(python, "testdata/same_snapshot.py", path, again).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestTorchReads has PyTorch's own tools read a snapshot written here.
func TestTorchReads(t *testing.T) {
	python := testkit.Torch(t)
	const path = "../../testdata/real/h100-lm-ctx128-train-step.pickle"
	again := filepath.Join(t.TempDir(), "again.pickle")
	if err := os.WriteFile(again, written(t, *Find("torch-pickle"), Source{Snapshot: snapshotFile(t, path)}, nil),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "testdata/torch_reads.py", path, again).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
