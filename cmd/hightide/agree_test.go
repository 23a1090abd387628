package main

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// said is what a door says of a run, as JSON has it.
type said struct {
	Verdict, Ended, Figure, Growth, Serving any
	Findings                                []any
}

// TestDoorsSayTheSame: the terminal, the page, the API and MCP say the same sentence, end, figure, growth and findings
// of a run, in its report and in a list.
func TestDoorsSayTheSame(t *testing.T) {
	s := newSession(t)
	data := filepath.Join(s.dir, "data")
	ids := append(recordingsOf(t, data), growingRun(t, data))
	served := servingRun(t, data)
	ids = append(ids, served)
	if len(ids) < 7 {
		t.Fatalf("%d recordings", len(ids))
	}
	server := s.serve()
	ask := assistantOf(t, s)
	get := func(path string) map[string]any {
		code, text := server.get("/api/v1" + path)
		if code != 200 {
			t.Fatalf("%s: %d %s", path, code, text)
		}
		return object(t, text)
	}
	rows := map[string][]any{
		"ls":      object(t, stdoutOf(t, s, "ls", "--json"))["runs"].([]any),
		"the API": get("/runs?limit=100")["runs"].([]any),
		"MCP":     ask("list", map[string]any{"limit": 100})["runs"].([]any)}
	growth := 0
	for _, id := range ids {
		want := ofReport(object(t, stdoutOf(t, s, "show", id, "--json")))
		if n, ok := want.Growth.(float64); ok && n > 0 && len(want.Findings) > 0 {
			growth++
		}
		full := ask("report", map[string]any{"run": id, "full": true})
		for door, got := range map[string]said{
			"the page":           ofReport(get("/runs/" + id + "/report")),
			"the page as a file": ofReport(inFile(t, s, id)),
			"MCP": {full["verdict"], full["ended"], full["figure"], full["growth_bytes_per_step"], full["serving"],
				brief(full["findings"])},
		} {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %s:\n%+v\nthe terminal's JSON:\n%+v", door, id, got, want)
			}
		}
		if (id == served) != (want.Serving != nil) {
			t.Errorf("%s serves: %v", id, want.Serving)
		}
		inWords(t, stdoutOf(t, s, "show", id), want)
		for door, all := range rows {
			row := rowOf(all, id)
			if row == nil || !reflect.DeepEqual(row["ended"], want.Ended) || !reflect.DeepEqual(row["figure"], want.Figure) {
				t.Errorf("%s lists %s as %v; its report: %v, %v", door, id, row, want.Ended, want.Figure)
			} else if n, ok := row["findings"].(float64); ok && int(n) != len(want.Findings) {
				t.Errorf("%s lists %v findings of %s, its report has %d", door, n, id, len(want.Findings))
			}
		}
	}
	if growth == 0 {
		t.Error("none of them grows")
	}
}

// assistantOf starts hightide mcp for an assistant, and asks its tools.
func assistantOf(t *testing.T, s *session) func(tool string, arguments map[string]any) map[string]any {
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&sdk.CommandTransport{Command: s.command("mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return func(tool string, arguments map[string]any) map[string]any {
		result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil || result.IsError {
			t.Fatalf("%s %v: %v, %+v", tool, arguments, err, result)
		}
		return result.StructuredContent.(map[string]any)
	}
}

// recordingsOf copies those of testdata into a data directory, and gives their ids.
func recordingsOf(t *testing.T, data string) (ids []string) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "recording", "*.hightide"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".hightide")
		ids = append(ids, id)
		text, err := os.ReadFile(file)
		dir := filepath.Join(data, "runs", id)
		err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, store.Recording), text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// growingRun writes a run that grows by 3 MiB a step, and gives its id.
