package modelfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hightide/internal/mem"
)

// TestWhatAProgramSetsAside: ExecuTorch's planner has said in the file how much it sets aside for what is computed.
func TestWhatAProgramSetsAside(t *testing.T) {
	for file, want := range map[string]string{"small.pte": "sets 35.0 KiB aside", "backend.pte": "sets 1.38 KiB aside"} {
		m, err := Read(os.DirFS("testdata"), file)
		if err != nil || !strings.Contains(strings.Join(m.Shape.Unknown, " "), want) {
			t.Errorf("%s: %v %v, want %s", file, m, err, want)
		}
	}
}

// TestSizesAreThoseOfTheLibraries: names, types, shapes and bytes are what the libraries of PyPI say of the same files
// (testdata/files.py), and what torch.export and LiteRT's own schema say (testdata/graphs.py).
func TestSizesAreThoseOfTheLibraries(t *testing.T) {
	said := map[string][][4]any{}
	for _, list := range []string{"testdata/files.json", "testdata/graphs.json"} {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &said); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 10 {
		t.Fatalf("%d files", len(said))
	}
	for file, rows := range said {
		m, err := Read(os.DirFS("testdata"), file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if len(m.Tensors) != len(rows) {
			t.Errorf("%s: %d tensors, want %d", file, len(m.Tensors), len(rows))
		}
		for _, row := range rows {
			i := slices.IndexFunc(m.Tensors, func(o Tensor) bool { return o.Name == row[0] })
			if i < 0 {
				t.Errorf("%s: no tensor %v", file, row[0])
				continue
			}
			got := m.Tensors[i]
			if got.Type.Name != row[1] || got.Bytes != mem.Bytes(row[3].(float64)) {
				t.Errorf("%s: %+v, want %v", file, got, row)
			}
			if shape, _ := json.Marshal(append([]int64{}, got.Shape...)); string(shape) != compact(row[2]) {
				t.Errorf("%s: shape %s of %s, want %s", file, shape, got.Name, compact(row[2]))
			}
		}
	}
}

func compact(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestShapeOfGGUF: what a header says of the architecture, in both byte orders.
func TestShapeOfGGUF(t *testing.T) {
	for _, file := range []string{"little.gguf", "big.gguf"} {
		m, err := Read(os.DirFS("testdata"), file)
		if err != nil {
			t.Fatal(err)
		}
		want := []Cache{{Kind: CacheAttention, Layers: 3, Heads: 2, Key: 32, Value: 32}}
		if s := m.Shape; s.Layers != 3 || s.Context != 2048 || s.Vocabulary != 50 || !slices.Equal(s.Caches, want) {
			t.Errorf("%s: %+v", file, s)
		}
	}
}

// sound are files of each format.
var sound = []string{"numpy.safetensors", "low.safetensors", "little.gguf", "big.gguf", "graph.onnx",
	"dense.tflite", "int8.tflite",
	"small.pt2", "small.pte", "backend.pte", "state.pte", "unet.tflite", "unet.onnx"}

// damaged are files with something wrong in them, each from a sound one.
func damaged(sound []byte, random *rand.Rand) []byte {
	out := slices.Clone(sound)
	switch random.IntN(4) {
	case 0: // not copied whole
		return out[:random.IntN(len(out))]
	case 1: // a byte is another
		out[random.IntN(min(len(out), 1500))] ^= byte(1 + random.IntN(255))
	case 2: // a length lies
		binary.LittleEndian.PutUint64(out[random.IntN(min(len(out), 1500)-8):], random.Uint64())
	case 3: // a stretch is another's
		copy(out[random.IntN(min(len(out), 1500)):], out[random.IntN(len(out)):])
	}
	return out
}

// TestDamagedFiles: 1,200 damaged headers give a value or an error of one line that names the file, in little memory.
func TestDamagedFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for _, name := range sound {
		whole, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			data := damaged(whole, random)
			used := allocated(func() {
				if _, err := Read(fstest.MapFS{name: {Data: data}}, name); err != nil {
					failed++
					checkError(t, name, err)
				}
			})
			if used > 64<<20 {
				t.Errorf("%s: %v allocated for a file of %d bytes", name, mem.Bytes(used), len(data))
			}
		}
	}
	if failed < 450 {
		t.Errorf("only %d of 1,200 files were refused", failed)
	}
}

