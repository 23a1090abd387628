package trace_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/report"
)

// explained is what is said of a file of modelfile's, which tests of that package hold against its writer.
func explained(t *testing.T, name string, top int) (*report.Report, map[string][]report.Cell) {
	t.Helper()
	m, err := modelfile.Read(os.DirFS("../../modelfile/testdata"), name)
	if err != nil {
		t.Fatal(err)
	}
	r, rows := report.New(), map[string][]report.Cell{}
	trace.OfModel(r, m, name, top)
	for _, row := range r.Tables[0].Rows {
		rows[row[0].(string)] = row
	}
	return r, rows
}

// TestModelInEightBits: matrices of floating-point numbers can be quantised. What has one dimension, or has other
// numbers, stays, and so does what would not be smaller.
func TestModelInEightBits(t *testing.T) {
	r, rows := explained(t, "graph.onnx", 0)
	for name, want := range map[string]report.Cell{
		"apart":    int64(1000*1000 + 4*1000),
		"float16":  int64(3*5 + 4*3),
		"constant": nil, // one dimension
		"int32":    nil,
	} {
		if got := rows[name][5]; got != want {
			t.Errorf("%s in 8 bits: %v, want %v", name, got, want)
		}
	}
	if got := rows["apart"][2:5]; got[0] != "1000×1000" || got[1] != int64(1_000_000) || got[2] != int64(4_000_000) {
		t.Errorf("apart: %v", got)
	}
	if !strings.Contains(r.Headline.Verdict, "the largest tensor, 3.81 MiB, is `apart`") {
		t.Error(r.Headline.Verdict)
	}
	if _, rows := explained(t, "int8.tflite", 0); rows["matmul"][5] != nil {
		t.Errorf("already in 8 bits: %v", rows["matmul"])
	}
}

// TestModelOfWholeBlocks: Q8_0 takes rows of whole blocks of 32 numbers, others stay.
func TestModelOfWholeBlocks(t *testing.T) {
	one := func(shape ...int64) modelfile.Tensor {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		return modelfile.Tensor{Name: "w", Type: modelfile.F16, Shape: shape, Bytes: mem.Bytes(2 * n)}
	}
	for _, test := range []struct {
		tensor modelfile.Tensor
		want   []report.Cell // the last cell, where there is one
	}{
		{one(4, 64), []report.Cell{int64(4 * 2 * 34)}},
		{one(64, 8), nil},
	} {
		r := report.New()
		trace.OfModel(r, &modelfile.Model{Format: modelfile.FormatGGUF, Tensors: []modelfile.Tensor{test.tensor}}, "m.gguf", 0)
		if got := r.Tables[0].Rows[0][5:]; !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.tensor.Shape, got, test.want)
		}
	}
}

// TestModelTop: the largest alone where so many are asked for.
func TestModelTop(t *testing.T) {
	if r, _ := explained(t, "graph.onnx", 3); len(r.Tables[0].Rows) != 3 || r.Tables[0].Rows[0][0] != "apart" {
		t.Errorf("%v", r.Tables[0].Rows)
	}
}
