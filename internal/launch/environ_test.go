package launch

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestComposeKeepsWhatTheUserSet(t *testing.T) {
	helpers := []Helper{{Name: "agent", PythonPath: "/h/hook"},
		{Name: "heap", Preload: "/h/heap.so", Env: map[string]string{"HIGHTIDE_HEAP": "/h/heap.so"}}}
	got := Environment([]string{"A=1", "PYTHONPATH=/mine:/other", "LD_PRELOAD=/usr/lib/jemalloc.so",
		"HIGHTIDE_RUN_ID=outer", "A B", "PATH=/bin"},
		helpers, map[string]string{"HIGHTIDE_RUN_ID": "inner"})
	want := []string{"A=1", "A B", "PATH=/bin", "HIGHTIDE_HEAP=/h/heap.so", "HIGHTIDE_RUN_ID=inner",
		"LD_PRELOAD=/h/heap.so:/usr/lib/jemalloc.so", "PYTHONPATH=/h/hook:/mine:/other"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	smi := []Helper{{Name: "device", Programs: "/h/bin"}}
	if got := Environment([]string{"PATH=/bin"}, smi, nil); !slices.Equal(got, []string{"PATH=/h/bin:/bin"}) {
		t.Errorf("programs: %q", got)
	}
	got = Environment([]string{"PYTHONPATH="}, helpers, nil)
	if !slices.Contains(got, "PYTHONPATH=/h/hook") {
		t.Errorf("%q: an empty PYTHONPATH must not leave a colon behind", got)
	}
	if got := Environment([]string{"X=1"}, nil, nil); !slices.Equal(got, []string{"X=1"}) {
		t.Errorf("without helpers %q", got)
	}
}

func TestExtractOnceAndOnlyWhereItIsSafe(t *testing.T) {
	files := map[string][]byte{"agent/hook/sitecustomize.py": []byte("pass\n"), "heap/lib.so": {1, 2, 3}}
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(base, "good")
	bundle := func() *Bundle {
		b, err := NewBundle(func() (map[string][]byte, error) { return files, nil })
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dir, err := Extract(bundle(), filepath.Join(base, "with space"), open, good)
	if err != nil || filepath.Dir(dir) != good {
		t.Fatalf("extracted to %q, %v; want a folder in %q", dir, err, good)
	}
	data, err := os.ReadFile(filepath.Join(dir, "agent/hook/sitecustomize.py"))
	if err != nil || string(data) != "pass\n" {
		t.Errorf("file holds %q, %v", data, err)
	}
	if again, err := Extract(bundle(), good); err != nil || again != dir {
		t.Errorf("second time: %q, %v", again, err)
	}
	text := bytes.Repeat([]byte("a library\n"), 1000)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(text)
	_ = writer.Close()
	delete(files, "heap/lib.so")
	files["heap/lib.so.gz"] = packed.Bytes()
	for range 2 { // extracted, then found
		dir, err = Extract(bundle(), good)
		if data, _ := os.ReadFile(filepath.Join(dir, "heap/lib.so")); err != nil || !bytes.Equal(data, text) {
			t.Errorf("compressed: %d bytes, %v; want %d", len(data), err, len(text))
		}
	}
	if !bundle().Has("heap/lib.so") {
		t.Error("a compressed file has not its name")
	}
	delete(files, "heap/lib.so.gz")
	files["heap/lib.so"] = []byte{4}
	if other, err := Extract(bundle(), good); err != nil || other == dir {
		t.Errorf("other content: %q, %v", other, err)
	}
	if _, err := Extract(bundle(), filepath.Join(base, "a:b")); err == nil {
		t.Error("a path with a colon cannot stand in PYTHONPATH")
	}
}