func checkError(t *testing.T, name string, err error) {
	t.Helper()
	var own *Error
	if !errors.As(err, &own) && !strings.HasPrefix(err.Error(), "two tensors") {
		t.Errorf("%s: %v is no *Error", name, err)
	}
	if strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 400 {
		t.Errorf("%s: not a line: %q", name, err)
	}
}

// allocated is how many bytes a call allocates in all.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLyingHeaders: lengths beyond any file are refused before memory is taken for them.
func TestLyingHeaders(t *testing.T) {
	header := func(text string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	}
	gguf := func(rest ...uint64) []byte {
		out := append([]byte("GGUF"), 3, 0, 0, 0)
		for _, n := range rest {
			out = binary.LittleEndian.AppendUint64(out, n)
		}
		return out
	}
	for name, data := range map[string][]byte{
		"huge.safetensors":     append(binary.LittleEndian.AppendUint64(nil, 1<<62), '{'),
		"tensor.safetensors":   header(`{"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,4]}}`),
		"negative.safetensors": header(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,-4]}}`),
		"type.safetensors":     header(`{"a":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}`),
		"hole.safetensors":     append(header(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}`), 0, 0, 0, 0),
		"list.safetensors":     header(`{"a":[1,2]}`),
		"tail.safetensors":     append(header(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`), 0, 0),
		"short.safetensors":    header(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`),
		"nothing.safetensors":  {},
		"tensors.gguf":         gguf(1<<60, 0),
		"values.gguf":          gguf(0, 1<<60),
		"text.gguf":            gguf(0, 1, 1<<62),
		"old.gguf":             []byte("GGUF\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		"nothing.gguf":         {},
		"other.gguf":           []byte("PK\x03\x04 is another format"),
	} {
		used := allocated(func() {
			if _, err := Read(fstest.MapFS{name: {Data: data}}, name); err == nil {
				t.Errorf("%s: no error", name)
			} else {
				checkError(t, name, err)
			}
		})
		if used > 1<<20 {
			t.Errorf("%s: %v allocated", name, mem.Bytes(used))
		}
	}
}

// TestHostileHeaders: what is well-formed and made to fill memory is refused, or read, in less than 200 MB in all.
func TestHostileHeaders(t *testing.T) {
	const size = 30 << 20
	header := func(begin, repeated, end string) []byte {
		var b bytes.Buffer
		b.Write(make([]byte, 8))
		b.WriteString(begin)
		for b.Len() < size {
			b.WriteString(repeated)
		}
		b.WriteString(end)
		binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
		return b.Bytes()
	}
	values := func() []byte { // 4,000 lists of 4,000 numbers, and texts
		out := append([]byte("GGUF"), 3, 0, 0, 0)
		word := binary.LittleEndian.AppendUint64
		out = word(word(out, 0), 8000)
		for i := range 8000 {
			key := fmt.Sprint("key", i)
			out = append(word(out, uint64(len(key))), key...)
			if i%2 == 0 {
				out = append(append(out, 8, 0, 0, 0), word(nil, 3000)...)
				out = append(out, make([]byte, 3000)...)
			} else {
				out = append(append(out, 9, 0, 0, 0, 0, 0, 0, 0), word(nil, 4000)...)
				out = append(out, make([]byte, 4000)...)
			}
		}
		return out
	}
	folder := t.TempDir()
	var names []string
	for name, data := range map[string][]byte{
		"name.safetensors":         header(`{"`, "aaaaaaaa", `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`),
		"metadata.safetensors":     header(`{"__metadata__":{"a":"b"`, `,"c":"d"`, `}}`),
		"shape.safetensors":        header(`{"a":{"dtype":"U8","shape":[1`, `,1`, `],"data_offsets":[0,1]}}`),
		"nested.safetensors":       header(`{"a":{"x":`, `[`, `}`),
		"many.safetensors":         header(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, `,"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, `}`),
		"a.safetensors.index.json": header(`{"metadata":{},"weight_map":{"a":"b.safetensors"`, `,"c":"d.safetensors"`, `}}`)[8:],
		"values.gguf":              values(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		var err error
		used := grown(func() { _, err = Read(os.DirFS(folder), name) })
		if used > 200_000_000 {
			t.Errorf("%s: the heap grew by %d bytes, %v", name, used, err)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%s: %.500s", name, err)
		}
	}
}

// grown is by how many bytes the heap grows in a call, garbage that was not collected with it.
func grown(call func()) int64 {
	held := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapSys - m.HeapReleased)
	}
	debug.FreeOSMemory()
	before := held()
	call()
	return held() - before
}

// TestFoldersOfWeights: which of a folder's files are the model.
func TestFoldersOfWeights(t *testing.T) {
	sound, err := os.ReadFile("testdata/low.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile("testdata/numpy.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	file := func(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }
	index := file([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"x-2.safetensors","b":"x-1.safetensors"}}`))
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"index":        {fstest.MapFS{"model.safetensors.index.json": index, "x-1.safetensors": file(sound), "x-2.safetensors": file(other), "y.safetensors": file(sound)}, []string{"x-1.safetensors", "x-2.safetensors"}},
		"one":          {fstest.MapFS{"model.safetensors": file(sound), "y.safetensors": file(other)}, []string{"model.safetensors"}},
		"consolidated": {fstest.MapFS{"consolidated.safetensors": file(sound), "z.safetensors": file(other)}, []string{"z.safetensors"}},
	} {
		m, err := Read(test.files, "")
		if err != nil || !slices.Equal(m.Files, test.want) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	outside := file([]byte(`{"weight_map":{"a":"../../etc/x.safetensors"}}`))
	if _, err := Read(fstest.MapFS{"model.safetensors.index.json": outside}, ""); err == nil {
		t.Error("an index may name a file outside its folder")
	}
	if _, err := Read(fstest.MapFS{"model.safetensors.index.json": index, "x-1.safetensors": file(sound)}, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part is missing: %v", err)
	}
	var several *SeveralError
	if _, err := Read(fstest.MapFS{"a.gguf": file(nil), "b.gguf": file(nil)}, ""); !errors.As(err, &several) {
		t.Errorf("two models: %v", err)
	}
	if _, err := Read(fstest.MapFS{"a.txt": file(nil)}, ""); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
}

