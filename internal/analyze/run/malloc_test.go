package run

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// recordCounts is a process whose resident set and malloc's free bytes are as given, in MiB, a second apart.
func recordCounts(t *testing.T, rss, free, resident []int64) *mem.Run {
	t.Helper()
	run := mem.NewRun()
	frames := []mem.Frame{mem.Process{ID: 1, PID: 10, Role: "main", Start: 1}}
	for id, s := range []struct {
		name   mem.Quantity
		values []int64
		late   int64
	}{{mem.SeriesRSS, rss, 0}, {mem.SeriesTreeRSS, rss, 0}, {mem.SeriesMallocFree, free, -1e8},
		{mem.SeriesMallocResident, resident, -1e8}} {
		def := mem.SeriesDef{ID: uint32(id + 1), Name: s.name, Unit: mem.UnitBytes, Label: mem.Measured}
		if s.name != mem.SeriesTreeRSS {
			def.Process = 1
		}
		frames = append(frames, def)
		for i, v := range s.values {
			frames = append(frames, mem.Samples{Series: def.ID, Times: []int64{int64(i+1)*1e9 + s.late},
				Values: []int64{v << 20}})
		}
	}
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// TestMappedFiles: what is of files and of shared memory is told apart in the peak, but for a mark between two readings
// at which it was not looked at.
func TestMappedFiles(t *testing.T) {
	for _, test := range []struct {
		name                string
		rss, files, segment []int64
		want                map[string]int64 // MiB in the table
	}{
		{"files", []int64{500, 1000, 990}, []int64{10, 700, 700}, []int64{0, 0, 0},
			map[string]int64{"files": 700, "rest": 300}},
		{"shared memory of others", []int64{500, 1000, 990}, []int64{10, 20, 20}, []int64{0, 900, 900},
			map[string]int64{"files": 20, "shared": 900, "rest": 80}},
		{"a recording without", []int64{500, 1000, 990}, nil, nil, map[string]int64{"rest": 1000}},
		{"a mark after all was given back", []int64{900, 20, 1000}, []int64{700, 10}, []int64{0, 0},
			map[string]int64{"rest": 1000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := recordCounts(t, test.rss, nil, nil)
			for i, s := range []struct {
				name   mem.Quantity
				values []int64
			}{{mem.SeriesRSSFile, test.files}, {mem.SeriesRSSShared, test.segment}} {
				frames := []mem.Frame{mem.SeriesDef{ID: uint32(i + 10), Process: 1, Name: s.name, Unit: mem.UnitBytes,
					Label: mem.Measured}}
				for k, v := range s.values {
					frames = append(frames, mem.Samples{Series: uint32(i + 10), Times: []int64{int64(k+1) * 1e9},
						Values: []int64{v << 20}})
				}
				for _, f := range frames {
					if err := run.Add(f); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := map[string]int64{}
			for _, table := range Analyze(run, Options{}).Tables {
				for _, row := range table.Rows {
					if table.Name == "composition" {
						got[row[len(row)-1].(string)] = row[1].(int64) >> 20
					}
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestHoles: what malloc keeps free is part of the peak, and a finding where it is much of it. It counts only as far
// as it is resident and was free at the peak.
func TestHoles(t *testing.T) {
	for _, test := range []struct {
		name                string
		rss, free, resident []int64
		want                int64 // MiB in the table
		found               bool
	}{
		{"holes between blocks", []int64{500, 1000, 990}, []int64{10, 400, 410}, []int64{10, 390, 395}, 390, true},
		{"freed after the peak", []int64{500, 1000, 995}, []int64{10, 20, 700}, []int64{10, 20, 700}, 20, false},
		{"filled again before the peak", []int64{900, 1000, 1000}, []int64{10, 500, 30}, []int64{10, 480, 30}, 30, false},
		{"given back by malloc_trim after the peak", []int64{900, 1000, 500}, []int64{10, 400, 400}, []int64{10, 380, 1},
			380, true},
		{"free and not resident", []int64{900, 1000, 1000}, []int64{10, 400, 400}, []int64{10, 5, 5}, 5, false},
		{"too little to say", []int64{200, 300, 300}, []int64{10, 100, 100}, nil, 100, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Analyze(recordCounts(t, test.rss, test.free, test.resident), Options{})
			got := int64(-1)
			for _, table := range r.Tables {
				for _, row := range table.Rows {
					if table.Name == "composition" && slices.Contains(row, report.Cell("free")) {
						got = row[1].(int64) >> 20
					}
				}
			}
			if got != test.want {
				t.Errorf("%d MiB free in the table, want %d", got, test.want)
			}
			found := len(r.Findings) == 1 && r.Findings[0].Kind == report.KindFragmentation
			if found != test.found || !found && len(r.Findings) > 0 {
				t.Errorf("findings %+v", r.Findings)
			}
		})
	}
}

// TestFreedAtTheEnd: what an interpreter frees as it ends, while the kernel's mark is told, are not holes of the
// program's.
func TestFreedAtTheEnd(t *testing.T) {
	run := recordCounts(t, []int64{900, 990, 1000}, []int64{10, 20, 700}, []int64{10, 20, 700})
	if r := Analyze(run, Options{}); len(r.Findings) != 1 {
		t.Errorf("findings %+v, want the holes of a program that goes on", r.Findings)
	}
	if err := run.Add(mem.Process{ID: 1, PID: 10, Role: "main", Start: 1, Bye: mem.Some(25e8)}); err != nil {
		t.Fatal(err)
	}
	if r := Analyze(run, Options{}); len(r.Findings) > 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

// TestUntouchedBlocks: blocks that were just allocated, and that the kernel was not asked about yet, are none of the
// peak's memory.
func TestUntouchedBlocks(t *testing.T) {
	run := recordCounts(t, []int64{40, 80}, nil, nil)
	for _, use := range []mem.HeapUse{
		{Process: 1, Time: 17e8, Live: 320 * mem.MiB},
		{Process: 1, Time: 19e8, Live: 60 * mem.MiB, Absent: 260 * mem.MiB},
	} {
		if err := run.Add(use); err != nil {
			t.Fatal(err)
		}
	}
	if text := Analyze(run, Options{}).Text(report.TextOptions{}); !strings.Contains(text, "60.0 MiB") || !strings.Contains(text, "20.0 MiB") {
		t.Error(text)
	}
}

// TestAddressSpace: a limit of the process's own is named where it was reached, and only there. A program without a
// framework is not told of batches, and one without a step not of a smaller batch.
func TestAddressSpace(t *testing.T) {
	for mapped, want := range map[string]bool{"1900000000": true, "1000000000": false, "": false} {
		run := training(3).run()
		err := run.Add(mem.Event{Time: 5e9, Process: 1, Kind: "oom", Text: "Unable to allocate 191 MiB", Bytes: mem.Some(200e6),
			Facts: map[string]string{"source": "MemoryError", "device": "cpu", "limit": "2000000000", "mapped": mapped}})
		if err != nil {
			t.Fatal(err)
		}
		f := Analyze(run, Options{}).Findings[0]
		if got := strings.Contains(f.Text, "may map 1.86 GiB of address space and had mapped 1.77 GiB: that limit was "+
			"reached"); got != want || strings.Contains(f.Advice, "ulimit -v") != want {
			t.Errorf("mapped %q: %q %q", mapped, f.Text, f.Advice)
		}
		if strings.Contains(f.Advice, "batch") {
			t.Errorf("advice %q", f.Advice)
		}
		run.Processes[0].Frameworks = map[string]string{"torch": "2.15.0"}
		if f := Analyze(run, Options{}).Findings[0]; !strings.Contains(f.Advice, "a smaller batch") {
			t.Errorf("of a training: %q", f.Advice)
		}
		run.Steps = nil
		if f := Analyze(run, Options{}).Findings[0]; !strings.Contains(f.Advice, "smaller inputs") {
			t.Errorf("without steps: %q", f.Advice)
		}
	}
}

// TestHolesAdvice: where arenas of threads have the holes, one arena for all is what helps; else the threshold of mmap.
func TestHolesAdvice(t *testing.T) {
	for _, test := range []struct {
		threads int64 // MiB of the arenas beside the main one
		want    string
	}{{380, "MALLOC_ARENA_MAX=1"}, {20, "MALLOC_MMAP_THRESHOLD_=131072"}} {
		run := recordCounts(t, []int64{100, 391, 390}, []int64{10, 359, 359}, []int64{10, 359, 359})
		def := mem.SeriesDef{ID: 20, Process: 1, Name: mem.SeriesMallocThreads, Unit: mem.UnitBytes, Label: mem.Estimated}
		for _, f := range []mem.Frame{def, mem.Samples{Series: 20, Times: []int64{19e8},
			Values: []int64{test.threads << 20}}} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		r := Analyze(run, Options{})
		found := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Kind == report.KindFragmentation })
		if found < 0 || !strings.Contains(r.Findings[found].Advice, test.want) {
			t.Errorf("%d MiB in arenas of threads: %+v", test.threads, r.Findings)
		}
	}
}
