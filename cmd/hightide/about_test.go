package main

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamedPages: what hints and help say to read is carried by the program, and no file is named that is not there.
func TestNamedPages(t *testing.T) {
	known := findingKinds()
	asked := regexp.MustCompile("hightide about ([a-z]+)")
	file := regexp.MustCompile(`docs/(bench|explain|imagine|mcp|metrics|sdk|team|tune|formats/intake)\.md`)
	found := 0
	must := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		top, _, _ := strings.Cut(path, "/")
		if err != nil || d.IsDir() && top != "." && top != "cmd" && top != "internal" {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, line := range strings.Split(readFile(t, "../../"+path), "\n") {
			if line, _, _ = strings.Cut(line, "// "); file.MatchString(line) {
				t.Errorf("%s: an installed program has no folder docs: %s", path, line)
			}
			for _, name := range asked.FindAllStringSubmatch(line, -1) {
				if found++; !slices.Contains(known, name[1]) {
					t.Errorf("%s: %s: there is none", path, name[0])
				}
			}
		}
		return nil
	})
	if must != nil || found < 15 {
		t.Errorf("%v, %d found", must, found)
	}
}
