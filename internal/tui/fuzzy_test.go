package tui

import "testing"

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		filter, text string
		want         bool
	}{
		{"", "anything", true},
		{"trpy", "python train.py", true},
		{"train", "python train.py", true},
		{"rain", "python train.py", true}, // within a word, where it stands whole
		{"ran", "python train.py", false}, // its letters do not begin a word
		{"py 48", "python train.py --batch-size 48", true},
		{"py 49", "python train.py --batch-size 48", false},
		{"Train", "python train.py", false},
		{"train", "python Train.py", true},
		{"bt", "a bert", true},
		{"na", "naïve", true},
	} {
		if got := matches(test.filter, test.text); got != test.want {
			t.Errorf("%q in %q: %v", test.filter, test.text, got)
		}
	}
}
