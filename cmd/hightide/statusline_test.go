package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hightide/internal/observe"
)

// TestCompilingIsTold: in the foot of a terminal, elsewhere after one minute, two, four.
func TestCompilingIsTold(t *testing.T) {
	at := func(d time.Duration) observe.Status {
		return observe.Status{Compiling: observe.Compiling{Since: 1, For: int64(d), Kernels: 41}}
	}
	if line := statusLine(at(3 * time.Minute)); !strings.Contains(line, "compiling: 41 kernels so far, 3 min") {
		t.Error(line)
	}
	var out bytes.Buffer
	v := newView(&out, false, false)
	for s := 0; s < 300; s++ {
		v.showEvent(at(time.Duration(s) * time.Second))
	}
	if want := "hightide: compiling: 41 kernels so far, 1 min\nhightide: compiling: 41 kernels so far, 2 " +
		"min\nhightide: compiling: 41 kernels so far, 4 min\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
	if line := statusLine(observe.Status{}); strings.Contains(line, "compiling") {
		t.Error(line)
	}
}
