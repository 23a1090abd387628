package trace

import (
	"fmt"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestManyMappings: beyond so many names the smallest are one row, and all together they stay what they are.
func TestManyMappings(t *testing.T) {
	m, whole := &mem.Mappings{}, int64(0)
	for i := range int64(maxMappingNames + 3) {
		m.List = append(m.List, &mem.Mapping{Name: fmt.Sprint(i), Count: 2, RSS: mem.Some(i)})
		whole += i
	}
	r := report.New()
	OfMappings(r, m, "x", 0)
	rows, sum := r.Tables[0].Rows, int64(0)
	for _, row := range rows {
		sum += row[2].(int64)
	}
	if last := rows[len(rows)-1]; len(rows) != maxMappingNames+1 || sum != whole ||
		fmt.Sprint(last) != "[3 smaller ones together 6 3]" {
		t.Errorf("%d rows, %d of %d bytes, at last %v", len(rows), sum, whole, last)
	}
}

// TestMappingsWithoutRSS: what is not stated is not told as 0.
func TestMappingsWithoutRSS(t *testing.T) {
	r := report.New()
	OfMappings(r, &mem.Mappings{List: []*mem.Mapping{{Name: "x", Count: 1}}}, "x.smaps", 0)
	if !strings.Contains(r.Headline.Verdict, "does not say what is resident") {
		t.Error(r.Headline.Verdict)
	}
}
