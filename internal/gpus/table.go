package gpus

import (
	"fmt"
	"path/filepath"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Table shows the list for people.
func (l *List) Table() *report.Table {
	t := &report.Table{Name: "gpus", Title: "GPUs", Columns: []report.Column{
		{Name: "gpu", Title: "gpu"}, {Name: "name", Title: "name"}, {Name: "memory", Title: "memory", Unit: mem.UnitBytes},
		{Name: "overhead", Title: "context", Unit: mem.UnitBytes},
		{Name: "uncertainty", Title: "uncertain", Unit: mem.UnitBytes},
		{Name: "compute", Title: "cc"}, {Name: "sms", Title: "SMs", Unit: mem.UnitCount}, {Name: "price", Title: "$/h"},
		{Name: "known", Title: "known"},
	}}
	for i := range l.GPUs {
		g := &l.GPUs[i]
		known := g.Confidence
		if g.Source != "catalogue" {
			known = filepath.Base(g.Source)
		}
		if g.Scope == ScopeFormula {
			known = strings.TrimSpace(known + ", for plan alone")
		} else if !g.CUDA() {
			known = strings.TrimSpace(known + ", not with CUDA builds")
		}
		t.Add(g.Slug, g.Name, g.Total, g.Overhead, g.Uncertainty(), g.Compute, g.SMs, price(g.Price), known)
	}
	return t
}

// Sources says where each figure of a GPU comes from, a line each.
func (g *GPU) Sources() []string {
	lines := []string{
		fmt.Sprintf("memory      %v: %s", g.Total, g.TotalBasis),
		fmt.Sprintf("context     %v: %s", g.Overhead, g.OverheadBasis),
		fmt.Sprintf("tight below %v: 5 %% of the memory, or what the figures leave open (%v)", g.Tight(), g.Uncertainty()),
	}
	if g.TotalSeen != "" {
		lines = append(lines, "seen (GiB)  "+g.TotalSeen)
	}
	if g.OverheadHigh > 0 {
		lines = append(lines, fmt.Sprintf("            between %v and %v in the messages looked at", g.OverheadLow,
			g.OverheadHigh))
	}
	if g.Clock > 0 {
		lines = append(lines, fmt.Sprintf("L2, clock   %v, %g MHz: %s", g.L2, g.Clock, g.ClockBasis))
	} else if g.CUDA() {
		lines = append(lines, "L2, clock   not known: an imaginary one has 6 MiB and 1500 MHz")
	}
	if g.Price > 0 {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("price       $%s an hour: %s %s", price(g.Price), g.PriceSource,
			g.PriceDate)))
	}
	if g.PriceOther != "" {
		lines = append(lines, "elsewhere   "+g.PriceOther)
	}
	if g.Notes != "" {
		lines = append(lines, "note        "+g.Notes)
	}
	return lines
}

func price(dollars float64) string {
	if dollars <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", dollars)
}
