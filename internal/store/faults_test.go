package store

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hightide/internal/mem"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMain lets the tests start this program again as an engine that is to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HIGHTIDE_TEST_WRITER"); dir != "" {
		writeForEver(dir)
	}
	if dir := os.Getenv("HIGHTIDE_TEST_LIVE"); dir != "" {
		writeLive(dir)
	}
	if dir := os.Getenv("HIGHTIDE_TEST_FOLLOWER"); dir != "" {
		followForEver(dir, os.Getenv("HIGHTIDE_TEST_RUN"))
	}
	os.Exit(m.Run())
}

var example = mem.RunInfo{Command: []string{"python"}, Version: "1", StartMono: 1, StartWall: 1e18}

// writeForEver writes samples 1, 2, 3… and prints the number of the last one that was flushed.
func writeForEver(dir string) {
	w, err := OpenFiles(dir).Create(example)
	if err != nil {
		panic(err)
	}
	_ = w.Write(mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS})
	for i := int64(1); ; i++ {
		_ = w.Write(mem.Samples{Series: 1, Times: []int64{i}, Values: []int64{i}})
		if i%100 == 0 {
			_ = w.Flush()
			fmt.Println(i)
		}
	}
}

// TestKilledEngine: nothing that was flushed is lost, and the run is seen as cut off.
func TestKilledEngine(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HIGHTIDE_TEST_WRITER="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	lines := bufio.NewScanner(out)
	flushed := int64(0)
	s := OpenFiles(dir)
	defer s.Close()
	for lines.Scan() {
		flushed, err = strconv.ParseInt(lines.Text(), 10, 64)
		must(t, err)
		if flushed == 20_000 {
			runs, err := s.List(Filter{})
			must(t, err)
			if len(runs) != 1 || runs[0].State != Running {
				t.Errorf("while it writes: %+v", runs)
			}
		}
		if flushed >= 40_000 {
			break
		}
	}
	must(t, child.Process.Kill())
	for lines.Scan() { // flushed before it died
		if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			flushed = n
		}
	}
	_ = child.Wait()
	_, run, err := Load(s, "last")
	must(t, err)
	values := run.Series[0].Values
	for i, v := range values {
		if v != int64(i+1) {
			t.Fatalf("sample %d is %d", i, v)
		}
	}
	if int64(len(values)) < flushed {
		t.Errorf("%d samples are there, %d were flushed", len(values), flushed)
	}
	row, err := Resolve(s, "last")
	must(t, err)
	if row.State != CutOff || row.HostRSS != mem.Some(int64(len(values))) {
		t.Errorf("row %+v", row)
	}
	w, err := s.Reopen(row.ID)
	must(t, err)
	must(t, w.Write(mem.End{Time: 5, Reason: "recovered"}))
	must(t, w.Close())
	if row, err = Resolve(s, "last"); err != nil || row.State != Finished {
		t.Errorf("after the recovery: %+v %v", row, err)
	}
}

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
	rec := &w.(*memoryWriter).recording
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

func TestPlacesThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, dir := range map[string]string{"below a file": filepath.Join(file, "data"), "kernel's own": "/proc/sys/hightide"} {
		_, err := OpenFiles(dir).Create(example)
		var typed *Error
		if !errors.As(err, &typed) || !errors.Is(err, ErrPlace) || !strings.Contains(typed.Hint, "--data-dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDataDirectoryOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600))
	s := OpenFiles(dir)
	_, create := s.Create(example)
	_, list := s.List(Filter{})
	_, _, load := Load(s, "last")
	_, prune := Prune(s, Limits{Age: 1})
	for i, err := range []error{create, list, load, prune, s.Remove("x"), Tag(s, "x", nil, nil, nil), s.Reindex(nil), s.Note("x", 1)} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("something was written: %v", left)
	}
}

// finished makes a data directory with n runs.
func finished(t *testing.T, n int) string {
	dir := t.TempDir()
	s := OpenFiles(dir)
	defer s.Close()
	for range n {
		w, err := s.Create(example)
		must(t, err)
		must(t, w.Write(mem.End{Time: 1e9}))
		must(t, w.Close())
	}
	return dir
}

// TestOlderAndBrokenIndexes: whatever happened to the index, the runs are there and it is made anew.
func TestOlderAndBrokenIndexes(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"no version, no index": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "version")))
			must(t, os.Remove(filepath.Join(dir, "index.sqlite")))
		},
		"older schema": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			db, err := x.open()
			must(t, err)
			_, err = db.Exec("DROP TABLE runs; CREATE TABLE runs (id TEXT, old INTEGER); INSERT INTO runs VALUES ('zzz', 1); PRAGMA user_version = 0")
			must(t, err)
			must(t, x.close())
		},
		"not a database": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "index.sqlite"), []byte(strings.Repeat("no database ", 1000)), 0o600))
		},
		"newer schema": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			db, err := x.open()
			must(t, err)
			_, err = db.Exec("PRAGMA user_version = 99")
			must(t, err)
			must(t, x.close())
		},
		"a row too many": func(t *testing.T, dir string) {
			x := newIndex(filepath.Join(dir, "index.sqlite"))
			must(t, x.put(entry{run: Run{ID: "gone"}}))
			must(t, x.close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := finished(t, 3)
			spoil(t, dir)
			for range 2 { // the second time from the index, where there is one again
				s := OpenFiles(dir)
				runs, err := s.List(Filter{State: Finished})
				must(t, err)
				if len(runs) != 3 {
					t.Errorf("%d runs, want 3", len(runs))
				}
				w, err := s.Create(example)
				must(t, err)
				must(t, w.Close())
				must(t, s.Remove(w.ID()))
				must(t, s.Close())
			}
		})
	}
}

