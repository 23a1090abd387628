package growth

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// TestCopies: what is copied to be extended is held twice for a moment, and so the peak rises by twice as much. What is
// extended where it is, or keeps each item, is held once.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		kind  string
		freed bool
		want  float64
	}{{"array", true, 200}, {"str", true, 200}, {"str", false, 100}, {"bytearray", true, 100}, {"list", true, 100}} {
		g := growing{holder: &mem.Holder{Kind: c.kind}, slope: 100,
			lines: []growingLine{{Growing: usage.Growing{Larger: c.freed}}}}
		if got := atTheirHighest([]share{{slope: g.slope, copies: g.copies()}}); got != c.want {
			t.Errorf("%s, freed %t: %v, not %v", c.kind, c.freed, got, c.want)
		}
	}
}

// TestTitleWithoutALine: what a library keeps, of which no line of the program is known, has none in its title.
func TestTitleWithoutALine(t *testing.T) {
	g := growing{holder: &mem.Holder{Name: "linecache.cache"}, slope: 1 << 20}
	if got := g.title(mem.Location{}); !strings.HasPrefix(got, "`linecache.cache` keeps 1.00 MiB") {
		t.Error(got)
	}
}
