package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var quantity = regexp.MustCompile(`"allocator\.[a-z_]+"`)

// TestQuantities: adapters and analyses call what an allocator counts by the same names.
func TestQuantities(t *testing.T) {
	python, err := fs.ReadFile(Source(), "hightide_agent/allocators.py")
	if err != nil {
		t.Fatal(err)
	}
	series, err := os.ReadFile(filepath.Join("..", "internal", "mem", "series.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(text []byte) []string {
		var all []string
		for _, name := range quantity.FindAll(text, -1) {
			all = append(all, string(name))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	if ours, theirs := names(python), names(series); len(ours) < 7 || !slices.Equal(ours, theirs) {
		t.Errorf("the agent has %q, the analyses %q", ours, theirs)
	}
}