// TestIndexesBegunAtOnce: engines that start together make one index, and none finds it busy.
func TestIndexesBegunAtOnce(t *testing.T) {
	for range 60 {
		path := filepath.Join(t.TempDir(), "index.sqlite")
		var group sync.WaitGroup
		for range 24 {
			group.Go(func() {
				db, err := openIndex(path)
				if err != nil {
					t.Error(err)
					return
				}
				db.Close()
			})
		}
		group.Wait()
	}
}

// TestEnginesAtOnce: several engines record, list and prune in one directory.
func TestEnginesAtOnce(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	const engines, each = 6, 5
	for range engines {
		group.Go(func() {
			s := OpenFiles(dir)
			defer s.Close()
			for range each {
				w, err := s.Create(example)
				if err != nil {
					t.Error(err)
					return
				}
				_ = w.Write(mem.End{Time: 2})
				if _, err := s.List(Filter{}); err != nil {
					t.Error(err)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	s := OpenFiles(dir)
	defer s.Close()
	runs, err := s.List(Filter{State: Finished})
	must(t, err)
	if len(runs) != engines*each {
		t.Errorf("%d runs, want %d", len(runs), engines*each)
	}
	entries, err := s.index.states()
	must(t, err)
	if len(entries) != engines*each {
		t.Errorf("%d in the index, want %d", len(entries), engines*each)
	}
}

// TestDamagedRecording: the store opens it up to the damage and says so.
func TestDamagedRecording(t *testing.T) {
	dir := finished(t, 1)
	s := OpenFiles(dir)
	defer s.Close()
	row, err := Resolve(s, "last")
	must(t, err)
	data, err := os.ReadFile(row.File)
	must(t, err)
	data[len(data)-3] ^= 16
	must(t, os.WriteFile(row.File, data, 0o600))
	must(t, os.Chtimes(row.File, time.Time{}, time.Now().Add(time.Second)))
	row, err = Resolve(s, "last")
	must(t, err)
	if !row.Damaged || row.State != CutOff {
		t.Errorf("row %+v", row)
	}
	must(t, os.WriteFile(row.File, []byte("not a recording at all, but long enough"), 0o600))
	if _, _, err := Load(s, "last"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("load: %v", err)
	}
	runs, err := s.List(Filter{})
	must(t, err)
	if len(runs) != 1 || !runs[0].Damaged {
		t.Errorf("list: %+v", runs)
	}
}

// TestFilesOutsideTheStore: a file alone gives the same row as the store's own reading of it.
func TestFilesOutsideTheStore(t *testing.T) {
	dir := finished(t, 1)
	s := OpenFiles(dir)
	defer s.Close()
	kept, err := Resolve(s, "last")
	must(t, err)
	alone, err := Resolve(s, kept.File)
	must(t, err)
	opened, run, err := Load(s, kept.File)
	must(t, err)
	if !reflect.DeepEqual(alone, opened) || run.End == nil || opened.ID != kept.ID || opened.State != Finished {
		t.Errorf("opened %+v\nresolved %+v", opened, alone)
	}
	if _, _, err := Load(s, filepath.Join(dir, "nothing.hightide")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestIndexThatCannotBeWrittenIsNamed(t *testing.T) {
	dir := finished(t, 1)
	index := filepath.Join(dir, "index.sqlite")
	must(t, os.RemoveAll(index))
	must(t, os.MkdirAll(filepath.Join(index, "in the way"), 0o700))
	s := OpenFiles(dir)
	defer s.Close()
	var where *Error
	if err := s.Note("x", 1); !errors.As(err, &where) || !strings.Contains(err.Error(), "cannot write the index "+index) || where.Hint == "" {
		t.Errorf("%v", err)
	}
}

func TestPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "data")
	s := OpenFiles(dir)
	defer s.Close()
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Close())
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be seen by others: %v", path, info.Mode())
		}
		return nil
	}))
}

// BenchmarkIngest is the way of a sample into a recording and its index; ten processes' series of
// ten samples are flushed at a time, as by an engine each second.
func BenchmarkIngest(b *testing.B) {
	s := OpenFiles(b.TempDir())
	defer s.Close()
	w, err := s.Create(example)
	if err != nil {
		b.Fatal(err)
	}
	const series, points = 80, 10
	for i := range uint32(series) {
		_ = w.Write(mem.SeriesDef{ID: i + 1, Process: i / 10, Name: mem.SeriesRSS})
	}
	random := rand.New(rand.NewPCG(1, 1))
	values := make([]int64, series)
	b.ResetTimer()
	n := 0
	for b.Loop() {
		for i := range uint32(series) {
			f := mem.Samples{Series: i + 1, Times: make([]int64, points), Values: make([]int64, points)}
			for p := range points {
				values[i] += (random.Int64N(64) - 31) * 4096
				f.Times[p], f.Values[p] = int64(n/series+p)*1e8+random.Int64N(2e6), values[i]
			}
			_ = w.Write(f)
			n += points
		}
		_ = w.Flush()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if info, err := os.Stat(w.Run().File); err == nil {
		b.ReportMetric(float64(info.Size())/float64(n), "B/sample")
	}
}
