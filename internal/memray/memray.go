// Package memray has memray itself read its captures: their form is its own, and changes with its versions.
package memray

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/format/stacks"
)

// Table hands the table that memray makes of a capture to read. The table is gone afterwards.
func Table(ctx context.Context, path string, read func(table io.Reader) error) error {
	const hint = "pip install memray, in the environment that recorded it or any other on PATH"
	memray, err := exec.LookPath("memray")
	if err != nil {
		return fail.Environment(hint, "%s is a capture of memray, which is not installed here", path)
	}
	dir, err := os.MkdirTemp("", "hightide-memray-")
	if err != nil {
		return fail.Environment("is there room in the temporary folder?", "read %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	whole, err := filepath.Abs(path)
	if err != nil {
		return fail.Environment("name the file from the root", "read %s: %w", path, err)
	}
	table := filepath.Join(dir, "table.csv")
	transform := exec.CommandContext(ctx, memray, "transform", "csv", "--force", "-o", table, whole)
	if said, err := transform.CombinedOutput(); err != nil {
		return refused(ctx, memray, path, dir, lastLine(said))
	}
	file, err := os.Open(table)
	if err != nil {
		return fail.Environment("is memray whole?", "memray made no table of %s: %w", path, err)
	}
	defer file.Close()
	return read(file)
}

// refused says why memray did not read a capture: a memray reads one format, which a capture of its own tells.
func refused(ctx context.Context, memray, path, dir, said string) error {
	probe := filepath.Join(dir, "probe.bin")
	// without it the format stays unknown
	_ = exec.CommandContext(ctx, memray, "run", "--quiet", "--force", "-o", probe, "-c", "pass").Run()
	has, reads := formatOf(path), formatOf(probe)
	if has == 0 || reads == 0 || has == reads {
		return fail.Input("was it copied whole, and had the program ended?", "memray cannot read %s: %s", path, said)
	}
	age := "an older"
	if has > reads {
		age = "a newer"
	}
	return fail.Input("run `memray transform csv` of the memray that recorded it: its table can be read",
		"%s is of memray's format %d, and %s reads format %d: it was recorded by %s memray", path, has, memray, reads, age)
}

// formatOf is the number of a capture's format; 0: not known.
func formatOf(path string) uint32 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	head := make([]byte, 64)
	n, _ := io.ReadFull(file, head)
	return stacks.MemrayFormat(head[:n])
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
