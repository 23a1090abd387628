package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/store"
	"hightide/internal/testkit"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	snapshot  = "../../testdata/real/h100-lm-ctx128-train-step.pickle"
	outOfMem  = "../../testdata/imagined/leak-a10.pickle"
	recording = "../../testdata/recording/v1-every-kind.hightide"
)

// assistant is a client of a server with one run in its data directory, connected in memory.
func assistant(t *testing.T, o Options) *sdk.ClientSession {
	t.Helper()
	e := &engine.Engine{DataDir: t.TempDir()}
	dir := filepath.Join(e.DataDir, "runs", "20260101-000000-abcdef")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.hightide"), testkit.Data(t, "recording/v1-every-kind.hightide"),
		0o600); err != nil {
		t.Fatal(err)
	}
	return assistantOf(t, e, o)
}

// assistantOf is the same of an engine.
func assistantOf(t *testing.T, e *engine.Engine, o Options) *sdk.ClientSession {
	t.Helper()
	if o.Folders == nil {
		o.Folders = []string{"../../testdata", os.TempDir()}
	}
	here, there := sdk.NewInMemoryTransports()
	if _, err := New(e, o).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// call asks a tool; the answer is its structured content, or what it said in an error.
func call(t *testing.T, session *sdk.ClientSession, tool string, arguments any) (answer map[string]any, text string,
	failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	for _, c := range result.Content {
		text += c.(*sdk.TextContent).Text
	}
	answer, _ = result.StructuredContent.(map[string]any)
	return answer, text, result.IsError
}

// TestAnswers: each tool that reads answers with what its schema promises (which the SDK checks) and with words.
func TestAnswers(t *testing.T) {
	session := assistant(t, Options{})
	for _, test := range []struct {
		tool, arguments string
		field           string // of the answer, and its value
		want            any
		says            string
	}{
		{"list", `{}`, "", nil, "20260101-000000-abcdef"},
		{"list", `{"search": "no such thing"}`, "", nil, "No run matches"},
		{"report", `{"run": "20260101"}`, "run", "20260101-000000-abcdef", ""},
		{"report", `{"run": "` + recording + `"}`, "", nil, ""},
		{"explain", `{"files": ["` + snapshot + `"], "by": "category", "top": 3}`, "", nil, "peak"},
		{"explain", `{"files": ["` + outOfMem + `"]}`, "", nil, ""},
		{"diff", `{"a": "` + snapshot + `", "b": "../../testdata/real/h100-lm-ctx256-forward-bf16.pickle", "top": 2}`, "",
			nil, "fell by"},
		{"diff", `{"a": "20260101", "b": "` + recording + `"}`, "", nil, "Blocks of a device are not compared"},
		{"replay", `{"files": ["` + snapshot + `"], "alloc_conf": "expandable_segments:True"}`, "label", "replayed",
			"expandable"},
		{"replay", `{"files": ["` + snapshot + `"], "gpu": "all"}`, "", nil, "smallest GPU it fits"},
		{"check", `{"budget": "testdata/budget.yaml", "of": "` + snapshot + `"}`, "ok", false, ""},
		{"gpus", `{"name": "a10"}`, "", nil, "NVIDIA A10"},
	} {
		answer, text, failed := call(t, session, test.tool, json.RawMessage(test.arguments))
		if failed || text == "" || answer == nil || !strings.Contains(text, test.says) {
			t.Errorf("%s %s: failed %v, answer %v, text %q; want %q in it", test.tool, test.arguments, failed, answer != nil,
				text, test.says)
		}
		if test.field != "" && answer[test.field] != test.want {
			t.Errorf("%s %s: %s is %v, want %v", test.tool, test.arguments, test.field, answer[test.field], test.want)
		}
	}
}

// TestSameFigures: the answer has the engine's figures, not others.
func TestSameFigures(t *testing.T) {
	session := assistant(t, Options{})
	difference, err := (&engine.Engine{}).Diff(t.Context(), snapshot, outOfMem, "")
	if err != nil {
		t.Fatal(err)
	}
	answer, _, _ := call(t, session, "diff", map[string]any{"a": snapshot, "b": outOfMem})
	if got := int64(answer["blocks"].(map[string]any)["delta_bytes"].(float64)); got != int64(difference.Delta) {
		t.Errorf("delta_bytes %d, want %d", got, difference.Delta)
	}
	answer, _, _ = call(t, session, "list", map[string]any{})
	if start := answer["runs"].([]any)[0].(map[string]any)["start"]; start != "1970-01-01T00:00:00.000000006Z" {
		t.Errorf("the run began at %v", start)
	}
}

// TestListSaysMore: where a list ends before the runs do, it says so.
func TestListSaysMore(t *testing.T) {
	e := &engine.Engine{DataDir: t.TempDir(), Store: new(store.Memory)}
	for range 3 {
		w, err := e.Store.(*store.Memory).Create(mem.RunInfo{Verb: "run", StartMono: 1, StartWall: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(mem.End{Time: 2}), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	session := assistantOf(t, e, Options{})
	for limit, more := range map[int]bool{2: true, 3: false, 4: false} {
		answer, text, _ := call(t, session, "list", map[string]any{"limit": limit})
		if told, _ := answer["more"].(bool); told != more || strings.Contains(text, "older ones") != more ||
			len(answer["runs"].([]any)) != min(limit, 3) {
			t.Errorf("limit %d: more %v of %d: %s", limit, told, len(answer["runs"].([]any)), text)
		}
	}
}

// TestRefusals: whatever is wrong is one line that says what, and the server goes on.
func TestRefusals(t *testing.T) {
	session := assistant(t, Options{})
	hostile := filepath.Join(t.TempDir(), "hostile.pickle")
	pipe := filepath.Join(t.TempDir(), "pipe")
	memray := filepath.Join(t.TempDir(), "capture.bin")
	if err := os.WriteFile(hostile, []byte("cos\nsystem\n(S'touch /tmp/never'\ntR."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(memray, append([]byte("memray\x00"), make([]byte, 64)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		tool      string
		arguments map[string]any
		says      string
	}{
		{"report", map[string]any{"run": "nobody"}, "nobody"},
		{"report", map[string]any{"run": 12}, `has type "integer", want "string"`},
		{"report", map[string]any{"rum": "last"}, "rum"},
		{"list", map[string]any{"state": "asleep"}, "running, finished"},
		{"list", map[string]any{"limit": -1}, "not a number of rows"},
		{"diff", map[string]any{"a": snapshot, "b": snapshot, "top": -1}, "not a number of rows"},
		{"explain", map[string]any{"files": []string{snapshot}, "top": -1}, "not a number of rows"},
		{"explain", map[string]any{"files": []string{hostile}}, "do not load this file with Python's pickle"},
		{"explain", map[string]any{"files": []string{pipe}}, "not a regular file"},
		{"explain", map[string]any{"files": []string{"-"}}, "not a regular file"},
		{"explain", map[string]any{"files": []string{memray}}, "not allowed"},
		{"explain", map[string]any{"files": []string{}}, "nothing to explain"},
		{"explain", map[string]any{"files": []string{snapshot}, "by": "colour"}, "colour"},
		{"explain", map[string]any{"files": []string{snapshot}, "filter": "("}, "regular expression"},
		{"replay", map[string]any{"files": []string{snapshot}, "memory": "much"}, "much"},
		{"diff", map[string]any{"a": snapshot, "b": "/nowhere.pickle"}, "/nowhere.pickle"},
		{"check", map[string]any{"budget": "/nowhere.yaml", "of": snapshot}, "/nowhere.yaml"},
		{"gpus", map[string]any{"name": "abacus"}, "abacus"},
		{"imagine", map[string]any{"command": []string{"true"}}, "--allow-exec"},
		{"fit", map[string]any{"command": []string{"true", "{batch}"}, "gpu": "a10"}, "--allow-exec"},
		{"tune", map[string]any{"command": []string{"true"}, "gpu": "a10"}, "--allow-exec"},
		{"fit", map[string]any{"model": "evil:function", "gpu": "a10"}, "--allow-exec"},
		{"fit", map[string]any{"model": "/etc/config.json", "gpu": "a10"}, "--allow-exec"},
		{"fit", map[string]any{"gpu": "a10"}, "nothing to fit"},
		{"fit", map[string]any{"model": "bert", "gpu": "a10", "most": 3, "step": 5}, "most 3 leaves no multiple of step 5"},
		{"fit", map[string]any{"model": "bert", "gpu": "a10", "memory": "much"},
			"memory much is not a size (as in memory 24GiB)"},
		{"fit", map[string]any{"model": "bert", "gpu": "a10", "dtype": "fp4"}, "dtype fp4 is not known"},
		{"replay", map[string]any{"files": []string{snapshot}, "gpu": "a10", "memory": "1GiB"}, "both gpu and memory"},
		{"replay", map[string]any{"files": []string{snapshot}, "alloc_conf": "nonsense:1"},
			"as in alloc_conf expandable_segments:True"},
	} {
		_, text, failed := call(t, session, test.tool, test.arguments)
		if !failed || !strings.Contains(text, test.says) || strings.Contains(text, "\n") {
			t.Errorf("%s %v: failed %v with %q, want one line with %q", test.tool, test.arguments, failed, text, test.says)
		}
		for name := range test.arguments {
			if strings.Contains(text, "--"+strings.ReplaceAll(name, "_", "-")) {
				t.Errorf("%s %v: %q names a flag; an assistant has %s", test.tool, test.arguments, text, name)
			}
		}
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "erase"}); err == nil {
		t.Error("an unknown tool answers")
	}
	if _, text, failed := call(t, session, "list", map[string]any{}); failed {
		t.Errorf("the server no longer answers: %s", text)
	}
}

// TestFlagsInWords: parameters in place of flags, whole commands as they are, and quotes of what a program said
// untouched.
func TestFlagsInWords(t *testing.T) {
	names, _ := ofSettings(imagineRun.takes)
	for _, test := range []struct {
		err  error
		want string
	}{
		{fail.Usage("--alloc-conf A, or --memory 24GiB", "--steps x"), "steps x (alloc_conf A, or memory 24GiB)"},
		{fail.Environment("name an interpreter with --python", "no torch"),
			"no torch (name an interpreter with --python of the command line)"},
		{fail.Usage("as in hightide fit --gpu a10 -- python train.py --memory {batch}; or --gpu a10", "none"),
			"none (as in hightide fit --gpu a10 -- python train.py --memory {batch}; or gpu a10)"},
		{fail.Input("--steps 3", "train.py --memory 3 failed"), "train.py --memory 3 failed (steps 3)"},
	} {
		if got := oneLine(test.err, names).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestDescribesItself: every tool says what it is, what it takes and what it gives, and whether it only reads.
func TestDescribesItself(t *testing.T) {
	session := assistant(t, Options{})
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Tools) != len(tools) {
		t.Errorf("%d tools, want %d: two have one name", len(listed.Tools), len(tools))
	}
	for _, tool := range listed.Tools {
		starts := slices.Contains([]string{"imagine", "fit", "tune"}, tool.Name)
		if tool.Description == "" || tool.InputSchema == nil || tool.OutputSchema == nil ||
			tool.Annotations.ReadOnlyHint == starts {
			t.Errorf("%s: %q, schemas %v and %v, read only %v", tool.Name, tool.Description, tool.InputSchema,
				tool.OutputSchema, tool.Annotations.ReadOnlyHint)
		}
	}
}

// TestReportResource: a run's whole report can be read; that of no run cannot.
func TestReportResource(t *testing.T) {
	session := assistant(t, Options{})
	got, err := session.ReadResource(t.Context(),
		&sdk.ReadResourceParams{URI: "hightide://runs/20260101-000000-abcdef/report"})
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Series []any }
	if err := json.Unmarshal([]byte(got.Contents[0].Text), &report); err != nil || len(report.Series) == 0 {
		t.Errorf("%d series, error %v", len(report.Series), err)
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "hightide://runs/nobody/report"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("the report of no run: %v", err)
	}
}

// TestCancelled: a call that its caller gives up ends, and the server answers the next.
func TestCancelled(t *testing.T) {
	session := assistant(t, Options{AllowExec: true, Env: os.Environ()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "replay",
		Arguments: map[string]any{"files": []string{snapshot}, "search": true}}); err == nil {
		t.Error("a cancelled call has an answer")
	}
	if _, text, failed := call(t, session, "gpus", map[string]any{}); failed {
		t.Errorf("the server no longer answers: %s", text)
	}
}
