package observe

import (
	"encoding/binary"
	"testing"

	"hightide/internal/shm"
)

// TestWaits: helpers are told for what part of the last second their program waited for a processor, once the sampler
// has seen that twice.
func TestWaits(t *testing.T) {
	mapping := ringFile(uint32(shm.RoleAgent), 0, 0, nil)
	reader, err := shm.Open(mapping)
	if err != nil {
		t.Fatal(err)
	}
	told := func() uint64 { return binary.LittleEndian.Uint64(mapping[248:]) }
	p := &process{channels: []*channel{{mapping: mapping, reader: reader}, {}}}
	for _, step := range []struct{ queued, at, want int64 }{
		{7e9, 0, 0},           // the kernel does not tell
		{7e9, 10e9, 0},        // what was before is of no second
		{7.75e9, 11e9, 49152}, // three quarters
		{7.75e9, 11e9, 49152}, // the same reading
		{7.75e9, 12e9, 0},
		{9.75e9, 13e9, 65536}, // read late
		{1e9, 14e9, 0},        // another thread is the first
	} {
		if p.waits(step.queued, step.at); told() != uint64(step.want) {
			t.Errorf("%d ns at %d: told %d, want %d", step.queued, step.at, told(), step.want)
		}
	}
}
