package server

import (
	"encoding/binary"
	"hash/crc32"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestLiveUnreadable: of a recording by a newer engine, and of a file that is none, a viewer is told once and
// clearly. One that is damaged in the middle is read on.
func TestLiveUnreadable(t *testing.T) {
	dir := t.TempDir()
	kept, err := store.Open(store.Place{Store: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	made, handler := New(&engine.Engine{DataDir: dir, Store: kept}, Options{Token: right})
	s := &site{httptest.NewServer(handler), t, nil, made}
	t.Cleanup(s.stop)
	for reason, spoil := range map[string]func([]byte) []byte{
		"newer": func(data []byte) []byte {
			binary.LittleEndian.PutUint16(data[8:], 99)
			binary.LittleEndian.PutUint32(data[12:], crc32.Checksum(data[:12], crc32.MakeTable(crc32.Castagnoli)))
			return data
		},
		"unreadable": func([]byte) []byte { return []byte("this is not a recording at all, whatever it is called") },
		"finished": func(data []byte) []byte {
			data[len(data)/2] ^= 0xff
			return data
		},
	} {
		w, err := kept.Create(mem.RunInfo{Verb: "run", Command: []string{"x"}, StartMono: 1, StartWall: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.write(w, mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured})
		for i := range 20 {
			s.write(w, reading(i))
		}
		s.finish(w)
		path := filepath.Join(dir, "runs", w.ID(), store.Recording)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, spoil(data), 0o600); err != nil {
			t.Fatal(err)
		}
		v := s.watch("/api/v1/runs/"+w.ID()+"/live", "")
		last, before := v.until("end")
		if got := decode[end](t, last.data); got.Reason != reason || got.Text == "" ||
			reason != "finished" && len(before) > 0 {
			t.Errorf("%s: %v, then %s", reason, before, last.data)
		}
		status, text := s.ask("GET", "/api/v1/runs/"+w.ID()+"/report", "")
		if (status == 200) != (reason == "finished") || status >= 500 {
			t.Errorf("%s: its report is %d %s", reason, status, text)
		}
	}
}
