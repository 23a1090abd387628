package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/report"
)

// OfModel adds what the weights of a model's file take, by tensor, and what those that can be quantised would take in 8
// bits. top bounds the tensors, as that of OfMappings its names.
func OfModel(r *report.Report, m *modelfile.Model, file string, top int) {
	t := report.Table{Name: fmt.Sprintf("tensors-%d", len(r.Tables)), Title: "Tensors of " + file,
		Note: "In 8 bits: " + inEight(m.Format) + " Tensors of one dimension, and those that are not floating-point, stay as " +
			"they are. Whether the model is as good then was not looked for.",
		Columns: []report.Column{report.TextColumn("tensor", "Tensor"), report.TextColumn("type", "Type"),
			report.TextColumn("shape", "Shape"), report.CountColumn("numbers", "Numbers"),
			report.BytesColumn("bytes", "Bytes", mem.Measured),
			report.BytesColumn("int8", "In 8 bits", mem.Estimated)}}
	tensors := slices.SortedStableFunc(slices.Values(m.Tensors), func(a, b modelfile.Tensor) int {
		return cmp.Compare(b.Bytes, a.Bytes)
	})
	saved := mem.Bytes(0)
	for i := range tensors {
		if less := eightBits(&tensors[i], m.Format); less.Known() {
			saved += tensors[i].Bytes - mem.Bytes(less.Or(0))
		}
	}
	shown := first(tensors, cmp.Or(top, maxMappingNames))
	for i := range shown {
		one := &shown[i]
		t.Add(one.Name, one.Type.Name, shapeOf(one.Shape), mem.Some(one.Elements()), mem.Some(int64(one.Bytes)),
			eightBits(one, m.Format))
	}
	if rest := tensors[len(shown):]; top == 0 && len(rest) > 0 {
		t.Add(fmt.Sprintf("%s smaller ones together", report.Count(int64(len(rest)))), "", "", mem.Optional{},
			mem.Some(int64(modelfile.Bytes(rest))), mem.Optional{})
	}
	r.AddTable(t)
	addOperators(r, m.Graph, file, top)
	if r.Headline.Verdict != "" {
		return
	}
	whole := modelfile.Bytes(tensors)
	clauses := []string{fmt.Sprintf("%s has %v of weights (measured)", file, whole)}
	if len(tensors) > 0 {
		clauses = append(clauses, fmt.Sprintf("the largest tensor, %v, is `%s`", tensors[0].Bytes, tensors[0].Name))
	}
	if saved > 0 {
		clauses = append(clauses, fmt.Sprintf("in 8 bits they would take %v (estimated)", whole-saved))
	}
	clauses = append(clauses, computed(m))
	r.Headline.NotLooked = "What a run takes beside the weights was not looked for: the file does not say it. hightide plan " +
		"estimates it, hightide run measures it."
	if m.Graph != nil && len(m.Graph.Operators) > 0 {
		r.Headline.MainSource = liveSeries
		r.Headline.NotLooked = "What kernels and the runtime take was not looked for: the file does not say it. hightide run measures it."
	}
	r.Headline.Say(clauses...)
}

// Bytes of 8-bit weights: GGUF's Q8_0 has blocks of 32 numbers with a scale of two bytes, others a scale of four bytes for
// each row.
const (
	blockOfQ8, bytesOfQ8 = 32, 34
	scaleBytes           = 4
)

func inEight(f modelfile.Format) string {
	if f == modelfile.FormatGGUF {
		return "as Q8_0, 34 bytes for 32 numbers."
	}
	return "one byte a number, and a scale of four bytes for each row."
}

// eightBits is what a tensor takes in 8 bits; absent of one that stays as it is, or is no larger than that.
func eightBits(t *modelfile.Tensor, f modelfile.Format) mem.Optional {
	numbers, gguf := t.Elements(), f == modelfile.FormatGGUF
	if !t.Type.Float() || len(t.Shape) < 2 || t.Shape[0] <= 0 || gguf && t.Shape[len(t.Shape)-1]%blockOfQ8 != 0 {
		return mem.Optional{}
	}
	bytes := numbers + scaleBytes*t.Shape[0]
	if gguf {
		bytes = numbers / blockOfQ8 * bytesOfQ8
	}
	if mem.Bytes(bytes) >= t.Bytes {
		return mem.Optional{}
	}
	return mem.Some(bytes)
}

// shapeOf is as 768×3072; "" of a single number.
func shapeOf(dims []int64) string {
	var words []string
	for _, d := range dims {
		words = append(words, fmt.Sprint(d))
	}
	return strings.Join(words, "×")
}
