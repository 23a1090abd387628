package store_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// followTests are the part of the contract that is about runs in the making.
var followTests = []contract{
	{"a run that has ended is followed to its end", followFinished},
	{"a run is followed while it is written", followLive},
	{"frames are seen soon", followSoon},
	{"a follower that does not read holds up nobody", followStuck},
	{"a run that is cut off ends", followCutOff},
	{"following is given up", followCancelled},
	{"a run that is not there, or no more", followGone},
}

// collect follows a run to its end.
func collect(t *testing.T, s store.Store, id string, from int64) (frames []mem.Frame) {
	t.Helper()
	for batch, err := range s.Follow(t.Context(), id, from) {
		if err != nil || len(batch.Damage) > 0 {
			t.Errorf("after %d frames: %v, damage %v", len(frames), err, batch.Damage)
			return frames
		}
		frames = append(frames, batch.Frames...)
	}
	return frames
}

func followFinished(t *testing.T, s store.Store) {
	id := record(t, s, info(1, "first"), false)
	i := info(1, "first")
	i.ID = id
	want := append([]mem.Frame{i}, frames(i)...) // Create writes the first
	got := collect(t, s, id, 0)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
	read, froms := 0, []int64{0}
	for batch, err := range s.Follow(t.Context(), id, 0) {
		must(t, err)
		froms = append(froms, batch.Next)
		read += len(batch.Frames)
		if read == len(want) {
			break
		}
		if rest := collect(t, s, id, batch.Next); !reflect.DeepEqual(rest, want[read:]) {
			t.Errorf("from %d: %+v\nwant %+v", batch.Next, rest, want[read:])
		}
	}
	if !slices.IsSorted(froms) || read != len(want) {
		t.Errorf("places %v, %d frames", froms, read)
	}
}

// event is the n-th frame of a run in the making.
func event(n int) mem.Event { return mem.Event{Time: int64(n), Kind: "log"} }

// write puts n events into a run as an engine does: at once where it is followed, else now and then.
func write(t *testing.T, w store.Writer, n int, between time.Duration) {
	for i := range n {
		must(t, w.Write(event(i)))
		if w.Followed() || i%10 == 9 {
			must(t, w.Flush())
		}
		time.Sleep(between)
	}
}

func followLive(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, ""))
	must(t, err)
	if w.Followed() {
		t.Error("followed by nobody")
	}
	const n, followers = 300, 4
	var group sync.WaitGroup
	begun := make(chan struct{}, followers)
	for range followers {
		group.Go(func() {
			next := 0
			for batch, err := range s.Follow(t.Context(), w.ID(), 0) {
				if err != nil || len(batch.Damage) > 0 {
					t.Errorf("%v, damage %v", err, batch.Damage)
				}
				if next == 0 {
					begun <- struct{}{}
				}
				for _, f := range batch.Frames {
					if e, ok := f.(mem.Event); ok {
						if int(e.Time) != next {
							t.Errorf("frame %d after %d", e.Time, next-1)
						}
						next++
					}
				}
			}
			if next != n {
				t.Errorf("%d of %d frames", next, n)
			}
		})
	}
	for range followers {
		<-begun
	}
	if !w.Followed() {
		t.Error("not seen to be followed")
	}
	write(t, w, n, time.Millisecond)
	must(t, w.Write(mem.End{Time: n}))
	must(t, w.Close())
	group.Wait()
	if w.Followed() {
		t.Error("still followed")
	}
}

// followSoon: half of the frames are seen within 200 ms of their making even on a machine that is busy.
func followSoon(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, ""))
	must(t, err)
	var delays []time.Duration
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for batch := range s.Follow(t.Context(), w.ID(), 0) {
			for _, f := range batch.Frames {
				if e, ok := f.(mem.Event); ok {
					delays = append(delays, time.Since(time.Unix(0, e.Time)))
				} else if _, first := f.(mem.RunInfo); first {
					close(begun)
				}
			}
		}
	}()
	<-begun
	for range 40 {
		must(t, w.Write(mem.Event{Time: time.Now().UnixNano(), Kind: "log"}))
		if w.Followed() {
			must(t, w.Flush())
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, w.Write(mem.End{Time: 1}))
	must(t, w.Close())
	<-done
	slices.Sort(delays)
	if len(delays) != 40 || delays[20] > 200*time.Millisecond {
		t.Errorf("delays of %d frames: %v", len(delays), delays)
	}
	t.Logf("median %v, longest %v", delays[20], delays[39])
}

func followStuck(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, ""))
	must(t, err)
	stuck, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	got := 0
	go func() {
		defer close(done)
		for batch, err := range s.Follow(t.Context(), w.ID(), 0) {
			if err != nil {
				t.Error(err)
			}
			if got == 0 {
				close(stuck)
				<-release
			}
			got += len(batch.Frames)
		}
	}()
	<-stuck
	write(t, w, 5000, 0)
	must(t, w.Write(mem.End{Time: 1}))
	must(t, w.Close()) // all of it while the follower stands still
	close(release)
	<-done
	if want := 1 + 5000 + 1; got != want {
		t.Errorf("%d frames, want %d", got, want)
	}
}

func followCutOff(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, ""))
	must(t, err)
	write(t, w, 10, 0)
	must(t, w.Close())
	if got := collect(t, s, w.ID(), 0); len(got) != 11 {
		t.Errorf("%d frames, want 11", len(got))
	}
	again, err := s.Reopen(w.ID())
	must(t, err)
	must(t, again.Write(mem.End{Time: 1, Reason: "recovered"}))
	must(t, again.Close())
	if got := collect(t, s, w.ID(), 0); len(got) != 12 {
		t.Errorf("%d frames after the recovery, want 12", len(got))
	}
}

func followCancelled(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, ""))
	must(t, err)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for _, err := range s.Follow(ctx, w.ID(), 0) {
		last = err
		cancel(why)
	}
	if !errors.Is(last, why) {
		t.Errorf("ended with %v", last)
	}
	for range s.Follow(t.Context(), w.ID(), 0) {
		break // a reader that leaves
	}
	if w.Followed() {
		t.Error("still followed")
	}
	must(t, w.Close())
}

func followGone(t *testing.T, s store.Store) {
	for _, err := range s.Follow(t.Context(), "nope", 0) {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a run that is not there: %v", err)
		}
	}
	id := record(t, s, info(1, ""), false)
	whole := collect(t, s, id, 0)
	read := 0
	for batch, err := range s.Follow(t.Context(), id, 0) {
		if read == 0 {
			must(t, s.Remove(id))
		}
		must(t, err)
		read += len(batch.Frames)
	}
	if read != len(whole) {
		t.Errorf("%d of %d frames of a run that is removed while it is read", read, len(whole))
	}
}
