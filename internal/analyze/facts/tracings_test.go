package facts

import (
	"slices"
	"testing"
)

// TestPadded: each length is padded to less than twice itself, by lengths that came; where that spares none, there are no
// such lengths.
func TestPadded(t *testing.T) {
	for text, want := range map[string][]int64{
		"32,48,64,80,96,112": {48, 112}, "1,2,3,4,5,6": {1, 3, 6}, "8,16,32,64": nil, "0,1,2": nil, "7": nil, "": nil,
		"9,8": nil, "5,x": nil, "100,101": {101},
	} {
		if got := (&Tracing{Lengths: lengths(text)}).Padded(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
	}
}
