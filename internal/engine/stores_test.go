package engine

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hightide/internal/analyze/trace"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/imagine"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/replay"
	"hightide/internal/store"
	"hightide/internal/testkit"
)

// TestEveryUseCaseOnEveryStore: what records, reads or changes runs does the same whatever keeps them. What
// people read of it, times and paths apart, is compared as well.
func TestEveryUseCaseOnEveryStore(t *testing.T) {
	onEveryStore(t, func(c *stored) {
		c.record()
		c.keepSnapshots("before", "leak-a10.pickle")
		c.keepSnapshots("after", "owned-a10.pickle")
		c.read()
		c.change()
		c.fit()
	})
}

// TestImagineOnEveryStore: an imagined run is kept, and reads the same, wherever it is recorded.
func TestImagineOnEveryStore(t *testing.T) {
	python := testkit.Torch(t)
	if !CanImagine() {
		t.Skip("this build has no imaginary GPU")
	}
	onEveryStore(t, func(c *stored) { c.imagine(python) })
}

// onEveryStore does something on each kind of store, and compares what is said.
func onEveryStore(t *testing.T, do func(c *stored)) {
	said := map[string]string{}
	for kind, open := range map[string]func(t *testing.T) store.Store{
		"files":  func(*testing.T) store.Store { return nil },
		"memory": func(*testing.T) store.Store { return &store.Memory{} },
		"team":   team,
	} {
		t.Run(kind, func(t *testing.T) {
			c := &stored{T: t, Engine: &Engine{DataDir: t.TempDir(), Store: open(t)}}
			c.Runtime.Shared = filepath.Join(t.TempDir(), "shared")
			do(c)
			said[kind] = c.said.String()
			if kind != "files" {
				c.leftNothing()
			}
		})
	}
	t.Logf("%d bytes were said", len(said["files"]))
	for kind, other := range said {
		if said["files"] != other {
			t.Errorf("from files:\n%s\nfrom %s:\n%s", said["files"], kind, other)
		}
	}
}

// team is a store in a PostgreSQL that ends with the test.
func team(t *testing.T) store.Store {
	s, err := store.OpenTeam(testkit.StartPostgres(t).New(t), "file://"+t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// stored is an engine on a kind of store, and what its use cases said.
type stored struct {
	*testing.T
	*Engine
	said strings.Builder
}

func (c *stored) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// say keeps what people or programs would read.
func (c *stored) say(value any) {
	text, err := json.Marshal(value)
	c.must(err)
	c.said.Write(append(text, '\n'))
}

// record runs a program, with a report and a copy of the recording.
func (c *stored) record() {
	c.Helper()
	out := filepath.Join(c.TempDir(), "copy.hightide")
	result, err := c.Engine.Run(c.Context(), RunOptions{Out: out, HTML: true, Options: observe.Options{
		Command: []string{"/bin/sh", "-c",
			"test -d \"$HIGHTIDE_OUT\" && echo kept > \"$HIGHTIDE_OUT/for-tools.txt\"; exit 3"}, Env: os.Environ(),
		Name: "first", Tags: map[string]string{"model": "none"}, NoStacks: true,
	}})
	c.must(err)
	if code := result.Outcome.ExitCode.Or(-1); code != 3 || result.Report == nil || len(result.Notes) > 0 {
		c.Fatalf("exit code %d, notes %q", code, result.Notes)
	}
	if _, run, err := c.Load(c.Context(), out); err != nil || run.Info.ID != result.ID || run.End == nil {
		c.Errorf("the copy of the recording: %v", err)
	}
	for name, want := range map[string]string{"report.html": "<!doctype html>", "for-tools.txt": "kept"} {
		if text := c.attached(result.ID, name); !strings.HasPrefix(strings.ToLower(text), want) {
			c.Errorf("%s begins with %.40q", name, text)
		}
	}
}

func (c *stored) attached(id, name string) string {
	c.Helper()
	s, err := c.store()
	c.must(err)
	defer s.Close()
	file, err := s.Open(id, name)
	c.must(err)
	defer file.Close()
	text, err := io.ReadAll(file)
	c.must(err)
	return string(text)
}

// keepSnapshots makes a run that recorded an allocator snapshot, and has its owners beside it.
func (c *stored) keepSnapshots(id, file string) {
	c.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "imagined", file))
	c.must(err)
	s, err := c.store()
	c.must(err)
	defer s.Close()
	w, err := s.Create(mem.RunInfo{ID: id, Name: "snapshots", Verb: "run", Label: mem.Measured,
		Command: []string{"python"}, StartMono: 1, StartWall: 1e18})
	c.must(err)
	c.must(w.Write(mem.Process{ID: 1, PID: 7, Start: 1}))
	c.must(w.Write(mem.Snapshot{Process: 1, Time: 2, Name: file, Format: "torch-pickle", Piece: data, Last: true}))
	c.must(w.Write(mem.End{Time: 3, ExitCode: mem.Some(0)}))
	c.must(w.Close())
	if owners, err := os.ReadFile(filepath.Join("..", "..", "testdata", "imagined", file+".owners.json")); err == nil {
		_, err = s.Attach(id, file+".owners.json", func(w io.Writer) error { _, err := w.Write(owners); return err })
		c.must(err)
	}
}

