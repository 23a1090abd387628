package shm

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// lineVector is what testdata/channel/lines.py had a real interpreter write.
type lineVector struct {
	Python  uint16
	Version string
	Cases   []struct {
		Name  string
		First int32
		Table string
		Lines [][2]*int // [instructions, line or null]
	}
	Frames [][3]int // case, lasti, line
}

func lineVectors(t testing.TB) map[string]lineVector {
	paths, err := filepath.Glob("../../testdata/channel/lines-*.json")
	if err != nil || len(paths) < 6 {
		t.Fatalf("only %d vectors of line tables: %v", len(paths), err)
	}
	vectors := map[string]lineVector{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v lineVector
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		vectors[v.Version] = v
	}
	return vectors
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	bytes, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestLines: the line of every instruction is the one that the interpreter itself gives.
func TestLines(t *testing.T) {
	for version, v := range lineVectors(t) {
		t.Run(version, func(t *testing.T) {
			instructions := 0
			for _, c := range v.Cases {
				table := unhex(t, c.Table)
				lasti := int32(0)
				for _, run := range c.Lines {
					for range *run[0] {
						line, ok := Line(v.Python, table, c.First, lasti)
						if ok != (run[1] != nil) || ok && line != *run[1] {
							t.Fatalf("%s at %d: line %d, %v", c.Name, lasti, line, ok)
						}
						lasti += 2
						instructions++
					}
				}
			}
			if instructions < 5000 || len(v.Frames) < 4 {
				t.Fatalf("only %d instructions and %d frames", instructions, len(v.Frames))
			}
			for _, f := range v.Frames {
				c := v.Cases[f[0]]
				if line, ok := Line(v.Python, unhex(t, c.Table), c.First, int32(f[1])); !ok || line != f[2] {
					t.Errorf("frame of %s at %d: line %d, want %d", c.Name, f[1], line, f[2])
				}
			}
		})
	}
}

// FuzzLine: any table gives a line that is possible, or none, and never a panic.
func FuzzLine(f *testing.F) {
	for _, v := range lineVectors(f) {
		for _, c := range v.Cases[:4] {
			f.Add(v.Python, unhex(f, c.Table), c.First, int32(6))
		}
	}
	f.Add(uint16(0x030b), []byte{0xf7}, int32(1), int32(0))
	f.Fuzz(func(t *testing.T, python uint16, table []byte, first, lasti int32) {
		line, ok := Line(python, table, first, lasti)
		if !ok && line != 0 || line < 0 {
			t.Fatalf("line %d, %v", line, ok)
		}
	})
}
