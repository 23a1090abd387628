package main

import (
	"slices"
	"testing"

	"hightide/internal/bench"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestNotOneFigure: trials of one matrix that are known by different figures are not left to be compared.
func TestNotOneFigure(t *testing.T) {
	run := func(matrix, what string) store.Run {
		return store.Run{Tags: map[string]string{bench.TagMatrix: matrix}, Figure: mem.Figure{Bytes: 1 << 30, What: what}}
	}
	alone := store.Run{Figure: mem.Figure{Bytes: 1 << 30, What: "on the device"}}
	got := notOneFigure([]store.Run{run("sizes", "PSS"), run("sizes", "RSS"), run("sizes", "PSS"), alone,
		run("devices", "reserved"), run("devices", "reserved"), run("devices", "")})
	want := []string{"PEAK of the trials of sizes is PSS or RSS: do not compare one kind with another. What hightide " +
		"bench prints compares each kind by itself."}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