func growingRun(t *testing.T, data string) string {
	frames := []mem.Frame{mem.Process{ID: 1, PID: 7, Role: "main", Start: 1},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured}}
	for i := range int64(300) {
		at, rss := 1+i*1e8, (100+3*i)<<20
		frames = append(frames, mem.Samples{Series: 1, Times: []int64{at}, Values: []int64{rss}},
			mem.Steps{{Process: 1, Number: uint64(i + 1), Time: at, Duration: 1e8, RSS: mem.Some(rss)}})
	}
	frames = append(frames, mem.StepTotal{Process: 1, Steps: 300}, mem.End{Time: 30e9, ExitCode: mem.Some(0)})
	return recordingOf(t, data, mem.RunInfo{Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"}}, frames)
}

// servingRun writes the start of an LLM server on an imaginary GPU, and gives its id.
func servingRun(t *testing.T, data string) string {
	figures := mem.ServingFigures{KVTokens: mem.Some(32768), KVBytes: mem.Some(4 << 30), KVHost: mem.Some(1 << 30),
		KVBlocks: mem.Some(2048), BlockSize: mem.Some(16), MaxConcurrency: 4, MaxModelLen: mem.Some(8192),
		Weights: mem.Some(14 << 30), Activations: mem.Some(1 << 30), NonTorch: mem.Some(10 << 20), Utilization: 0.9}
	return recordingOf(t, data, mem.RunInfo{Verb: "imagine", Label: mem.Imagined, Command: []string{"vllm", "serve", "m"}},
		[]mem.Frame{mem.ImaginedSetup{GPU: "a10", Name: "NVIDIA A10", Count: 1, Total: 22 << 30, Tight: 1 << 30, Steps: "auto"},
			mem.Process{ID: 1, PID: 7, Role: "main", Start: 1}, mem.ImaginedDevice{GPU: "a10", Total: 22 << 30, Used: 19 << 30},
			mem.DeviceUse{Process: 1, Device: "0", Used: 19 << 30},
			mem.Serving{Process: 1, Time: 2e9, Engine: "vLLM", Version: "0.11.0", Step: mem.ServingReady, Answers: true,
				ServingFigures: figures},
			mem.End{Time: 4e9, ExitCode: mem.Some(0)}})
}

// recordingOf is the id of a new recording of these frames.
func recordingOf(t *testing.T, data string, info mem.RunInfo, frames []mem.Frame) string {
	before, _ := filepath.Glob(filepath.Join(data, "runs", "0*"))
	files := store.OpenFiles(data)
	info.StartMono, info.StartWall = 1, 1
	w, err := files.Create(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames {
		err = errors.Join(err, w.Write(frame))
	}
	if err = errors.Join(err, w.Close(), files.Close()); err != nil {
		t.Fatal(err)
	}
	dirs, _ := filepath.Glob(filepath.Join(data, "runs", "0*"))
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(before, dir) })
	if len(dirs) != 1 {
		t.Fatal(dirs)
	}
	return filepath.Base(dirs[0])
}

func ofReport(r map[string]any) said {
	h := r["headline"].(map[string]any)
	var serving any
	if imagined, ok := r["imagined"].(map[string]any); ok {
		serving = imagined["serving"]
	}
	return said{h["verdict"], h["ended"], h["figure"], h["growth_bytes_per_step"], serving, brief(r["findings"])}
}

// brief is of each finding what all doors have.
func brief(findings any) (all []any) {
	for _, f := range findings.([]any) {
		of, kept := f.(map[string]any), map[string]any{}
		for _, key := range []string{"kind", "severity", "title", "text", "advice", "bytes", "bytes_per_step"} {
			if value, ok := of[key]; ok && value != "" {
				kept[key] = value
			}
		}
		all = append(all, kept)
	}
	return all
}

func rowOf(rows []any, id string) map[string]any {
	for _, row := range rows {
		if of := row.(map[string]any); of["id"] == id {
			return of
		}
	}
	return nil
}

// inWords looks for the sentences in what the terminal shows, whose lines are broken and whose `code` may be marked.
func inWords(t *testing.T, text string, want said) {
	t.Helper()
	bare := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "")), " ") }
	sentences := []string{fmt.Sprint(want.Verdict)}
	for _, f := range want.Findings {
		for _, key := range []string{"text", "advice"} {
			if s, ok := f.(map[string]any)[key].(string); ok {
				sentences = append(sentences, s)
			}
		}
	}
	for _, s := range sentences {
		if !strings.Contains(bare(text), bare(s)) {
			t.Errorf("%q is not in\n%s", s, text)
		}
	}
}

var embeddedReport = regexp.MustCompile(`(?s)<script[^>]*id="?hightide-report"?[^>]*>(.*?)</script>`)

// inFile is the report in the page of one file: JSON, compressed, in base64.
func inFile(t *testing.T, s *session, id string) map[string]any {
	t.Helper()
	file := filepath.Join(s.dir, id+".html")
	stdoutOf(t, s, "report", id, "--html", file)
	found := embeddedReport.FindStringSubmatch(readFile(t, file))
	if found == nil {
		t.Fatalf("no report in %s", file)
	}
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.TrimSpace(found[1]))))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(text))
}

func object(t *testing.T, text string) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return o
}

// stdoutOf is what a command prints.
func stdoutOf(t *testing.T, s *session, args ...string) string {
	t.Helper()
	c := s.command(args...)
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(text)
}
