package engine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/analyze/trace"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// program is one as XLA dumps it: with one temporary of a size, or without any assignment of buffers.
func program(name string, size uint64) []byte {
	part := func(field int, data ...[]byte) []byte {
		inner := slices.Concat(data...)
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field<<3|2)), uint64(len(inner))), inner...)
	}
	number := func(field int, value uint64) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field<<3)), value)
	}
	module := part(1, part(1, []byte(name)), part(2, []byte("main")))
	if size == 0 {
		return module
	}
	return slices.Concat(module, part(3, part(3, number(1, 0), number(2, size))))
}

// TestFolderOfPrograms: of a folder that XLA dumped into the program that needs most is explained, and is named.
func TestFolderOfPrograms(t *testing.T) {
	folder := t.TempDir()
	for name, data := range map[string][]byte{
		"module_0001.jit_init.sm_8.0_gpu_after_optimizations.hlo.pb":  program("jit_init", 4096),
		"module_0007.jit_step.sm_8.0_gpu_after_optimizations.hlo.pb":  program("jit_step", 9<<20),
		"module_0009.jit_eval.sm_8.0_gpu_after_optimizations.hlo.pb":  program("jit_eval", 5<<20),
		"module_0011.jit_other.sm_8.0_gpu_after_optimizations.hlo.pb": program("jit_other", 0),
		"module_0007.jit_step.before_optimizations.hlo.pb":            program("jit_step", 99<<20),
		"module_0007.jit_step.ptx":                                    []byte("//"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &Engine{DataDir: t.TempDir()}
	r, err := e.Explain(t.Context(), []string{folder}, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text(report.TextOptions{Width: 400})
	for _, want := range []string{"module_0007.jit_step.sm_8.0_gpu_after_optimizations.hlo.pb", (9 * mem.MiB).String(),
		folder + " has 3 programs of XLA"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if _, err := e.Explain(t.Context(), []string{t.TempDir()}, trace.Options{}); err == nil ||
		!strings.Contains(err.Error(), "is a folder without a recording") {
		t.Errorf("an empty folder: %v", err)
	}
	dumped := t.TempDir()
	file := filepath.Join(dumped, "module_0007.jit_step.sm_8.0_gpu_after_optimizations-buffer-assignment.txt")
	if err := os.WriteFile(file, []byte("BufferAssignment:\nallocation 0: size 8192:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dumped, file} {
		_, err := e.Explain(t.Context(), []string{name}, trace.Options{})
		if err == nil || !strings.Contains(err.Error(), "as text") ||
			!strings.Contains(fail.Hint(err), "xla_dump_hlo_as_proto") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
