package profiler

import (
	"bytes"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// hloProgram is written as XLA writes: two temporaries beside each other, one of them written over by a third, then one
// alone; an argument and a result. Temporaries take 1000 bytes, of which 900 are alive at their fullest.
func hloProgram() []byte {
	instruction := func(id, frame uint64, op string) []byte {
		return part(2, part(1, []byte("i")), part(7, part(2, []byte(op)), number(15, frame)), number(35, id))
	}
	frames := part(17, part(1, []byte("/w/train.py")), part(1, []byte("/w/lib.py")), part(2, []byte("loss")),
		part(2, []byte("step")), part(3, number(1, 2), number(2, 1), number(3, 12)),
		part(3, number(1, 1), number(2, 2), number(3, 7)), part(4, number(1, 2)), part(4, number(1, 1), number(2, 1)))
	module := part(1, part(1, []byte("jit_step")), part(2, []byte("main")), part(3, instruction(10, 0, "w"),
		instruction(11, 1, "jit(step)/dot"), instruction(12, 2, "jit(step)/tanh"), instruction(13, 2, "jit(step)/neg")), frames)
	buffer := func(id, size, by uint64) []byte {
		return part(1, number(1, id), number(2, size), part(3, number(4, by)))
	}
	holds := func(id uint64) []byte { return part(9, number(1, id)) }
	event := func(kind, id, shares uint64) []byte {
		return part(1, number(1, kind), number(2, id), number(5, shares))
	}
	assignment := part(3, buffer(1, 4096, 10), buffer(2, 500, 11), buffer(3, 400, 12), buffer(4, 500, 13),
		buffer(5, 300, 13), buffer(6, 64, 11),
		part(3, number(1, 0), number(2, 4096), number(5, 1), holds(1)),
		part(3, number(1, 1), number(2, 64), number(7, 1), holds(6)),
		part(3, number(1, 2), number(2, 1000), holds(2), holds(3), holds(4), holds(5)),
		part(3, number(1, 3), number(2, 4), number(3, 1)),
		part(4, event(hloAlloc, 2, 0), event(hloFree, 2, 0), event(hloShare, 4, 2), event(hloAlloc, 3, 0), event(hloFree, 4, 0),
			event(hloFree, 3, 0), event(hloAlloc, 5, 0), event(hloFree, 5, 0), number(3, 99)))
	return slices.Concat(module, assignment)
}

func TestHLO(t *testing.T) {
	data := hloProgram()
	if !IsHLO(data) || IsXSpace(data) || IsHLO([]byte("\x0a\x04\x08\x01\x10\x02\x12\x06")) {
		t.Error("not told from other files")
	}
	p, err := ReadHLO(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	type held struct {
		kind, op string
		bytes    int64
		where    mem.Location
	}
	want := []held{{HLOArgument, "w", 4096, mem.Location{File: HLOArguments, Function: "w", Native: true}},
		{HLOOutput, "jit(step)/dot", 64, mem.Location{File: "/w/train.py", Line: 7, Function: "step"}},
		{HLOTemporary, "jit(step)/neg", 500, mem.Location{File: "/w/lib.py", Line: 12, Function: "loss"}},
		{HLOTemporary, "jit(step)/tanh", 400, mem.Location{File: "/w/lib.py", Line: 12, Function: "loss"}},
		{HLOTemporary, "", 100, mem.Location{File: "XLA", Function: "between buffers", Native: true}}}
	var got []held
	for _, s := range p.Samples {
		got = append(got, held{s.Labels[HLOKind], s.Labels[HLOOperation], s.Values[p.Default], p.Stacks.Frames(s.Stack)[0]})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if frames := p.Stacks.Frames(p.Samples[2].Stack); len(frames) != 2 || frames[1].Line != 7 {
		t.Errorf("called from %+v", frames)
	}
}

// TestHLOWithLines has the plane that our agent adds: an operation of a graph is of that line, whatever XLA was told of it.
func TestHLOWithLines(t *testing.T) {
	shown := slices.Concat(number(1, 1), part(2, part(2, []byte("jit(step)/neg")), part(4, []byte("$/w/model.py:3 block"))))
	plane := part(1, part(2, []byte(linesPlane)), part(4, shown))
	p, err := ReadHLO(bytes.NewReader(slices.Concat(hloProgram(), part(linesField, plane))))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]mem.Location{}
	for _, s := range p.Samples {
		places[s.Labels[HLOOperation]] = p.Stacks.Frames(s.Stack)[0]
	}
	if got, want := places["jit(step)/neg"], (mem.Location{File: "/w/model.py", Line: 3, Function: "block"}); got != want {
		t.Errorf("%+v", got)
	}
	if got := places["jit(step)/tanh"]; got.File != "" || got.Function != "jit(step)/tanh" {
		t.Errorf("an operation that is of no known line: %+v", got)
	}
}

// FuzzHLO: a value or an error, never both.
func FuzzHLO(f *testing.F) {
	f.Add(hloProgram())
	f.Add(hloStep())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadHLO(bytes.NewReader(data))
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
	})
}
