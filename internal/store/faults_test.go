package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
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
	if database := os.Getenv("HIGHTIDE_TEST_SENDER"); database != "" {
		sendUntilKilled(database)
	}
	if database := os.Getenv("HIGHTIDE_TEST_MIGRATOR"); database != "" {
		migrateOnce(database)
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
	entries, err := s.index.states(nil)
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
