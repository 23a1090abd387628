package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"hightide/internal/mem"
)

// writeLive writes an event every 10 ms, as an engine does: flushed at once where it is followed, else never.
func writeLive(dir string) {
	w, err := OpenFiles(dir).Create(example)
	if err != nil {
		panic(err)
	}
	fmt.Println(w.ID())
	for {
		_ = w.Write(mem.Event{Time: time.Now().UnixNano(), Kind: "log"})
		if w.Followed() {
			_ = w.Flush()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// liveRun starts a process that records, and returns the id of its run.
func liveRun(t *testing.T, dir string) (id string, engine *os.Process) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HIGHTIDE_TEST_LIVE="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	line := bufio.NewScanner(out)
	if !line.Scan() {
		t.Fatal("the engine did not begin")
	}
	return line.Text(), child.Process
}

// TestFollowAnotherProcess: half of the frames are seen within 200 ms of their making. Once the engine is
// killed, the stream ends.
func TestFollowAnotherProcess(t *testing.T) {
	s := OpenFiles(t.TempDir())
	id, engine := liveRun(t, s.dir)
	var delays []time.Duration
	for batch, err := range s.Follow(t.Context(), id, 0) {
		must(t, err)
		for _, f := range batch.Frames {
			if e, ok := f.(mem.Event); ok {
				delays = append(delays, time.Since(time.Unix(0, e.Time)))
			}
		}
		if len(delays) >= 100 {
			must(t, engine.Kill())
		}
	}
	slices.Sort(delays[1:])
	if median := delays[len(delays)/2]; median > 200*time.Millisecond {
		t.Errorf("delays %v", delays)
	}
	t.Logf("%d frames, median %v, longest %v", len(delays), delays[len(delays)/2], delays[len(delays)-1])
}

// TestFollowersThatAreKilled leave nothing behind: the writer sees that nobody follows any more.
func TestFollowersThatAreKilled(t *testing.T) {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(example)
	must(t, err)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HIGHTIDE_TEST_FOLLOWER="+s.dir, "HIGHTIDE_TEST_RUN="+w.ID())
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if !bufio.NewScanner(out).Scan() {
		t.Error("the follower saw nothing")
	}
	if !w.Followed() {
		t.Skip("this file system has no locks of a part of a file")
	}
	must(t, child.Process.Kill())
	_ = child.Wait()
	if w.Followed() {
		t.Error("still followed")
	}
	must(t, w.Close())
}

func followForEver(dir, id string) {
	for range OpenFiles(dir).Follow(context.Background(), id, 0) {
		fmt.Println("something")
	}
}

// TestFollowDamage: a torn or damaged block costs only itself, and what is written after it is seen.
func TestFollowDamage(t *testing.T) {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(example)
	must(t, err)
	path := w.Run().File
	events := func(from, to int64) {
		for i := from; i < to; i++ {
			must(t, w.Write(mem.Event{Time: i, Kind: "log"}))
			must(t, w.Flush())
		}
	}
	size := func() int64 {
		info, err := os.Stat(path)
		must(t, err)
		return info.Size()
	}
	events(0, 10)
	var times []int64
	damage := 0
	for batch, err := range s.Follow(t.Context(), w.ID(), 0) {
		must(t, err)
		damage += len(batch.Damage)
		for _, f := range batch.Frames {
			e, ok := f.(mem.Event)
			if !ok {
				continue
			}
			switch times = append(times, e.Time); e.Time {
			case 9: // the next block will be torn, and others follow
				events(10, 11)
				must(t, os.Truncate(path, size()-3))
				events(11, 13)
			case 12:
				file, err := os.OpenFile(path, os.O_WRONLY, 0)
				must(t, err)
				events(13, 14)
				_, err = file.WriteAt([]byte{1, 2, 3}, size()-20)
				must(t, err)
				must(t, file.Close())
				events(14, 16)
			case 15: // cut back before what was read
				must(t, os.Truncate(path, size()-200))
			}
		}
		if damage == 3 && len(batch.Damage) > 0 {
			events(16, 18)
			must(t, w.Write(mem.End{Time: 18}))
			must(t, w.Close())
		}
	}
	want := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17}
	if !slices.Equal(times, want) || damage != 3 {
		t.Errorf("events %v and %d damages, want %v and 3", times, damage, want)
	}
}

// TestFollowARunDeletedByHand: the stream says so, though the engine still writes into what is no more.
func TestFollowARunDeletedByHand(t *testing.T) {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Flush())
	var last error
	for _, err := range s.Follow(t.Context(), w.ID(), 0) {
		last = err
		must(t, os.RemoveAll(s.runDir(w.ID())))
	}
	if !errors.Is(last, ErrNotFound) {
		t.Errorf("ended with %v", last)
	}
	must(t, w.Close())
}

// removedLast is a recording that was whole, and removed, between the two questions of one look.
type removedLast struct{ fileSource }

func (r removedLast) look() (look, error) {
	info, err := r.Stat()
	if err != nil {
		return look{}, err
	}
	return look{size: info.Size(), writing: true, removed: true}, nil
}

// TestFollowToTheEndOfOneSentOn: a recording that is removed as its writer ends was followed to its end all the same.
func TestFollowToTheEndOfOneSentOn(t *testing.T) {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Write(mem.End{Time: 1}))
	must(t, w.Close())
	file, err := os.Open(s.recording(w.ID()))
	must(t, err)
	defer file.Close()
	for _, err := range follow(t.Context(), w.ID(), removedLast{fileSource{file}}, 0) {
		must(t, err)
	}
}
