package system_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/system"
)

// TestHoles goes from data to data through a file with a hole: all that was written is met, and there is an end.
func TestHoles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const far = 8 << 20
	begin, last := []byte("begin"), []byte("end")
	for at, text := range map[int64][]byte{0: begin, far: last} {
		if _, err := f.WriteAt(text, at); err != nil {
			t.Fatal(err)
		}
	}
	met := make([]byte, far+len(last))
	pieces := 0
	for at := int64(0); ; pieces++ {
		from, err := system.NextData(f, at)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || from < at || pieces > 2 {
			t.Fatalf("data from %d on: %d, %v", at, from, err)
		}
		if at, err = system.NextHole(f, from); err != nil || at <= from {
			t.Fatalf("a hole from %d on: %d, %v", from, at, err)
		}
		if _, err := f.ReadAt(met[from:at], from); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.HasPrefix(met, begin) || !bytes.HasSuffix(met, last) {
		t.Errorf("%d pieces do not have all that was written", pieces)
	}
	if from, err := system.NextData(bytes.NewReader(begin), 2); from != 2 || err != nil {
		t.Errorf("data of what tells no holes: %d, %v", from, err)
	}
	if hole, err := system.NextHole(bytes.NewReader(begin), 2); hole != int64(len(begin)) || err != nil {
		t.Errorf("a hole of what tells none: %d, %v", hole, err)
	}
	if _, err := system.NextData(bytes.NewReader(begin), 5); !errors.Is(err, io.EOF) {
		t.Errorf("data behind the end: %v", err)
	}
}
