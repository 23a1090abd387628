package format

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"hightide/internal/analyze/trace"
	"hightide/internal/format/torch"
)

// TestMatching: a filtered snapshot that is written and read again holds, at the moment of the whole one's peak,
// to the byte what explain's filter lets through of it.
func TestMatching(t *testing.T) {
	for path, want := range map[string]string{"../../testdata/real/h100-lm-ctx256-forward-bf16.pickle": "einsum",
		"../../testdata/real/h100-lm-ctx128-train-step.pickle": "optimizers.py"} {
		whole, filter := snapshotFile(t, path), regexp.MustCompile(want)
		filtered, err := Source{Snapshot: whole}.Matching(filter)
		if err != nil {
			t.Fatal(err)
		}
		again, err := torch.Read(bytes.NewReader(written(t, *Find("torch-pickle"), filtered, nil)))
		if err != nil {
			t.Fatal(err)
		}
		o := trace.Options{By: "site", At: "peak"}
		some := explained(t, again, "some", o)
		o.Filter = filter
		all := explained(t, whole, "all", o)
		if a, b := all.Allocators[0].Matching, some.Allocators[0].Peak.Allocated; a != b || a == 0 {
			t.Errorf("%s: %d bytes match %q at the peak, %d are left in the filtered file", path, a, want, b)
		}
		if notes := strings.Join(some.Notes, " "); !strings.Contains(notes, "only blocks that match") ||
			strings.Contains(notes, "no free memory") {
			t.Errorf("%s: notes %q", path, notes)
		}
		if _, err := (Source{Snapshot: whole}).Matching(regexp.MustCompile("^nothing$")); err == nil {
			t.Errorf("%s: a filter that nothing matches is not an error", path)
		}
	}
}
