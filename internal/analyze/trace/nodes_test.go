package trace

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestNodes: the node that raised the peak most leads; what the profile does not say is absent, and said so.
func TestNodes(t *testing.T) {
	nodes := []mem.NodeRuns{{Name: "/a", Operator: "Add", Runs: 2, Time: 3000, Output: mem.Some(64)},
		{Name: "/b", Operator: "Conv", Runs: 2, Time: 5000, Output: mem.Some(32)}}
	r := report.New()
	OfNodes(r, &mem.NodeProfile{Nodes: nodes}, "old.json", 0)
	if got := r.Headline.Verdict; !strings.Contains(got, "does not say what the arena held") ||
		!strings.Contains(got, "the largest output, 64 B, is of `/a`") || len(r.Series) != 0 {
		t.Errorf("%s %+v", got, r.Series)
	}
	if row := r.Tables[0].Rows[0]; row[0] != "/a" || len(row) != 5 { // what is absent everywhere is no column
		t.Errorf("%v", row)
	}
	nodes[0].Raised, nodes[1].Raised = mem.Some(8), mem.Some(100)
	arenas := []mem.Arena{{Provider: "CPU", Peak: 2048, Held: 4096, X: []int64{1, 2}, Y: []int64{2048, 10}},
		{Provider: "GPU", Peak: 1024, X: []int64{3}, Y: []int64{1024}}}
	r = report.New()
	OfNodes(r, &mem.NodeProfile{Nodes: nodes, Arenas: arenas}, "new.json", 1)
	want := "new.json: the arena of CPU had at most 2.00 KiB in use, and held at most 4.00 KiB (measured); the arena of GPU " +
		"had at most 1.00 KiB in use (measured); `/b` raised its peak most, by 100 B."
	if got := r.Headline.Verdict; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if len(r.Tables[0].Rows) != 1 || r.Tables[0].Rows[0][0] != "/b" || !strings.Contains(r.Tables[0].Note, "1 node more") {
		t.Errorf("%v %s", r.Tables[0].Rows, r.Tables[0].Note)
	}
	if len(r.Series) != 2 || r.Series[1].Of != "GPU" || r.Series[1].Y[0] != 1024 {
		t.Errorf("%+v", r.Series)
	}
}
