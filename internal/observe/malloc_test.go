package observe

import (
	"reflect"
	"strings"
	"testing"
)

// TestFindArenas: the program's heap and the heaps of other arenas, full or not; no other mapping.
func TestFindArenas(t *testing.T) {
	const maps = `55d000000000-55d000021000 r--p 00000000 08:01 1234   /usr/bin/python3
55d000400000-55d002400000 rw-p 00000000 00:00 0                          [heap]
7f1000000000-7f1001000000 rw-p 00000000 00:00 0 
7f1001000000-7f1004000000 ---p 00000000 00:00 0 
7f1004000000-7f1008000000 rw-p 00000000 00:00 0 
7f1008100000-7f1009000000 rw-p 00000000 00:00 0 
7f1009000000-7f100c000000 ---p 00000000 00:00 0 
7f1010000000-7f1012000000 rw-p 00000000 00:00 0 
7f1012000000-7f1012021000 r-xp 00000000 08:01 1234   /usr/lib/libc.so.6
`
	want := []arena{
		{0x55d000400000, 0x55d002400000, true}, {0x7f1000000000, 0x7f1001000000, false},
		{0x7f1004000000, 0x7f1008000000, false},
	}
	if got := findArenas(strings.NewReader(maps)); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
