package bench

import (
	"reflect"
	"testing"

	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestHostHoldings: parts of the peak go by the name that they have in every run, and each row keeps its own label.
func TestHostHoldings(t *testing.T) {
	parts := report.Table{Name: "composition", Columns: []report.Column{report.TextColumn("what", "what"),
		report.BytesColumn("bytes", "bytes", mem.Measured),
		report.TextColumn("label", "label"), report.TextColumn("part", "")}}
	parts.Add("other allocations (activations: data)", 700, mem.Sampled, "allocations")
	parts.Add("process DataLoader worker (pid 7) (RSS: pages it shares count again)", 50, mem.Measured,
		"DataLoader workers")
	parts.Add("not known", mem.Optional{}, mem.Measured, "rest")
	lines := report.Table{Name: "sites", Columns: []report.Column{report.TextColumn("line", "line"),
		report.BytesColumn("bytes", "bytes", mem.Sampled)}}
	lines.Add("at::mm", 600)
	other := report.Table{Name: "phases", Columns: lines.Columns}
	other.Add("forward", 1)
	got := hostHoldings(&report.Report{Part: report.Part{Tables: []report.Table{parts, lines, other}}})
	want := []matrix.Holding{
		{By: "part", Name: "allocations", Bytes: 700, Label: mem.Sampled},
		{By: "part", Name: "DataLoader workers", Bytes: 50, Label: mem.Measured},
		{By: "line", Name: "at::mm", Bytes: 600, Label: mem.Sampled},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
