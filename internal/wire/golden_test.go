package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/mem"
)

var update = flag.Bool("update", false, "write the vectors of testdata/recording that are not there yet")

const vectors = "../../testdata/recording"

// TestVectors reads recordings as earlier versions wrote them. A vector is never written again:
// what a user has on disk does not change either. See testdata/recording/README.md.
func TestVectors(t *testing.T) {
	for name, make := range map[string]func() []byte{
		"v1-every-kind": func() []byte { return encode(t, false, everyKind()...) },
		"v1-imagined":   func() []byte { return encode(t, false, imagined()...) },
		"v1-blocks":     func() []byte { return encode(t, true, everyKind()...) },
		"v1-cut-off":    func() []byte { data := blocks(t, 6); return data[:len(data)-9] },
		"v1-damaged": func() []byte {
			data := blocks(t, 6)
			data[bounds(data)[3][0]+blockHeaderSize+2] ^= 0x10
			return data
		},
		"v1-unknown-kind": func() []byte {
			var file bytes.Buffer
			w, _ := NewWriter(&file)
			w.raw, w.frames = append(w.raw, 0xff, 0x07, 3, 'a', 'b', 'c'), 1
			_ = w.Write(mem.End{Time: 1})
			_ = w.Close()
			return file.Bytes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(vectors, name+".hightide")
			if _, err := os.Stat(path); err != nil && *update {
				data := make()
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(vectors, name+".json"), describe(t, data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(vectors, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(t, data); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// describe is what a reader makes of a recording, as JSON: a line for each frame.
func describe(t *testing.T, data []byte) []byte {
	frames, r := readAll(t, data)
	var out bytes.Buffer
	line := func(kind string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "{%q: %q, %q: %s},\n", "kind", kind, "value", text)
	}
	out.WriteString("[\n")
	for _, f := range frames {
		line(fmt.Sprintf("%T", f)[len("mem."):], f)
	}
	for _, d := range r.Damage() {
		line("damage", d)
	}
	line("unknown", r.Unknown())
	return append(out.Bytes()[:out.Len()-2], "\n]\n"...)
}
