package mem

import (
	"math"
	"slices"
	"strconv"
	"testing"
)

func stackOf(lines ...int) (stack []Location) {
	for _, line := range lines {
		stack = append(stack, Location{File: "a.py", Line: line})
	}
	return stack
}

// TestDefine: a recording's own numbers stay, with whatever is missing between them; the last definition counts.
func TestDefine(t *testing.T) {
	var table StackTable
	for id, stack := range map[uint32][]Location{3: stackOf(1, 2), 900: stackOf(2), 5: stackOf(1, 2)} {
		if err := table.Define(id, stack); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Define(5, stackOf(2, 1, 3)); err != nil {
		t.Fatal(err)
	}
	if err := table.Define(7, nil); err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]int{}
	for id, stack := range table.Each {
		seen[id] = len(stack)
	}
	if len(seen) != 3 || seen[3] != 2 || seen[5] != 3 || seen[900] != 1 {
		t.Errorf("stacks with as many frames: %v", seen)
	}
	if got := table.Frames(5); !slices.Equal(got, stackOf(2, 1, 3)) {
		t.Errorf("the stack that was defined twice is %v", got)
	}
	if len(table.Locations) != 3 {
		t.Errorf("%d locations, want 3 distinct ones", len(table.Locations))
	}
	for _, id := range []uint32{0, 7, 899, 901, math.MaxUint32} {
		if got := table.Frames(id); got != nil {
			t.Errorf("stack %d, which is not defined, is %v", id, got)
		}
	}
}

// TestDefineIsBounded: numbers that no recorder would give take no memory.
func TestDefineIsBounded(t *testing.T) {
	var table StackTable
	for _, id := range []uint32{0, 1 << 24, math.MaxUint32} {
		if table.Define(id, stackOf(1)) == nil {
			t.Errorf("stack %d was taken", id)
		}
	}
	for i := range 1000 {
		_ = table.Define(uint32(i)*100_000+1, stackOf(i))
	}
	if n := table.Len(); n > 2<<20 {
		t.Errorf("a thousand stacks take room for %d", n)
	}
}

// TestAddNumbersEqualStacksOnce, however many there are.
func TestAddNumbersEqualStacksOnce(t *testing.T) {
	var table StackTable
	add := func(i int) uint32 {
		outer, inner := table.Location(Location{File: "main.py"}), table.Location(Location{Function: strconv.Itoa(i)})
		return table.Add([]uint32{inner, outer})
	}
	var ids []uint32
	for i := range 5000 {
		ids = append(ids, add(i))
	}
	for i, id := range ids {
		if again := add(i); again != id || table.Frames(id)[0].Function != strconv.Itoa(i) {
			t.Fatalf("stack %d has the numbers %d and %d: %v", i, id, again, table.Frames(id))
		}
	}
	if table.Len() != 5001 || table.Add(nil) != 0 {
		t.Errorf("%d numbers, and %d for no frames", table.Len(), table.Add(nil))
	}
}

// TestRename: a file is called otherwise in stacks that are there and in those that come; a view keeps what it was
// made with.
func TestRename(t *testing.T) {
	r := NewRun()
	for _, f := range []Frame{
		StackDef{ID: 1, Locations: []Location{{File: "/tmp/k/1.py", Line: 3}, {File: "lib.py", Line: 9}}},
	} {
		if err := r.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	before := r.View()
	for _, f := range []Frame{
		Cell{File: "/tmp/k/1.py", Name: "cell [2]"},
		StackDef{ID: 2, Locations: []Location{{File: "/tmp/k/1.py", Line: 4}}},
		Holder{Where: Location{File: "/tmp/k/1.py", Line: 5}, Others: []Location{{File: "/tmp/k/1.py", Line: 6}}},
	} {
		if err := r.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	got := []string{LineName(r.Stacks.Frames(1)[0]), LineName(r.Stacks.Frames(1)[1]), LineName(r.Stacks.Frames(2)[0]),
		LineName(r.Holders[0].Where), LineName(r.Holders[0].Others[0]), LineName(before.Stacks.Frames(1)[0])}
	want := []string{"cell [2]:3", "lib.py:9", "cell [2]:4", "cell [2]:5", "cell [2]:6", "1.py:3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
