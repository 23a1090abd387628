package smaps

import (
	"fmt"
	"strings"
	"testing"
)

// TestSums: the mappings of one file are one entry; what the kernel did not state stays absent.
func TestSums(t *testing.T) {
	m, err := Read(strings.NewReader("1000-2000 r--p 0 00:0 0 /lib/x.so\nRss: 4 kB\nSwap: 0 kB\n" +
		"2000-4000 rw-p 0 00:0 0 /lib/x.so\r\nRss: 8 kB\r\nPss: 2 kB\r\n4000-5000 rw-p 0 00:0 0\nRss: 1 kB\n"))
	if err != nil || m.Rollup || len(m.List) != 2 {
		t.Fatal(m, err)
	}
	for _, of := range m.List {
		got := fmt.Sprint(of.Count, of.RSS.Or(-1), of.PSS.Or(-1), of.Swap.Or(-1), of.PrivateDirty.Or(-1))
		if want := map[string]string{"x.so": "2 12288 2048 0 -1", "": "1 1024 -1 -1 -1"}[of.Name]; got != want {
			t.Errorf("%q: %s, want %s", of.Name, got, want)
		}
	}
}

// TestTooMuch: sums of what no machine has are an error, never a number that wrapped around.
func TestTooMuch(t *testing.T) {
	one := "1000-2000 r--p 0 00:0 0 [heap]\nRss: 70368744177664 kB\n" // 64 PiB
	if _, err := Read(strings.NewReader(one)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(strings.NewReader(strings.Repeat(one, 200))); err == nil || !strings.Contains(err.Error(), "line 5: \"[heap]\" holds more than 65536 TiB") {
		t.Fatal(err)
	}
}
