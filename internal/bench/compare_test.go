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
	got := hostHoldings(&report.Report{Part: report.Part{
		Parts: []report.Holding{{Kind: "allocations", Name: "allocations", Bytes: 700, Half: 9, Label: mem.Sampled},
			{Kind: "process", Name: "DataLoader workers", Bytes: 50, Label: mem.Measured}},
		Lines: &report.HoldingLines{Lines: []report.Holding{{Name: "at::mm", Bytes: 600, Label: mem.Sampled}}, Total: 900},
	}})
	want := []matrix.Holding{
		{By: "part", Name: "allocations", Bytes: 700, Label: mem.Sampled},
		{By: "part", Name: "DataLoader workers", Bytes: 50, Label: mem.Measured},
		{By: "line", Name: "at::mm", Bytes: 600, Label: mem.Sampled},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
