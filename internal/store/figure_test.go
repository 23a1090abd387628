package store_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestRowsAreOfTheRecording: what is listed of a run follows from its recording, to the byte, whatever became of the
// index: as its writer left it, made anew, lost, and of a folder that was moved. Its figure and its end are those of
// its report.
func TestRowsAreOfTheRecording(t *testing.T) {
	known, err := filepath.Glob("../../testdata/recording/*.hightide")
	if err != nil || len(known) < 6 {
		t.Fatalf("%d recordings, %v", len(known), err)
	}
	data := map[string]map[string]string{}
	dir := filepath.Join(t.TempDir(), "live")
	s := store.OpenFiles(dir)
	for seed := range uint64(60) {
		must(t, anyRun(s, rand.New(rand.NewPCG(seed, 1)), fmt.Sprintf("run%d", seed)))
	}
	must(t, s.Close())
	data["as its writer left it"] = rows(t, dir, "")
	must(t, os.Remove(filepath.Join(dir, "index.sqlite")))
	data["with a lost index"] = rows(t, dir, "")
	s = store.OpenFiles(dir)
	must(t, s.Reindex(nil))
	must(t, s.Close())
	data["made anew"] = rows(t, dir, "")
	moved := filepath.Join(t.TempDir(), "moved")
	must(t, os.Rename(dir, moved))
	data["of a moved folder"] = rows(t, moved, dir)
	for what, got := range data {
		for id, row := range data["as its writer left it"] {
			if got[id] != row {
				t.Errorf("%s: %s\nas its writer left it: %s", what, got[id], row)
			}
		}
	}
	for _, path := range known {
		id := filepath.Base(path[:len(path)-len(".hightide")])
		must(t, os.MkdirAll(filepath.Join(moved, "runs", id), 0o700))
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(moved, "runs", id, store.Recording), text, 0o600))
	}
	sayTheSame(t, moved)
}

// sayTheSame compares every row with the report of its run.
func sayTheSame(t *testing.T, dir string) {
	s := store.OpenFiles(dir)
	defer s.Close()
	all, err := s.List(store.Filter{})
	must(t, err)
	for _, row := range all {
		_, run, err := store.Load(s, row.ID)
		must(t, err)
		report := analyze.Analyze(run, analyze.Options{})
		head, peak := report.Headline, report.Headline.Peak
		if head.Figure != row.Figure || head.Ended != row.Ended {
			t.Errorf("%s is listed as %+v, %+v; its report says %+v, %+v", row.ID, row.Figure, row.Ended, head.Figure,
				head.Ended)
		}
		if row.Allocated != peak.Allocated || row.Reserved != peak.Reserved || row.Device != peak.DeviceUsed {
			t.Errorf("%s is listed with %v allocated, %v reserved, %v of devices; its report says %v, %v, %v", row.ID,
				row.Allocated, row.Reserved, row.Device, peak.Allocated, peak.Reserved, peak.DeviceUsed)
		}
	}
	if len(all) < 66 {
		t.Errorf("%d runs", len(all))
	}
}

// rows are those of a folder by id, as JSON; moved from a folder that they then name.
func rows(t *testing.T, dir, from string) map[string]string {
	t.Helper()
	s := store.OpenFiles(dir)
	defer s.Close()
	all, err := s.List(store.Filter{})
	must(t, err)
	texts := map[string]string{}
	for _, row := range all {
		if from != "" {
			row.Dir, row.File = filepath.Join(from, "runs", row.ID), filepath.Join(from, "runs", row.ID, store.Recording)
		}
		text, err := json.Marshal(row)
		must(t, err)
		texts[row.ID] = string(text)
	}
	return texts
}

// anyRun records a run of a random kind: of one process or several, on a device or none, that ends in any way or not
// at all.
func anyRun(s store.Store, random *rand.Rand, id string) error {
	some := func(n int) bool { return random.IntN(n) == 0 }
	info := mem.RunInfo{ID: id, Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"},
		StartMono: 1e9, StartWall: 1e18 + random.Int64N(1e9)}
	if some(4) {
		info.Verb, info.Label = "imagine", mem.Imagined
	}
	w, err := s.Create(info)
	if err != nil {
		return err
	}
	frames := []mem.Frame{info}
	for p := range uint32(1 + random.IntN(4)) {
		process := mem.Process{ID: p + 1, PID: 10 + int(p), Start: 1e9 + int64(p),
			Role: map[bool]string{true: "main"}[p == 0]}
		if some(2) {
			process.End, process.MaxRSS = mem.Some(process.Start+random.Int64N(3e9)), mem.Some(random.Int64N(1<<30))
		}
		frames = append(frames, process, mem.StepTotal{Process: p + 1, Steps: random.Uint64N(50)})
	}
	series := uint32(0)
	for _, name := range []mem.Quantity{mem.SeriesTreeRSS, mem.SeriesTreePSS, mem.SeriesTreePSSError,
		mem.SeriesTreeShared, mem.SeriesTreeSegments, mem.SeriesRSS,
		mem.SeriesReserved, mem.SeriesAllocated, mem.SeriesDeviceProcess, mem.SeriesDeviceUsed} {
		if name.OfDevice() && !some(6) || some(4) {
			continue
		}
		series++
		def := mem.SeriesDef{ID: series, Name: name, Unit: mem.UnitBytes, Label: mem.Measured}
		if name == mem.SeriesRSS || name.OfDevice() {
			def.Process = 1
		}
		frames = append(frames, def)
		for chunk := range 1 + random.IntN(4) {
			f := mem.Samples{Series: series}
			for i := range 1 + random.IntN(12) {
				f.Times, f.Values = append(f.Times, 1e9+int64(chunk)*2e9+int64(i)*1e8), append(f.Values, random.Int64N(1<<32))
			}
			frames = append(frames, f)
		}
	}
	frames = append(frames, anyEnd(random)...)
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			return err
		}
		if some(3) {
			_ = w.Flush()
		}
	}
	if _, err := s.Attach(w.ID(), "notes.txt", func(to io.Writer) error {
		_, err := io.WriteString(to, "x")
		return err
	}); err != nil {
		return err
	}
	return w.Close()
}

// anyEnd is how a run ends, or nothing.
func anyEnd(random *rand.Rand) (frames []mem.Frame) {
	if random.IntN(3) == 0 {
		frames = append(frames, mem.Event{Time: 2e9, Process: 1, Kind: "oom", Text: "CUDA out of memory",
			Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}})
	}
	switch random.IntN(3) {
	case 0:
		frames = append(frames, mem.Event{Time: 3e9, Process: 1, Kind: "exception", Text: "list index out of range",
			Facts: map[string]string{"class": "IndexError"}})
	case 1:
		frames = append(frames, mem.Event{Time: 3e9, Process: 1, Kind: "kill", Text: "killed by the kernel"})
	}
	switch random.IntN(5) {
	case 0:
		frames = append(frames, mem.End{Time: 9e9, ExitCode: mem.Some(0), Reason: "exit"})
	case 1:
		frames = append(frames, mem.End{Time: 9e9, ExitCode: mem.Some(1), Reason: "exit"})
	case 2:
		frames = append(frames, mem.End{Time: 9e9, Signal: mem.Some(9), Reason: "signal"})
	case 3:
		frames = append(frames, mem.End{Time: 9e9, Reason: "recovered"})
	}
	if random.IntN(2) == 0 {
		frames = append(frames, mem.Found{Findings: random.IntN(5)})
	}
	return frames
}
