package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// recordingOf is a recording of a project, larger than a part.
func recordingOf(t *testing.T, project string) []byte {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(mem.RunInfo{Name: "sent", StartMono: 1, StartWall: 5, Tags: map[string]string{ProjectTag: project}})
	must(t, err)
	must(t, w.Write(w.Info()))
	for i := range 3 {
		must(t, w.Write(mem.Snapshot{Process: 1, Time: 2, Name: "s", Format: "x", Piece: []byte(noise(uint64(i), 4<<20))}))
	}
	must(t, w.Write(mem.End{Time: 9, Reason: "exit"}))
	must(t, w.Close())
	data, err := os.ReadFile(w.Run().File)
	must(t, err)
	if len(data) < PartBytes+100 {
		t.Fatalf("%d bytes are one part", len(data))
	}
	return data
}

// TestTakenByParts: a file goes on where it was cut off, for who began it; what is not what was announced, not whole or
// of another project is not shown; and what is shown is what was sent.
func TestTakenByParts(t *testing.T) {
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	s.chunk = PartBytes
	data, good := recordingOf(t, "ranker"), func(string) error { return nil }
	p := Pushing{Project: "ranker", ID: "06abcdefgh", Writer: "anna"}
	begin := func(p Pushing) []Part {
		t.Helper()
		parts, there, err := s.Begin(t.Context(), p, Recording, int64(len(data)))
		if err != nil || there {
			t.Fatalf("there %v, %v", there, err)
		}
		return parts
	}
	take := func(at int64, data []byte, hash string) error {
		return s.Take(t.Context(), p, Recording, at, hash, data)
	}
	first, rest := data[:PartBytes], data[PartBytes:]
	if err := take(0, first, hashOf(first)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that was not begun: %v", err)
	}
	begin(p)
	for what, err := range map[string]error{"another hash": take(0, first, hashOf(rest)),
		"half a part":     take(0, first[1:], hashOf(first[1:])),
		"a crooked place": take(1, first, hashOf(first)), "behind the end": take(2*PartBytes, rest, hashOf(rest)),
		"nothing": take(0, nil, hashOf(nil))} {
		if !errors.Is(err, ErrPart) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, take(0, first, hashOf(first)))
	if parts := begin(p); len(parts) != 1 || parts[0] != (Part{0, hashOf(first)}) {
		t.Errorf("goes on behind %+v", parts)
	}
	other := p
	if other.Writer = "bob"; len(begin(other)) != 0 {
		t.Error("somebody else goes on with it")
	}
	if _, err := s.Finish(t.Context(), p, []string{Recording}, good); !errors.Is(err, ErrPart) {
		t.Errorf("half of it: %v", err)
	}
	isHidden(t, s, p.Run())
	must(t, take(PartBytes, rest, hashOf(rest)))
	bad := errors.New("bad")
	if _, err := s.Finish(t.Context(), p, []string{Recording}, func(string) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("what the check refuses: %v", err)
	}
	isHidden(t, s, p.Run())
	row, err := s.Finish(t.Context(), p, []string{Recording}, func(path string) error {
		got, err := os.ReadFile(path)
		if string(got) != string(data) {
			t.Error("the check reads something else")
		}
		return err
	})
	if err != nil || row.ID != p.Run() || row.Name != "sent" || row.State != Finished ||
		content(t, s, row.ID, Recording) != string(data) {
		t.Errorf("%+v %v", row, err)
	}
	if _, there, err := s.Begin(t.Context(), p, Recording, 5); !there || err != nil {
		t.Errorf("again: there %v, %v", there, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.outbox.dir, ".taken-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestTakenIntoAnother: a recording says of which project it is, and one id is another run in each.
func TestTakenIntoAnother(t *testing.T) {
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	data := recordingOf(t, "ranker")
	p := Pushing{Project: "secret", ID: "06abcdefgh", Writer: "anna"}
	if own := (Pushing{Project: "ranker", ID: p.ID}); own.Run() == p.Run() || !strings.HasPrefix(p.Run(), p.ID) {
		t.Errorf("one id in two projects is %s and %s", own.Run(), p.Run())
	}
	_, _, err := s.Begin(t.Context(), p, Recording, int64(len(data)))
	must(t, err)
	for at := 0; at < len(data); at += PartBytes {
		piece := data[at:min(at+PartBytes, len(data))]
		must(t, s.Take(t.Context(), p, Recording, int64(at), hashOf(piece), piece))
	}
	if _, err := s.Finish(t.Context(), p, []string{Recording}, func(string) error { return nil }); !errors.Is(err, ErrPart) {
		t.Errorf("a recording of another project: %v", err)
	}
	isHidden(t, s, p.Run())
	for _, name := range []string{"../x", "", ".x", "a/b"} {
		if _, _, err := s.Begin(t.Context(), p, name, 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	p.ID = "../x"
	if _, _, err := s.Begin(t.Context(), p, Recording, 5); !errors.Is(err, ErrNotFound) {
		t.Errorf("%q: %v", p.ID, err)
	}
}
