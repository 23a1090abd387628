package telemetry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

func text(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// curves are what a recording has, a series a line: whose, what, when from its begin in s, and MiB.
func curves(run *mem.Run) (all []string) {
	for _, s := range run.Series {
		line := fmt.Sprintf("%d %s %s", s.Process, s.Device, s.Name)
		for i, at := range s.Times {
			line += fmt.Sprintf(" %g:%g", float64(at-run.Info.StartMono)/1e9, float64(s.Values[i])/(1<<20))
		}
		all = append(all, line)
	}
	return all
}

// TestTools: what the monitors of the makers of GPUs write is read: midnight, absent readings, processes, tables
// without times.
func TestTools(t *testing.T) {
	for _, test := range []struct {
		file  string
		knows func([]byte) bool
		read  func(*bytes.Reader) (*mem.Run, error)
		want  []string
		notes string
	}{
		{"dmon.txt", IsMonitor, func(r *bytes.Reader) (*mem.Run, error) { return ReadMonitor(r) },
			[]string{"0 gpu:0 device.used 0:4000 1:4020 2:4040", "0 gpu:1 device.used 1:600 2:601"}, ""},
		{"pmon.txt", IsMonitor, func(r *bytes.Reader) (*mem.Run, error) { return ReadMonitor(r) },
			[]string{"1 gpu:0 device.process 0:1024 1:1030", "2 gpu:0 device.process 0:512 1:530"},
			"one reading a second is assumed"},
		{"xpu-smi.csv", IsXPU, func(r *bytes.Reader) (*mem.Run, error) { return ReadXPU(r) },
			[]string{"0 gpu:0 device.used 0:31.25 1:4096", "0 gpu:1 device.used 1:30"}, ""},
	} {
		data := text(t, test.file)
		if !test.knows(data) {
			t.Errorf("%s is not known", test.file)
		}
		run, err := test.read(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", test.file, err)
		}
		notes := ""
		for _, e := range run.Events {
			notes += e.Text
		}
		if got := curves(run); !slices.Equal(got, test.want) || !strings.Contains(notes, test.notes) {
			t.Errorf("%s: %q, notes %q; want %q, %q", test.file, got, notes, test.want, test.notes)
		}
	}
	if run, _ := ReadMonitor(bytes.NewReader(text(t, "pmon.txt"))); run.Processes[1].PID != 1300 || run.Processes[1].Command[0] != "python train.py" {
		t.Errorf("processes %+v", run.Processes[1])
	}
}

// TestMprof: a file of memory_profiler 0.61 itself. It appends to a file that is there, so the last run counts;
// marked functions are spans.
func TestMprof(t *testing.T) {
	run, err := ReadMprof(bytes.NewReader(text(t, "mprof-appended.dat")))
	if err != nil {
		t.Fatal(err)
	}
	rss := run.Series[0]
	if n := len(rss.Values); n != 20 || rss.Name != mem.SeriesRSS || rss.Values[n-2] != 59<<20 ||
		!slices.Equal(run.Info.Command, []string{"python3", "grow.py"}) {
		t.Errorf("%d readings of %s, %v, of %q", n, rss.Name, rss.Values, run.Info.Command)
	}
	if len(run.Phases) != 1 {
		t.Fatalf("%+v", run.Phases)
	}
	if s := run.Phases[0]; s.Name != "__main__.build" || s.Count != 12 || s.RSSPeak.Or(0) != 59<<20 ||
		len(run.Events) != 1 {
		t.Errorf("%+v, %+v", s, run.Events)
	}
	run, err = ReadMprof(bytes.NewReader(text(t, "mprof-children.dat")))
	if err != nil {
		t.Fatal(err)
	}
	last := run.Series[slices.IndexFunc(run.Series, func(s *mem.Series) bool { return s.Name == mem.SeriesTreeRSS })]
	if len(run.Processes) != 3 || run.Processes[2].PID != 17497 || last.Values[last.Peak()] != 12562432+51281920+93224960 {
		t.Errorf("%d processes, sum %d", len(run.Processes), last.Values[last.Peak()])
	}
}

// TestShown: tables for people are told in words, with what no process that is shown holds; several with their times
// are a recording.
func TestShown(t *testing.T) {
	table := string(text(t, "nvidia-smi.txt"))
	for _, test := range []struct {
		text string
		want []string
	}{
		{table, []string{"GPU 0 (A100-SXM4-40GB) has 35.6 GiB of 39.6 GiB in use",
			"process 2710453 (.../envs/t5/bin/python) 35.6 GiB.", "13.9 GiB of it are of no process that is shown",
			"one moment"}},
		{strings.Replace(table, "36411MiB", "     N/A", 1),
			[]string{"What each of these holds is not shown: 2710453 (.../envs/t5/bin/python)."}},
		{table + table, []string{"2 moments without their times"}},
		{string(text(t, "rocm-smi.txt")), []string{"GPU 0 has 141 GiB of 192 GiB in use",
			"GPU 1 has 284 MiB of 192 GiB in use, by all programs together: 192 GiB are free.\n"}},
		{`{"card0": {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "151397138432"}, "system": {}}`,
			[]string{"GPU 0 has 141 GiB of 192 GiB"}},
		{string(text(t, "gpustat.txt")), []string{"GPU 0 (NVIDIA A100-SXM4-80GB) has 68.8 GiB of 80.0 GiB",
			"ann 58.6 GiB, bob 10.1 GiB."}},
	} {
		if !IsShown([]byte(test.text)) {
			t.Fatalf("%.60q is not known", test.text)
		}
		all, err := ReadShown(strings.NewReader(test.text))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(all[len(all)-1].Words(len(all)), "\n")
		for _, want := range test.want {
			if !strings.Contains(said, want) {
				t.Errorf("want %q in:\n%s", want, said)
			}
		}
		if OverTime(all) != nil {
			t.Error("a recording without times")
		}
	}
	timed := "Sat Jan  3 15:00:00 2026\n" + table + "Sat Jan  3 15:00:05 2026\n" +
		strings.Replace(table, " 14214MiB", " 20214MiB", 1)
	all, err := ReadShown(strings.NewReader(timed))
	if err != nil {
		t.Fatal(err)
	}
	run := OverTime(all)
	if run == nil {
		t.Fatal("no recording of two moments")
	}
	if got := curves(run); !slices.Equal(got, []string{"0 gpu:0 device.used 0:36414 5:36414",
		"0 gpu:1 device.used 0:14214 5:20214"}) {
		t.Errorf("%q", got)
	}
}

// FuzzTools: a recording or words or an error, whatever a text that looks like one of these holds.
func FuzzTools(f *testing.F) {
	for _, name := range []string{"dmon.txt", "pmon.txt", "xpu-smi.csv", "mprof-appended.dat", "mprof-children.dat",
		"nvidia-smi.txt", "rocm-smi.txt", "gpustat.txt"} {
		f.Add(text(f, name))
	}
	f.Add([]byte("timestamp, memory.used [MiB], memory.free [MiB]\n1714060828.887, 3767 MiB, 16381 MiB\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func(*bytes.Reader) (*mem.Run, error){
			func(r *bytes.Reader) (*mem.Run, error) { return ReadMonitor(r) },
			func(r *bytes.Reader) (*mem.Run, error) { return ReadXPU(r) },
			func(r *bytes.Reader) (*mem.Run, error) { return ReadMprof(r) },
			func(r *bytes.Reader) (*mem.Run, error) { return ReadSMI(r) },
		} {
			if run, err := read(bytes.NewReader(data)); (run == nil) == (err == nil) {
				t.Fatalf("%v, %v", run, err)
			}
		}
		IsMonitor(data)
		IsXPU(data)
		IsMprof(data)
		if all, err := ReadShown(bytes.NewReader(data)); err == nil {
			all[len(all)-1].Words(len(all))
			OverTime(all)
		}
	})
}