// TestManyTensors: a header of a hundred thousand tensors, as the largest models have, in less than 200 MB.
func TestManyTensors(t *testing.T) {
	var b bytes.Buffer
	b.WriteByte('{')
	const n = 100_000
	for i := range n {
		fmt.Fprintf(&b, `"model.layers.%d.mlp.experts.%d.gate_proj.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[%d,%d]},`,
			i/1000, i%1000, 4*i, 4*i+4)
	}
	text := append(bytes.TrimSuffix(b.Bytes(), []byte(",")), '}')
	data := append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), make([]byte, 4*n)...)
	files := fstest.MapFS{"model.safetensors": {Data: data}}
	var m *Model
	var err error
	if used := allocated(func() { m, err = Read(files, "model.safetensors") }); used > 200_000_000 {
		t.Errorf("%v allocated", mem.Bytes(used))
	}
	if err != nil || len(m.Tensors) != n || Bytes(m.Tensors) != 4*n {
		t.Errorf("%v", err)
	}
}

// FuzzRead: a stranger's file gives a model or an error, never both and never a panic, and a tensor of a model has the
// size that its type and shape make.
func FuzzRead(f *testing.F) {
	for _, name := range sound {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"vocab_size":10,"num_attention_heads":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.safetensors", "a.gguf", "a.onnx", "config.json", "a.tflite", "a.pt2", "a.pte"} {
			m, err := Read(fstest.MapFS{name: {Data: data}}, name)
			if err != nil && m != nil && m.Tensors != nil {
				t.Fatalf("%s: a model and %v", name, err)
			}
			if err != nil {
				continue
			}
			for i := range m.Tensors {
				if m.Format == FormatTFLite || m.Format == FormatPT2 { // the file holds them, sparse or as part of others
					if n := m.Tensors[i].Bytes; n < 0 || n > mem.Bytes(len(data)) {
						t.Fatalf("%s: %+v", name, m.Tensors[i])
					}
					continue
				}
				if m.Tensors[i].Elements()%m.Tensors[i].Type.Block != 0 {
					continue // the last byte of a tensor of ONNX may be half full
				}
				if size, err := m.Tensors[i].Type.size(m.Tensors[i].Shape); err != nil || size != m.Tensors[i].Bytes || size < 0 {
					t.Fatalf("%s: %+v, %v", name, m.Tensors[i], err)
				}
			}
			_ = numbers(&m.Shape, 1000)
			m.Loaded()
		}
	})
}
