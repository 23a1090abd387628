package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// values of all samples in an event.
func values(t *testing.T, e received) (all []int64) {
	t.Helper()
	for _, r := range decode[[]readings](t, e.data) {
		all = append(all, r.Y...)
	}
	return all
}

func TestLive(t *testing.T) {
	s := newSite(t, Options{})
	w := s.begin("first", 3)
	v := s.watch("/api/v1/runs/"+w.ID()+"/live", "")
	first, _ := v.until("state")
	if state := decode[liveState](t, first.data); state.ID != w.ID() || state.At != 2e8 || state.Resync || state.State != store.Running {
		t.Fatalf("state %s", first.data)
	}
	series, _ := v.until("series")
	processes, _ := v.until("processes")
	if processes.id == "" || !bytes.Contains([]byte(series.data), []byte(`"name":"host.rss"`)) {
		t.Fatalf("series %+v, processes %+v", series, processes)
	}
	s.write(w, reading(3), mem.Spans{{Process: 1, Phase: mem.PhaseForward, Start: 1500, End: 2500}},
		mem.Steps{{Process: 1, Number: 1, Time: 2500}},
		mem.Event{Time: 3000, Process: 1, Kind: "alert", Text: "too much"})
	samples, _ := v.until("samples")
	if got := values(t, samples); !slices.Equal(got, []int64{1<<20 + 3}) {
		t.Fatalf("samples %v", got)
	}
	if spans, _ := v.until("spans"); spans.data != `[{"process":1,"phase":"forward","step":0,"start_ns":500,"end_ns":1500}]` {
		t.Errorf("spans %s", spans.data)
	}
	if steps, _ := v.until("steps"); steps.data != `[{"process":1,"step":1,"time_ns":1500}]` {
		t.Errorf("steps %s", steps.data)
	}
	if marks, _ := v.until("marks"); marks.data != `[{"time_ns":2000,"kind":"alert","text":"too much","process":1}]` ||
		marks.id == "" {
		t.Errorf("marks %+v", marks)
	}
	s.finish(w)
	ended, _ := v.until("end")
	if e := decode[struct {
		store.Run
		end
	}](t, ended.data); e.Reason != "finished" || e.State != store.Finished {
		t.Fatalf("end %s", ended.data)
	}
	if more, ok := v.next(); ok {
		t.Fatalf("%+v comes after the end", more)
	}
	if status, _ := s.ask(http.MethodGet, "/api/v1/runs/last/live", "", "Last-Event-ID", ended.id); status != http.StatusNoContent {
		t.Errorf("a client that comes back after the end is answered %d, want 204, which has it stop", status)
	}
}

// TestLiveGoesOn: a viewer that was cut off goes on where it was, at the same server and at one that was started anew.
func TestLiveGoesOn(t *testing.T) {
	kept := new(store.Memory)
	s := siteOf(t, kept, Options{})
	w := s.begin("run", 1)
	v := s.watch("/api/v1/runs/last/live", "")
	v.until("processes")
	s.write(w, reading(1))
	seen, _ := v.until("samples")
	v.body.Close()
	s.write(w, reading(2))
	v = s.watch("/api/v1/runs/last/live", seen.id)
	e, before := v.until("samples")
	if got := values(t, e); !slices.Equal(got, []int64{1<<20 + 2}) || slices.Contains(before, "state") {
		t.Fatalf("it went on with %v after %v", got, before)
	}
	s.stop()
	s = siteOf(t, kept, Options{})
	s.write(w, reading(3))
	v = s.watch("/api/v1/runs/last/live", e.id)
	e, before = v.until("samples")
	if got := values(t, e); !slices.Equal(got, []int64{1<<20 + 3}) || slices.Contains(before, "state") {
		t.Fatalf("after a restart it went on with %v after %v", got, before)
	}
	v = s.watch("/api/v1/runs/last/live?from=999999999", "")
	if state, _ := v.until("state"); !decode[liveState](t, state.data).Resync {
		t.Errorf("a place that the recording does not have: %s", state.data)
	}
}