// read is what only reads.
func (c *stored) read() {
	ctx := c.Context()
	for _, filter := range []store.Filter{{}, {Name: "snapshots"}, {Tags: map[string]string{"model": ""}},
		{Text: "PYTHON"}, {State: store.Finished, Limit: 1}} {
		runs, err := c.Runs(ctx, filter)
		c.must(err)
		for _, run := range runs {
			c.say([]any{run.Name, run.Tags, run.State, run.ExitCode, run.Findings.Known()})
		}
	}
	for _, ref := range []string{"before", "after"} {
		report, row, err := c.Report(ctx, ref)
		c.must(err)
		c.say([]any{row.ID, report})
	}
	_, _, err := c.Report(ctx, "last")
	c.must(err)
	explained, err := c.Explain(ctx, []string{"after"}, trace.Options{})
	c.must(err)
	c.say(explained)
	difference, err := c.Diff(ctx, "before", "after", "")
	c.must(err)
	c.say(difference)
	replayed, err := c.Replay(ctx, []string{"before"}, replay.Options{})
	c.must(err)
	c.say(replayed)
	budget := filepath.Join(c.TempDir(), "budget.yaml")
	c.must(os.WriteFile(budget, []byte("peak: 1GiB\n"), 0o600))
	checked, err := c.Check(ctx, budget, "after", "")
	c.must(err)
	c.say(checked)
	for _, format := range []string{"json", "csv", "folded"} {
		var out bytes.Buffer
		_, err = c.Export(ctx, "after", ExportOptions{Format: format, Stdout: &out})
		c.must(err)
		c.said.Write(out.Bytes())
	}
}

// change is what changes and removes runs.
func (c *stored) change() {
	ctx := c.Context()
	name := "renamed"
	run, err := c.Tag(ctx, "after", map[string]string{store.KeepTag: ""}, nil, &name)
	c.must(err)
	c.say([]any{run.Name, run.Tags})
	count, err := c.Reindex(ctx, nil)
	c.must(err)
	c.say(count)
	limits := store.Limits{Age: time.Hour, Preview: true}
	for _, limits.Preview = range []bool{true, false} {
		pruned, err := c.Prune(ctx, limits) // "after" is kept, and the first run is new
		c.must(err)
		for _, run := range pruned {
			c.say(run.ID)
		}
	}
	if _, err := c.Remove(ctx, "before"); fail.Code(err) != fail.ExitBadInput {
		c.Errorf("removed what was pruned: %v", err)
	}
	removed, err := c.Remove(ctx, "renamed", "first")
	c.must(err)
	for _, run := range removed {
		c.say(run.Name)
	}
	left, err := c.Runs(ctx, store.Filter{})
	c.must(err)
	if len(left) > 0 {
		c.Errorf("left: %+v", left)
	}
}

// fit measures a command that fits with every batch: each trial is a run.
func (c *stored) fit() {
	result, err := c.Engine.Fit(c.Context(), fit.Options{Command: []string{"/bin/sh", "-c", "exit 0", "{batch}"},
		Env: os.Environ(), Device: "cpu", Start: 2, Most: 4})
	c.must(err)
	runs, err := c.Runs(c.Context(), store.Filter{Text: "fit batch"})
	c.must(err)
	if result.Largest != 4 || len(runs) != len(result.Trials) || len(runs) == 0 {
		c.Errorf("largest %d, %d trials, %d runs", result.Largest, len(result.Trials), len(runs))
	}
	for i, t := range result.Trials {
		c.say([]any{t.Batch, t.OK, runs[len(runs)-1-i].Name, runs[len(runs)-1-i].State})
	}
}

// imagine runs a program that takes 64 MiB of an imaginary GPU.
func (c *stored) imagine(python string) {
	result, err := c.Engine.Imagine(c.Context(), ImagineOptions{
		RunOptions: RunOptions{Options: observe.Options{Name: "imagined", NoStacks: true, Env: os.Environ(),
			Command: []string{python, "-c", "import torch; held = torch.zeros(64 << 20, dtype=torch.uint8, device='cuda')"}}},
		Options: imagine.Options{GPU: "a10"},
	})
	c.must(err)
	if v := result.Verdict; v == nil || !v.Fits() || v.Allocated.Or(0) != 64<<20 || len(result.Notes) > 0 {
		c.Errorf("verdict %+v, notes %q", v, result.Notes)
	}
	if (result.File == "") != (c.Store != nil) {
		c.Errorf("recorded in %q", result.File)
	}
	row, run, err := c.Load(c.Context(), "imagined")
	c.must(err)
	if row.Allocated != result.Verdict.Allocated {
		c.Errorf("listed with %v allocated, judged by %v", row.Allocated, result.Verdict.Allocated)
	}
	c.say([]any{row.Label, row.State, row.Allocated, len(run.Snapshots), result.Verdict.Verdict, result.Verdict.Reserved,
		result.Verdict.Lines})
	explained, err := c.Explain(c.Context(), []string{"imagined"}, trace.Options{})
	c.must(err)
	c.say([]any{explained.Allocators[0].Label, explained.Allocators[0].Peak.Allocated})
}

// leftNothing checks that recordings kept elsewhere leave none in the data directory, nor anything of a run.
func (c *stored) leftNothing() {
	found := regexp.MustCompile(`run\.hightide|report\.html|\.pickle|index|for-tools`)
	c.must(filepath.WalkDir(c.DataDir, func(path string, d os.DirEntry, err error) error {
		if err == nil && found.MatchString(filepath.Base(path)) {
			c.Errorf("left behind: %s", path)
		}
		return err
	}))
	if scratch, _ := os.ReadDir(c.scratchDir()); len(scratch) > 0 {
		c.Errorf("scratch folders are left: %v", scratch)
	}
}

// TestNothingIsKept: a run in a store that ends with it leaves a report, and nothing on disk.
func TestNothingIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	e := &Engine{DataDir: "memory:"}
	result, err := e.Run(t.Context(), RunOptions{Options: observe.Options{Command: []string{"/bin/true"},
		Env: os.Environ(), NoStacks: true}})
	if err != nil || result.Report == nil || result.File != "" || len(result.Notes) > 0 {
		t.Errorf("%+v %v", result, err)
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
