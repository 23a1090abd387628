package oomtext

import (
	"os"
	"testing"
)

// FuzzMessage: whatever is pasted, its figures are not negative and its words are whole.
func FuzzMessage(f *testing.F) {
	for i, m := range knownMessages(f) {
		if i%9 == 0 {
			f.Add(m.Message)
		}
	}
	for _, file := range []string{"xla-tpu.txt", "xla-gpu.txt", "ray-node.txt"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		for _, n := range []int64{m.Requested.Or(0), m.Total.Or(0), m.Free.Or(0), m.Allocated.Or(0), m.Unused.Or(0)} {
			if n < 0 {
				t.Fatalf("%d in %+v", n, m)
			}
		}
		if len(Words(m)) == 0 {
			t.Fatal("no words")
		}
	})
}
