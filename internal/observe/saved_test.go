package observe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// TestCheckpointWithoutRoom: where the checkpoint cannot be written the engine does not keep, for an hour
// of training, what it would have written. It says what a kill would cost, and writes it once it can.
func TestCheckpointWithoutRoom(t *testing.T) {
	l := leftover(t, map[string][]byte{"heap-1-1.ring": ringFile(2, 0, 0, nil)})
	sink := memorySink{t, mem.NewRun()}
	r := newRecorder(&Options{ID: "x", Channels: l.Dir}, sink)
	r.scan()
	if len(r.order) != 1 || r.order[0].heap == nil {
		t.Fatalf("processes %+v: the channel of a heap was not opened", r.order)
	}
	heap, codes := r.order[0].heap, r.order[0].channels[0].stacks
	turn := func(now int64) {
		for i := range uint64(10_000) {
			heap.alloc(&shm.Alloc{Address: i * 64, Size: 64, Weight: 1 << 19}, 1)
			heap.free(&shm.Free{Address: i * 64})
			codes.learn(&shm.Code{ID: uint32(i)})
		}
		heap.alloc(&shm.Alloc{Address: 1 << 40, Size: 64, Weight: 1 << 19}, 1)
		r.save(now)
	}
	turn(0)
	path := filepath.Join(l.Dir, savedName)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no checkpoint is written: %v", err)
	}
	blocked := path + ".new"
	if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	for i := range int64(20) {
		turn(1 + i)
	}
	if kept := len(heap.fresh) + len(heap.gone) + len(codes.fresh); kept > 100 {
		t.Errorf("%d changes are kept for a checkpoint that cannot be written", kept)
	}
	if events := sink.run.Events; len(events) != 1 || events[0].Kind != "log" ||
		!strings.Contains(events[0].Text, "killed") {
		t.Errorf("events %+v: want one that says what a kill would cost", events)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	turn(2 * retryEvery)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || !heap.saving {
		t.Errorf("there is room again, and the checkpoint is not written: %v", err)
	}
	turn(2*retryEvery + 1)
	again := newRecorder(&Options{ID: "x", Channels: l.Dir}, memorySink{t, mem.NewRun()})
	again.process(procKey{noProcess, 77}).heap = newLiveHeap(1)
	again.resumeSaved()
	if got := len(again.order[0].heap.blocks); got != 1 {
		t.Errorf("%d blocks are read from the checkpoint, want the one that is live", got)
	}
}
