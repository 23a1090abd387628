package server

import (
	"fmt"
	"testing"
	"time"

	"hightide/internal/explore"
	"hightide/internal/report"
)

// TestSnapshots: a file that was named is listed, drawn in tiles that add up, and searched.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Files: []string{stepSnapshot}})
	path := "/snapshots/" + d.snapshot()
	var info struct {
		State   string
		Devices []struct {
			Events, Blocks int
			PeakAt         int   `json:"peak_at"`
			Peak           int64 `json:"peak_bytes"`
		}
	}
	d.get("GET", path, "", 200, &info)
	if info.State != "ready" || len(info.Devices) != 1 || info.Devices[0].Events != 19770 || info.Devices[0].Blocks == 0 {
		t.Fatalf("%+v", info)
	}
	var r report.Report
	if d.get("GET", path+"/report", "", 200, &r); len(r.Allocators) != 1 {
		t.Errorf("report of %d devices", len(r.Allocators))
	}
	if text := d.get("GET", path+"/blocks?width=800&height=400", "", 200, nil); len(text) < 1000 || len(text) > 300_000 {
		t.Errorf("a tile of %d bytes", len(text))
	}
	var m explore.Moment
	d.get("GET", path+"/moment?at=19000", "", 200, &m)
	d.get("GET", path+"/block?n=0", "", 200, nil)
	d.get("GET", path+"/search?q=linear", "", 200, nil)
	var held, gone explore.Flame
	d.get("GET", path+"/flame?at=19000", "", 200, &held)
	d.get("GET", path+"/flame?from=100&to=19000&of=freed&by=category&only=temporaries", "", 200, &gone)
	if held.Total != m.Allocated || gone.Total == 0 || len(gone.Numbers) != len(gone.Frames) {
		t.Errorf("%v held of %v, %v freed", held.Total, m.Allocated, gone.Total)
	}
	var lines struct {
		File, Why string
		Text      []string
	}
	for i, number := range held.Numbers {
		if number < 0 {
			continue
		}
		d.get("GET", fmt.Sprintf("%s/source?place=%d", path, number), "", 200, &lines)
		if lines.Why == "" || len(lines.Text) > 0 || lines.File != held.Frames[i].File {
			t.Fatalf("of a machine that is not this one: %+v", lines)
		}
	}
	var cached explore.Cached
	if d.get("GET", path+"/cached?from=100&to=5000&columns=300", "", 200, &cached); len(cached.Point) != 289 || cached.Reserved[0] != cached.Active[0]+cached.Split[0]+cached.Free[0] {
		t.Errorf("%d columns", len(cached.Point))
	}
	var list explore.Events
	if d.get("GET", path+"/events?from=19760&count=5", "", 200, &list); len(list.Events) != 5 || list.Events[0].Number != 19760 {
		t.Errorf("%+v", list)
	}
	var next NextEvent
	if d.get("GET", path+"/next?action=oom", "", 200, &next); next.Event != -1 {
		t.Errorf("memory ran out at %d", next.Event)
	}
	for request, status := range map[string]int{"/search?q=%28": 422, "/next?action=jump": 422,
		"/source?place=99999999": 404, "/flame?by=size&only=x": 422, "/blocks?device=7": 404, "/block?n=99999999": 404} {
		d.get("GET", path+request, "", status, nil)
	}
	d.get("GET", "/snapshots/nothere", "", 404, nil)
	d.get("GET", "/snapshots/..%2f..%2fetc%2fpasswd/blocks", "", 404, nil)
}

// TestSnapshotsRest: what nobody looks at any more is given away with what was made of it, and read again when it is
// asked for.
func TestSnapshotsRest(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Files: []string{stepSnapshot}})
	id := d.snapshot()
	path := "/snapshots/" + id
	before := d.get("GET", path+"/blocks", "", 200, nil)
	d.get("POST", path+"/whatif", `{}`, 200, nil)
	s := d.of
	parsed, err := s.opened.Snapshot(t.Context(), id)
	if err != nil || !s.opened.Holds(parsed) || s.opened.Rest(time.Now().Add(-time.Hour)) {
		t.Fatalf("%v: what was just used is held", err)
	}
	go s.rest(t.Context(), time.Millisecond)
	for s.opened.Holds(parsed) {
		time.Sleep(time.Millisecond)
	}
	for kept := 1; kept > 0; time.Sleep(time.Millisecond) {
		s.tried.lock.Lock()
		kept = len(s.tried.kept)
		s.tried.lock.Unlock()
	}
	if again := d.get("GET", path+"/blocks", "", 200, nil); again != before {
		t.Error("read again, it is another")
	}
}
