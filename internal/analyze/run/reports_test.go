package run_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

const (
	reportsFolder = "../../../testdata/reports"
	reportMark    = "\n=== report ===\n"
)

// TestReports: small recordings, each with its whole report as a person reads it, in one file. "go test
// ./internal/analyze/run -run TestReports -update" writes the reports anew; testkit.Recording says how a recording is
// written down.
func TestReports(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(reportsFolder, "*.txt"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d recordings in %s, want at least 30: %v", len(files), reportsFolder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recording, want, _ := strings.Cut(string(data), reportMark)
			got := reportOf(t, testkit.Record(t, recording))
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(file, []byte(strings.TrimRight(recording, "\n")+reportMark+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("%s differs; with -update it is written anew. Got:\n%s", file, got)
			}
		})
	}
}

// reportOf is the report of a recording, in the form of a terminal.
func reportOf(t *testing.T, r *testkit.Recording) string {
	t.Helper()
	if r.Explain == nil {
		return analyze.Analyze(r.Run, analyze.Options{Snapshots: r.Snapshots}).Text(report.TextOptions{Width: 100})
	}
	o := trace.Options{At: r.Explain["at"], By: r.Explain["by"], Several: len(r.Snapshots) > 1}
	if text := r.Explain["filter"]; text != "" {
		o.Filter = regexp.MustCompile(text)
	}
	if text := r.Explain["range"]; text != "" {
		among, err := trace.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Range = &among
	}
	x := trace.Explaining{Report: report.New(), Options: o}
	x.Report.Run.Label = mem.Measured
	for _, file := range r.Run.Snapshots { // in the order in which they are written down
		if err := x.Add(trace.File{AllocatorSnapshot: r.Snapshots[file.Name], Name: file.Name}); err != nil {
			return err.Error() + "\n"
		}
	}
	if err := x.Finish(); err != nil {
		return err.Error() + "\n"
	}
	return x.Report.Text(report.TextOptions{Width: 100})
}
