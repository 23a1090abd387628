package store

import (
	"errors"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"hightide/internal/mem"
)

// smallDisk is a file that refuses to grow beyond room.
type smallDisk struct {
	data []byte
	room int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	fits := min(len(p), max(0, d.room-len(d.data)))
	d.data = append(d.data, p[:fits]...)
	if fits < len(p) {
		return fits, &os.PathError{Op: "write", Path: "run.hightide", Err: syscall.ENOSPC}
	}
	return fits, nil
}

func (d *smallDisk) Truncate(size int64) error {
	d.data = d.data[:size]
	return nil
}

// fullDisk mounts a file system of its own, where the tests run as root.
func fullDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestDiskFull: written and lost add up, the recording says what it lost, and its end is there.
func TestDiskFull(t *testing.T) {
	dir := fullDisk(t, "1m")
	s := OpenFiles(dir)
	defer s.Close()
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Write(mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS}))
	random := rand.New(rand.NewPCG(1, 1))
	const n = 300_000
	for i := range int64(n) {
		must(t, w.Write(mem.Samples{Series: 1, Times: []int64{i + 1}, Values: []int64{random.Int64N(1 << 40)}}))
		if i%1000 == 0 {
			must(t, w.Flush())
		}
		if i == n/2 {
			must(t, w.Write(mem.SeriesDef{ID: 2, Name: "late"}))
		}
	}
	must(t, w.Write(mem.End{Time: n, ExitCode: mem.Some(0)}))
	must(t, w.Close())
	lost := w.Lost()
	if lost.Frames == 0 || !errors.Is(lost.Err, syscall.ENOSPC) {
		t.Fatalf("nothing was lost: %+v", lost)
	}
	_, run, err := Load(s, w.ID())
	must(t, err)
	if got := uint64(len(run.Find(0, mem.SeriesTreeRSS).Values)); got == 0 || got+lost.Frames != n {
		t.Errorf("%d samples are there and %d lost, together not %d", got, lost.Frames, n)
	}
	if run.End == nil || run.Find(0, "late") == nil || len(run.Damage) > 0 {
		t.Errorf("end %v, late series %v, damage %v", run.End, run.Find(0, "late"), run.Damage)
	}
	if len(run.Drops) != 1 || run.Drops[0].Place != "disk" || run.Drops[0].Records != lost.Frames {
		t.Errorf("the recording says %+v of %+v", run.Drops, lost)
	}
	row, err := Resolve(s, "last")
	must(t, err)
	if row.State != Finished || row.Dropped != lost.Frames {
		t.Errorf("row %+v", row)
	}
}

// TestDiskFullForAWhile: once there is room again, everything but the samples of that time is there.
func TestDiskFullForAWhile(t *testing.T) {
	disk := &smallDisk{room: 1 << 20}
	m := &Memory{}
	w, err := m.Create(example)
	must(t, err)
	id := w.ID()
	rec := w.(*recording)
	header := append([]byte(nil), m.runs[id].data.bytes()...)
	disk.data = header
	rec.out.file, rec.out.size = disk, int64(len(header))
	samples := func(from, to int64) {
		for i := from; i < to; i++ {
			rec.write(mem.Samples{Series: 1, Times: []int64{i}, Values: []int64{i}})
		}
		rec.flush()
	}
	rec.write(mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS})
	samples(0, 100)
	disk.room = 0
	for step := range uint64(3) {
		rec.write(mem.StepTotal{Process: 1, Steps: step + 1})
		rec.write(mem.Process{ID: 1, PID: 5})
		rec.write(mem.Event{Time: int64(step), Kind: "log"})
		samples(100+50*int64(step), 150+50*int64(step))
	}
	if lost := rec.loss; lost.Frames != 150 {
		t.Errorf("%d frames lost, want the 150 samples", lost.Frames)
	}
	disk.room = 1 << 20
	samples(250, 300)
	m.runs[id].data.data = disk.data
	_, run, err := Load(m, id)
	must(t, err)
	if got := len(run.Find(0, mem.SeriesTreeRSS).Values); got != 150 {
		t.Errorf("%d samples, want 150", got)
	}
	if run.StepCount() != 3 || len(run.Processes) != 1 || len(run.Events) != 4 || len(run.Damage) > 0 {
		t.Errorf("steps %d, processes %d, events %v, damage %v", run.StepCount(), len(run.Processes), run.Events, run.Damage)
	}
	if len(run.Drops) != 1 || run.Drops[0].Records != 150 {
		t.Errorf("drops %+v", run.Drops)
	}
}
