package words

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"a10", "a10", 0}, {"a11", "a10", 1}, {"peek", "peak", 1}, {"kitten", "sitting", 3},
		{strings.Repeat("x", 1000), "x", 63},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%.10q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %.10q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNear(t *testing.T) {
	choices := []string{"fit", "md", "explain", "last"}
	for word, want := range map[string]string{"explian": "explain", "fti": "", "fitt": "fit", "lst": "last", "foo": "",
		"pdf": "", "explorer": "", "": ""} {
		if got := Near(word, choices); got != want {
			t.Errorf("Near(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Near("a", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestNearest(t *testing.T) {
	choices := []string{"max_split_size_mb", "roundup_power2_divisions", "expandable_segments"}
	for word, want := range map[string]string{"max_split_size": "max_split_size_mb",
		"expandable_segment": "expandable_segments"} {
		if got := Nearest(word, choices); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
