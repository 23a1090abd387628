package imagined

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

func TestHolderIsWhatHeldMost(t *testing.T) {
	loss := report.HeldLine{File: "/home/me/train.py", Line: 9, Bytes: 5 << 30, User: true}
	for want, lines := range map[string][]report.HeldLine{
		"":                                   nil,
		"train.py:9 held the most: 5.00 GiB": {loss},
		"what has no frames (autograd, or a native thread) held the most: 6.00 GiB, and of the program's lines train.py:9: 5.00 GiB": {{Function: mem.NoFrames, Bytes: 6 << 30}, loss},
		"torch/optim/adam.py:7 held the most: 6.00 GiB, and of the program's lines train.py:9: 5.00 GiB":                             {{File: "/usr/lib/python3/site-packages/torch/optim/adam.py", Line: 7, Bytes: 6 << 30}, loss},
		"what has no frames (autograd, or a native thread) held the most: 6.00 GiB":                                                  {{Bytes: 6 << 30}},
	} {
		if got := topHolder(&report.Imagined{Lines: lines}); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
}