// TestLiveEnds: each way in which a run can go away while it is watched is one clear event.
func TestLiveEnds(t *testing.T) {
	s := newSite(t, Options{})
	reason := func(v *watching) string {
		e, _ := v.until("end")
		return decode[end](t, e.data).Reason
	}
	cut := s.begin("cut", 1)
	if err := cut.Close(); err != nil {
		t.Fatal(err)
	}
	if got := reason(s.watch("/api/v1/runs/cut/live", "")); got != "cut off" {
		t.Errorf("of a recording without an end: %q", got)
	}
	removed := s.begin("removed", 1)
	v := s.watch("/api/v1/runs/removed/live", "")
	v.until("processes")
	if err := removed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Remove(removed.ID()); err != nil {
		t.Fatal(err)
	}
	if got := reason(v); got != "removed" && got != "cut off" {
		t.Errorf("of a run that was deleted: %q", got)
	}
	if status, text := s.ask(http.MethodGet, "/api/v1/runs/removed/live", ""); status != http.StatusNotFound {
		t.Errorf("of a run that is gone: %d %s", status, text)
	}
}

// TestLiveList: whoever has the list open is told which rows change and which are gone.
func TestLiveList(t *testing.T) {
	s := newSite(t, Options{})
	v := s.watch("/api/v1/live", "")
	v.until("open")
	w := s.begin("new", 1)
	for {
		e, _ := v.until("runs")
		if news := decode[rowsNews](t, e.data); len(news.Changed) == 1 && news.Changed[0].ID == w.ID() {
			break
		}
	}
	s.finish(w)
	if status, text := s.ask(http.MethodDelete, "/api/v1/runs/"+w.ID(), ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for {
		e, _ := v.until("runs")
		if slices.Contains(decode[rowsNews](t, e.data).Removed, w.ID()) {
			return
		}
	}
}

// TestRing: whoever asks for what comes behind a place of the recording gets all of it in order, or is told that it is
// not all there any more; and the ring stays within its bound.
func TestRing(t *testing.T) {
	var r ring
	at := int64(0)
	for i := range 5000 {
		next := at + int64(i%7) + 1
		r.push(message{at, next, bytes.Repeat([]byte("x"), 1000+i%100)})
		at = next
	}
	if r.bytes > ringBytes || len(r.messages) < 1000 || len(r.messages) == 5000 {
		t.Fatalf("%d messages of %d bytes", len(r.messages), r.bytes)
	}
	if _, there := r.behind(r.start - 1); there {
		t.Error("what was given up is still there")
	}
	if _, there := r.since(r.first - 1); there {
		t.Error("a number that was given up is still there")
	}
	for _, place := range []int64{r.start, r.start + 1, (r.start + at) / 2, at - 1, at} {
		number, there := r.behind(place)
		messages, also := r.since(number)
		if !there || !also {
			t.Fatalf("what is behind %d is not there", place)
		}
		for i, m := range messages {
			if m.next <= place || i > 0 && m.from != messages[i-1].next {
				t.Fatalf("behind %d came %d to %d", place, m.from, m.next)
			}
		}
		if place < at && messages[len(messages)-1].next != at {
			t.Errorf("behind %d the newest is missing", place)
		}
	}
}

// TestManyViewers: all get every reading once and in order, one of them that stands still is not a burden, and one
// follower reads for all.
func TestManyViewers(t *testing.T) {
	s := newSite(t, Options{})
	w := s.begin("run", 1)
	const viewers, count = 20, 50
	done := make(chan error, viewers)
	stalled := s.watch("/api/v1/runs/last/live", "")
	for range viewers {
		v := s.watch("/api/v1/runs/last/live", "")
		v.until("processes")
		go func() {
			want := int64(1<<20 + 1)
			for {
				e, ok := v.next()
				var batch []readings
				switch {
				case !ok || e.name == "end":
					done <- fmt.Errorf("it ended before reading %d", want-1<<20)
					return
				case e.name != "samples":
					continue
				case json.Unmarshal([]byte(e.data), &batch) != nil:
					done <- fmt.Errorf("cannot read %s", e.data)
					return
				}
				for _, y := range batch[0].Y {
					if y != want {
						done <- fmt.Errorf("reading %d in place of %d", y, want)
						return
					}
					want++
				}
				if want > 1<<20+count {
					done <- nil
					return
				}
			}
		}()
	}
	for i := 1; i <= count; i++ {
		s.write(w, reading(i))
	}
	for range viewers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	s.made.hubs.mu.Lock()
	if n := len(s.made.hubs.all); n != 1 {
		t.Errorf("%d followers", n)
	}
	s.made.hubs.mu.Unlock()
	stalled.until("samples")
}
