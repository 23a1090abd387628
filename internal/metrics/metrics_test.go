package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// recorded is a run that is being recorded, of one process on one device, and the engine that has it.
func recorded(t *testing.T) (*engine.Engine, store.Writer) {
	t.Helper()
	e := &engine.Engine{DataDir: t.TempDir()}
	s, err := store.Open(store.Place{Store: e.DataDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	info := mem.RunInfo{Name: "bad \xff name", Verb: "run", Label: mem.Measured, Version: "1", StartMono: 1,
		StartWall: 1_000_000_000}
	w, err := s.Create(info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	write(t, w, info,
		mem.Process{ID: 1, PID: 4711, Role: "main", Rank: mem.Some(3), Start: 1},
		mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesCPU, Unit: mem.UnitNanoseconds, Label: mem.Measured},
		mem.SeriesDef{ID: 3, Process: 1, Device: "cuda:0", Framework: "torch", Name: mem.SeriesAllocated,
			Unit: mem.UnitBytes, Label: mem.Imagined},
		mem.SeriesDef{ID: 4, Device: "nvidia:0", Name: mem.SeriesDevicePower, Unit: mem.UnitMilliwatts, Label: mem.Measured},
		mem.Samples{Series: 1, Times: []int64{10, 20}, Values: []int64{100, 200}},
		mem.Samples{Series: 2, Times: []int64{10}, Values: []int64{1_500_000_000}},
		mem.Samples{Series: 3, Times: []int64{10}, Values: []int64{4096}},
		mem.Samples{Series: 4, Times: []int64{10}, Values: []int64{350_500}},
		mem.StepTotal{Process: 1, Steps: 7},
		mem.Event{Time: 5, Kind: "alert"},
	)
	return e, w
}

func write(t *testing.T, w store.Writer, frames ...mem.Frame) {
	t.Helper()
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// scraped is what /metrics answers, the lines of hightide's runs.
func scraped(t *testing.T, x *Exporter) string {
	t.Helper()
	answer := httptest.NewRecorder()
	x.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("GET /metrics: %d %s", answer.Code, answer.Body)
	}
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// TestScrape: figures of a live run are there in base units, follow the recording, and go with the process and the run.
func TestScrape(t *testing.T) {
	e, w := recorded(t)
	x, run := New(e), w.ID()
	expect := func(wanted bool, lines ...string) {
		t.Helper()
		text := scraped(t, x)
		for _, line := range lines {
			if line = strings.ReplaceAll(line, "RUN", run); strings.Contains(text, "\n"+line+"\n") != wanted {
				t.Errorf("%q: want %v, in\n%s", line, wanted, text)
			}
		}
	}
	process := []string{
		`hightide_process_cpu_seconds_total{label="measured",process="1",rank="3",run="RUN"} 1.5`,
		`hightide_process_info{pid="4711",process="1",python="",rank="3",role="main",run="RUN"} 1`,
		`hightide_process_steps_total{process="1",rank="3",run="RUN"} 7`,
		`hightide_allocator_allocated_bytes{device="cuda:0",framework="torch",label="imagined",process="1",rank="3",run="RUN"} 4096`,
	}
	expect(true, process...)
	expect(true, `hightide_run_resident_memory_bytes{label="measured",run="RUN"} 200`,
		`hightide_device_power_watts{device="nvidia:0",framework="",label="measured",process="",rank="",run="RUN"} 350.5`,
		`hightide_events_total{kind="alert",run="RUN"} 1`, `hightide_run_start_time_seconds{run="RUN"} 1`,
		`hightide_runs{state="running"} 1`, `hightide_unreadable_runs 0`)

	write(t, w, mem.Samples{Series: 1, Times: []int64{30}, Values: []int64{300}}, mem.Event{Time: 6, Kind: "alert"},
		mem.Process{ID: 1, PID: 4711, Rank: mem.Some(3), Start: 1, End: mem.Some(40)})
	expect(false, process...)
	expect(true, `hightide_run_resident_memory_bytes{label="measured",run="RUN"} 300`,
		`hightide_events_total{kind="alert",run="RUN"} 2`)

	write(t, w, mem.End{Time: 50})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	expect(false, `hightide_run_resident_memory_bytes{label="measured",run="RUN"} 300`)
	expect(true, `hightide_runs{state="finished"} 1`, `hightide_runs{state="running"} 0`)
}

// TestConventions: Prometheus's own linter, which promtool check metrics runs, finds nothing.
func TestConventions(t *testing.T) {
	e, _ := recorded(t)
	x := New(e)
	problems, err := testutil.GatherAndLint(x.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("error %v, problems %v", err, problems)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not on PATH: its linter ran as a library alone")
		return
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scraped(t, x))
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool: %v: %s", err, said)
	}
}

var untold = []mem.Quantity{mem.SeriesTreeShared, mem.SeriesTreeSegments, mem.SeriesSampleInterval,
	mem.SeriesEnteredForward, mem.SeriesEnteredBackward, mem.SeriesEnteredCollective}

// TestEverySeries: each quantity that hightide records is told, or is left out on purpose; no name is there twice.
func TestEverySeries(t *testing.T) {
	names := map[string]bool{}
	for _, m := range told {
		if names[m.name] || !slices.Contains(mem.Quantities, m.series) {
			t.Errorf("%s of %s: twice, or of a series that there is not", m.name, m.series)
		}
		names[m.name] = true
		if m.counter != strings.HasSuffix(m.name, "_total") {
			t.Errorf("%s: counter %v", m.name, m.counter)
		}
	}
	for _, q := range mem.Quantities {
		if (metricOf(q) != nil) == slices.Contains(untold, q) {
			t.Errorf("%s is in one of told and untold, and not in both", q)
		}
	}
}

// TestUnusableDataDirectory: what can be told is told.
func TestUnusableDataDirectory(t *testing.T) {
	x := New(&engine.Engine{DataDir: "/dev/null/nowhere"})
	if text := scraped(t, x); !strings.Contains(text, "hightide_build_info") || strings.Contains(text, "hightide_runs{") {
		t.Errorf("without a data directory: %s", text)
	}
}

// names are those of all metrics of hightide, with and without a receiver to push to.
func names(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"hightide_build_info": true}
	for _, c := range []prometheus.Collector{newCollector(newWatched(nil)), pushed{}} {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			all[descName.FindStringSubmatch(d.String())[1]] = true
		}
	}
	return all
}

