package modelfile

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// TestLiveIsThatOfTheLibraries: operators and what is alive while each runs are what the libraries of PyPI say of the
// same files (testdata/live.py).
func TestLiveIsThatOfTheLibraries(t *testing.T) {
	var said map[string]struct {
		Kinds []string
		Live  []mem.Bytes
	}
	for _, file := range []string{"testdata/live.json", "testdata/pte.json"} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &said)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(said) != 5 {
		t.Fatalf("%d files", len(said))
	}
	for file, want := range said {
		m, err := Read(os.DirFS("testdata"), file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var kinds []string
		for _, o := range m.Graph.Operators {
			kinds = append(kinds, o.Kind)
		}
		if live := m.Graph.Live(); !slices.Equal(kinds, want.Kinds) || !slices.Equal(live, want.Live) {
			t.Errorf("%s: %v %v, want %v", file, kinds, live, want)
		}
		unknown, _ := m.Graph.Unknown()
		if onnx := file == "unet.onnx"; m.Graph.Open != onnx || (unknown == 1) != onnx {
			t.Errorf("%s: open %v, %d unknown", file, m.Graph.Open, unknown)
		}
	}
}

// TestLiveOfGraphs: what is given stays to the end, what nobody takes dies at once, a chain of views is one value.
func TestLiveOfGraphs(t *testing.T) {
	size := func(n int64) Value { return Value{Bytes: mem.Some(n)} }
	given, asked := size(1), size(10)
	given.Kept, asked.Asked = true, true
	g := &Graph{Values: []Value{given, size(100), size(100), size(100), size(1000), asked, size(1 << 20)},
		Operators: []Operator{{"CONV_2D", []int{0}, []int{1}}, {"RESHAPE", []int{1}, []int{2}}, {"SQUEEZE", []int{2}, []int{3}},
			{"SPLIT", []int{3}, []int{4}}, {"ADD", []int{3}, []int{5}}, {"NOTHING", nil, nil}}}
	if live, want := g.Live(), []mem.Bytes{101, 101, 101, 1101, 111, 11}; !slices.Equal(live, want) {
		t.Errorf("%v, want %v", live, want)
	}
	if live := (&Graph{}).Live(); len(live) != 0 {
		t.Errorf("%v of nothing", live)
	}
}
