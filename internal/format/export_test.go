package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/wire"

	"github.com/parquet-go/parquet-go"
)

const secretHost = "secret-host"

// example is a run with a row in every table, and something private in every place.
func example(t testing.TB) *mem.Run {
	t.Helper()
	where := mem.Location{File: "/home/alice/project/train.py", Line: 41, Function: "main"}
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.RunInfo{ID: "0abc", Name: "baseline", Label: mem.Measured,
			Command: []string{"/home/alice/bin/python", "train.py", "--token=hunter2"}, Cwd: "/home/alice/project",
			Env: map[string]string{"PATH": "/home/alice/bin"}, Version: "1", StartMono: 1000, StartWall: 5,
			Options: map[string]string{"out": "/home/alice/x"},
			Host:    mem.Host{Name: secretHost, OS: "linux", GPUs: []mem.GPU{{UUID: "GPU-secret", Name: "A10"}}},
			Git:     &mem.Git{Commit: "c0ffee", Branch: "alice"}},
		mem.Process{ID: 1, PID: 77, Command: []string{"python", "--token=hunter2"}, Role: "main", Start: 1000,
			End:      mem.Some(9000),
			ExitCode: mem.Some(0), MaxRSS: mem.Some(1 << 40), Facts: map[string]string{"heap": "read /home/alice/lib.so on " +
				secretHost}},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.SeriesDef{ID: 2, Device: "cuda:0", Name: mem.SeriesDeviceTemperature, Unit: mem.UnitCelsius, Label: mem.Measured},
		mem.Samples{Series: 1, Times: []int64{1000, 2000}, Values: []int64{0, 1<<62 + 1}},
		mem.Samples{Series: 2, Times: []int64{1500}, Values: []int64{-40}},
		mem.Steps{{Process: 1, Number: 1, Time: 3000, RSS: mem.Some(7)}},
		mem.Spans{{Process: 1, Phase: mem.PhaseForward, Name: "a,\"b\"\nc", Step: 1, Start: 2500, End: 2600,
			RSSEnd: mem.Some(0)}},
		mem.PhaseStats{Process: 1, Phase: mem.PhaseForward, Count: 1, Total: 100, Max: 100},
		mem.StackDef{ID: 1, Locations: []mem.Location{{File: "libc.so.6", Native: true},
			{File: "/venv/lib/python3/site-packages/torch/nn/m.py", Line: 3, Function: "f"}, where}},
		mem.HeapUse{Process: 1, Time: 2700, Live: 100, Sites: []mem.SiteUse{{Stack: 1, Live: 100, Count: 2, Allocated: 200}}},
		mem.HeapUse{Process: 1, Time: 2700, Live: 100, Peak: true,
			Sites: []mem.SiteUse{{Stack: 1, Live: 100, Count: 2, Allocated: 200}}},
		mem.Holder{Process: 1, Kind: "list", Name: "history", Where: where},
		mem.Event{Time: 1000, Kind: "start", Text: "python train.py --token=hunter2"},
		mem.Event{Time: 4000, Process: 1, Kind: "oom", Text: "at /home/alice/project/train.py:41 on " + secretHost,
			Where: &where, Facts: map[string]string{"f": "/home/alice/y"}},
		mem.Snapshot{Process: 1, Name: "oom.pickle", Format: "torch-pickle", Piece: []byte("/home/alice/z"), Last: true},
		mem.Drop{Process: 1, Place: "ring", Records: 3},
		mem.End{Time: 9000, ExitCode: mem.Some(0)},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// everything writes a run in one format, all tables of it.
func everything(t testing.TB, f Format, run *mem.Run) string {
	t.Helper()
	var out bytes.Buffer
	tables := []*Table{nil}
	if f.Tables {
		tables = TablesOf(Runs)
	}
	for _, table := range tables {
		if err := f.Write(&out, Source{Run: run}, table); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// fullAfter fails once it has taken some bytes.
type fullAfter struct{ room int }

var errFull = errors.New("full")

func (w *fullAfter) Write(p []byte) (int, error) {
	if len(p) > w.room {
		return 0, errFull
	}
	w.room -= len(p)
	return len(p), nil
}

// TestFormats is what every format keeps: it leaves the run alone, says when it cannot write, is
// the same each time, and holds the largest value exactly.
func TestFormats(t *testing.T) {
	for _, f := range Formats {
		if f.Takes&Runs == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			run, untouched := example(t), example(t)
			first := everything(t, f, run)
			if !reflect.DeepEqual(run, untouched) {
				t.Error("the run was changed")
			}
			if second := everything(t, f, run); first != second {
				t.Error("two exports differ")
			}
			for _, room := range []int{0, 10} {
				if err := f.Write(&fullAfter{room}, Source{Run: run}, &Tables[0]); !errors.Is(err, errFull) {
					t.Errorf("room for %d bytes: %v", room, err)
				}
			}
			private := everything(t, f, Redact(run))
			for _, secret := range []string{"alice", "hunter2", secretHost, "GPU-secret", "c0ffee", "/venv"} {
				if strings.Contains(private, secret) {
					t.Errorf("redacted, but holds %q", secret)
				}
			}
			if !reflect.DeepEqual(run, untouched) {
				t.Error("redaction changed the run")
			}
			_ = everything(t, f, mem.NewRun()) // of a run of which nothing is known
			readsBack(t, f, Source{Run: sane(run)}, &Tables[0])
		})
	}
}

// sane is the run with sizes that a machine can have: a reader refuses others.
func sane(run *mem.Run) *mem.Run {
	for _, s := range run.Series {
		for i, v := range s.Values {
			s.Values[i] = min(max(v, 0), 1<<40)
		}
	}
	return run
}

// readsBack checks that a format which is read as well is told by its content, and reads what it wrote.
func readsBack(t *testing.T, f Format, from Source, table *Table) {
	t.Helper()
	if f.Decode == nil {
		return
	}
	d, err := Decode(bytes.NewReader(written(t, f, from, table)), "")
	switch {
	case err != nil:
		t.Errorf("it does not read what it wrote: %v", err)
	case d.Format != f.Name:
		t.Errorf("what it wrote is taken for %q", d.Format)
	}
}

func TestCSV(t *testing.T) {
	run := example(t)
	for _, table := range TablesOf(Runs) {
		var out bytes.Buffer
		if err := writeCSV(&out, Source{Run: run}, table); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
		if len(rows) < 2 || len(rows[0]) != len(table.Columns) {
			t.Fatalf("%s: %d rows of %d columns", table.Name, len(rows), len(rows[0]))
		}
		if table.Name == "samples" {
			want := []string{"1000", "1", "77", "", "", "host.rss", "bytes", "measured", "4611686018427387905"}
			if !slices.Equal(rows[2], want) {
				t.Errorf("got %q, want %q", rows[2], want)
			}
		}
		if table.Name == "spans" && (rows[1][4] != "a,\"b\"\nc" || rows[1][8] != "" || rows[1][9] != "0") {
			t.Errorf("absent, zero or quotes: %q", rows[1])
		}
	}
}

func TestParquet(t *testing.T) {
	run := example(t)
	for _, table := range TablesOf(Runs) {
		var out bytes.Buffer
		if err := writeParquet(&out, Source{Run: run}, table); err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
		place := map[string]int{}
		for i, path := range file.Schema().Columns() {
			place[path[0]] = i
		}
		if len(place) != len(table.Columns) {
			t.Errorf("%s: columns %v", table.Name, place)
		}
		var got []parquet.Row
		reader := parquet.NewReader(file)
		for {
			rows := make([]parquet.Row, 1)
			n, err := reader.ReadRows(rows)
			if n == 1 {
				got = append(got, rows[0].Clone())
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		at := 0
		err = table.Rows(Source{Run: run}, func(cells []any) error {
			for i, c := range cells {
				value := got[at][place[table.Columns[i].Name]]
				switch c := c.(type) {
				case nil:
					if !value.IsNull() {
						t.Errorf("%s %s: %v, want absent", table.Name, table.Columns[i].Name, value)
					}
				case int64:
					if value.IsNull() || value.Int64() != c {
						t.Errorf("%s %s: %v, want %d", table.Name, table.Columns[i].Name, value, c)
					}
				case string:
					if string(value.ByteArray()) != c {
						t.Errorf("%s %s: %v, want %s", table.Name, table.Columns[i].Name, value, c)
					}
				}
			}
			at++
			return nil
		})
		if err != nil || at != len(got) {
			t.Errorf("%s: %d rows, want %d (%v)", table.Name, len(got), at, err)
		}
		if info, ok := file.Lookup("hightide.run"); !ok || !strings.Contains(info, "0abc") {
			t.Errorf("metadata %q", info)
		}
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := writeJSON(&out, Source{Run: example(t)}, nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version int
		Run     mem.RunInfo
		Series  []struct {
			Name, Unit string
			Time       []int64 `json:"time_ns"`
			Value      []int64
		}
		Spans []map[string]any
		Sites []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if got.Version != 1 || got.Run.ID != "0abc" || len(got.Series) != 2 || got.Series[0].Value[1] != 1<<62+1 ||
		got.Series[1].Unit != "celsius" || got.Series[0].Time[1] != 1000 {
		t.Errorf("%+v", got)
	}
	if _, there := got.Spans[0]["rss_start_bytes"]; there || got.Spans[0]["rss_end_bytes"] != 0.0 {
		t.Errorf("absent and zero: %v", got.Spans[0])
	}
	if len(got.Sites) != 2 || got.Sites[0]["line"] != 41.0 {
		t.Errorf("sites %v", got.Sites)
	}
}

func TestRedactKeepsWhatAReportNeeds(t *testing.T) {
	run := Redact(example(t))
	stack := run.Stacks.Frames(1)
	want := []mem.Location{{File: "libc.so.6", Native: true}, {File: "torch/nn/m.py", Line: 3, Function: "f"},
		{File: "train.py", Line: 41, Function: "main"}}
	if !reflect.DeepEqual(stack, want) {
		t.Errorf("stack %+v", stack)
	}
	if run.Info.Name != "" || len(run.Info.Tags) > 0 || !slices.Equal(run.Info.Command, []string{"python"}) ||
		len(run.Find(1, mem.SeriesRSS).Values) != 2 {
		t.Errorf("%+v", run.Info)
	}
	if got := run.Events[1].Text; got != "at train.py:41 on (host)" {
		t.Errorf("event %q", got)
	}
	whole := mem.NewRun()
	for _, f := range []mem.Frame{mem.RunInfo{Host: mem.Host{Name: "box"}},
		mem.ReadBack{Location: mem.Location{File: "/home/me/train.py"}}, mem.Redirected{Path: "/home/me/out/last.pt"},
		mem.FakeWeights{Name: "/data/w.pt"}, mem.Condition{Name: "interpreter", Value: "/home/me/python"},
		mem.Unreached{Text: "at /home/me/x.py"},
		mem.Trial{Set: mem.TrialTry, Try: mem.Try{Command: "python /home/me/train.py --key 1",
			GPUVerdict: mem.GPUVerdict{Note: "on box"}}}} {
		if err := whole.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := json.Marshal(Redact(whole).Imagined); err != nil || bytes.Contains(text, []byte("/home")) || bytes.Contains(text, []byte("/data")) ||
		bytes.Contains(text, []byte("box")) || !bytes.Contains(text, []byte("train.py")) {
		t.Errorf("%v %s", err, text)
	}
	var file bytes.Buffer
	if err := wire.Save(&file, run); err != nil {
		t.Fatal(err)
	}
	again, err := wire.Load(&file)
	if err != nil || len(again.Damage) > 0 || len(again.Events) != len(run.Events) {
		t.Errorf("%v %+v", err, again)
	}
}