var (
	descName = regexp.MustCompile(`fqName: "(\w+)"`)
	ourName  = regexp.MustCompile(`\bhightide_\w+`)
)

// TestDocumented: docs/metrics.md lists each metric, and no other; the dashboard asks for none that there is not.
func TestDocumented(t *testing.T) {
	all := names(t)
	for file, whole := range map[string]bool{"metrics.md": true, "grafana.json": false} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, name := range ourName.FindAllString(string(text), -1) {
			found[name] = true
			if !all[name] {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
		for name := range all {
			if whole && !found[name] {
				t.Errorf("%s does not list %s", file, name)
			}
		}
		if len(found) < 10 {
			t.Errorf("%s names %d metrics: it is not the file that it was", file, len(found))
		}
	}
}

// TestDashboard: Grafana can read it, and each panel's expression is one that Prometheus can read.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr, LegendFormat string }
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	ids, taken, rules := map[int]bool{}, map[[2]int]string{}, "groups: [{name: panels, rules: ["
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the number %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is over %q, or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expr, _ := json.Marshal(strings.NewReplacer("$run", "x", "$__rate_interval", "1m").Replace(target.Expr))
			rules += fmt.Sprintf("{record: panel, expr: %s},", expr)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil || len(board.Panels) == 0 {
		t.Logf("%d panels; promtool is not on PATH, so that their expressions were not parsed", len(board.Panels))
		return
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules+"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v: %s", err, said)
	}
}
