package allocator

import (
	"testing"

	"hightide/internal/mem"
)

// FuzzTrace: whatever a file says of segments and events, it is replayed or refused; nothing panics. Each event is
// three bytes: what happens, where, how much; so is each segment at the end, and each of its blocks.
func FuzzTrace(f *testing.F) {
	f.Add([]byte{4, 0, 2, 1, 0, 1, 2, 0, 1, 3, 0, 1, 5, 0, 2}, []byte{}, false)
	f.Add([]byte{6, 0, 20, 1, 0, 7, 1, 7, 9, 2, 0, 7, 3, 0, 7, 7, 0, 20, 6, 0, 20}, []byte{0, 20, 2, 0, 7, 0, 7, 9, 1},
		true)
	f.Add([]byte{3, 0, 7, 8, 0, 90, 1, 0, 0}, []byte{0, 20, 1, 0, 20, 0, 40, 20, 1, 40, 20, 2}, true)
	f.Fuzz(func(t *testing.T, events, state []byte, expandable bool) {
		if len(events) > 300 || len(state) > 120 {
			return
		}
		settings := Settings{Expandable: expandable}
		for _, version := range []mem.Version{minor(9), minor(15)} {
			s := bytesSnapshot(events, state, version)
			trace := &s.Traces[0]
			if _, err := Verify(s, trace, settings, 0); err != nil {
				return
			}
			p, err := Compile(s, trace, settings)
			if err != nil {
				t.Fatalf("verified, but not compiled: %v", err)
			}
			for _, other := range []Settings{settings, {Expandable: !expandable}} {
				setup := Setup{Settings: other, Rules: RulesFor(s)[0], Capacity: 64 * mem.MiB}
				Variants(p, setup)
				Record(p, setup, s, trace)
				for _, policy := range Policies {
					RunOn(p, policy.Name, setup)
				}
			}
		}
	})
}

// bytesSnapshot makes a snapshot of bytes, as consistent as package format demands: no size is negative, segments and
// blocks are in order and apart. The high bits of an action are its stream.
func bytesSnapshot(events, state []byte, version mem.Version) *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Versions: only(version), Traces: make([]mem.Trace, 1)}
	place := func(b byte) uint64 { return 1<<40 + uint64(b)*uint64(mem.MiB) }
	t := &s.Traces[0]
	for ; len(events) >= 3; events = events[3:] {
		t.Action = append(t.Action, mem.Action(events[0]%9))
		t.Stream = append(t.Stream, uint64(events[0]>>6))
		t.Address = append(t.Address, place(events[1]))
		t.Size = append(t.Size, mem.Bytes(events[2])*mem.MiB)
		t.Stack = append(t.Stack, uint32(events[0]>>4&1))
	}
	end := uint64(0)
	for ; len(state) >= 3; state = state[3:] {
		g := mem.Segment{Address: max(end, place(state[0])), Size: mem.Bytes(state[1]) * mem.MiB, Large: state[1] != 2,
			Expandable: state[2]&128 != 0, Stream: uint64(state[2] >> 6 & 1)}
		at := g.Address
		end = at + uint64(g.Size)
		for n := state[2] & 3; n > 0 && len(state) >= 6; n-- {
			state = state[3:]
			b := mem.Block{Address: max(at, place(state[0])), Size: mem.Bytes(state[1]) * mem.MiB,
				State: mem.BlockState(state[2] % 3)}
			if at = b.Address + uint64(b.Size); at > end {
				break
			}
			b.Requested = b.Size
			g.Blocks = append(g.Blocks, b)
		}
		s.Segments = append(s.Segments, g)
	}
	return s
}
