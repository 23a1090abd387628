package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestSharedLeft: what this program left behind is told apart from what was there before; little is not told.
func TestSharedLeft(t *testing.T) {
	run := training(1).run()
	must(run, mem.Event{Time: 9e9, Kind: mem.EventSharedLeft, Bytes: mem.Some(int64(150 << 20)), Facts: map[string]string{
		"blocks": "150", "largest": "psm_1a2b", "before_bytes": "1048576", "before_blocks": "1"}})
	found := resources(Analyze(run, Options{}))
	if len(found) != 1 || found[0].Title != "150 MiB of /dev/shm are left that no process uses" ||
		!strings.Contains(found[0].Text, "150 blocks of /dev/shm, made or written to while the program ran") ||
		!strings.Contains(found[0].Text, "`psm_1a2b`") || !strings.Contains(found[0].Advice, "unlink()") {
		t.Errorf("%+v", found)
	}
}

// TestSharedLeftOfGrowth: what grew in /dev/shm and was left there is one finding.
func TestSharedLeftOfGrowth(t *testing.T) {
	run := training(1).run()
	readings(run, 0, mem.SeriesShmUsed, mem.UnitBytes, func(step int) int64 { return int64(step) << 20 })
	readings(run, 0, mem.SeriesShmTotal, mem.UnitBytes, func(int) int64 { return 1 << 30 })
	must(run, mem.Event{Time: 9e9, Kind: mem.EventSharedLeft, Bytes: mem.Some(int64(299 << 20)),
		Facts: map[string]string{"blocks": "299", "largest": "psm_1a2b"}})
	found := resources(Analyze(run, Options{}))
	if len(found) != 1 || !strings.Contains(found[0].Text, "grows by 1.00 MiB per step") ||
		!strings.Contains(found[0].Text, "299 blocks of /dev/shm") {
		t.Errorf("%+v", found)
	}
}
