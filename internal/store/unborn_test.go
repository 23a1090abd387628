package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"hightide/internal/mem"
)

// TestBeginsWhole: a recording is a run from the moment on at which it says of what, whoever is killed then.
func TestBeginsWhole(t *testing.T) {
	s := OpenFiles(t.TempDir())
	w, err := s.Create(mem.RunInfo{Name: "first", Verb: "run", Command: []string{"python", "train.py"}, StartMono: 1,
		StartWall: 5})
	must(t, err)
	copied := filepath.Join(s.runsDir(), "copied") // as it would be left
	must(t, os.MkdirAll(copied, 0o700))
	bytes, err := os.ReadFile(s.recording(w.ID()))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(copied, Recording), bytes, 0o600))
	_, err = os.Stat(s.unborn(w.ID()))
	if !os.IsNotExist(err) {
		t.Errorf("what it was before is still there: %v", err)
	}
	runs, err := s.List(Filter{})
	must(t, err)
	for _, run := range runs {
		if run.Name != "first" || len(run.Command) != 2 || run.Damaged || run.Start != 5 {
			t.Errorf("%+v", run)
		}
	}
	if len(runs) != 2 {
		t.Errorf("%d runs", len(runs))
	}
	must(t, w.Close())
}

// TestClearsWhatNeverBegan: the folder of a run whose engine was killed before goes away, and no other.
func TestClearsWhatNeverBegan(t *testing.T) {
	s := OpenFiles(t.TempDir())
	must(t, s.prepare())
	ago := time.Now().Add(-2 * unbornFor)
	folder := func(id string, when time.Time, files ...string) {
		must(t, os.Mkdir(s.runDir(id), 0o700))
		for _, name := range files {
			must(t, os.WriteFile(filepath.Join(s.runDir(id), name), []byte("x"), 0o600))
		}
		must(t, os.Chtimes(s.runDir(id), when, when))
	}
	folder("empty", ago)
	folder("killed", ago, ".begins", ".reserve")
	folder("young", time.Now(), ".begins")
	folder("other", ago, ".begins", "report.html")
	folder("alive", ago, ".begins")
	file, err := os.Open(s.unborn("alive"))
	must(t, err)
	defer file.Close()
	must(t, lock(file))
	runs, err := s.List(Filter{})
	if err != nil || len(runs) != 0 {
		t.Errorf("%v %v", runs, err)
	}
	for id, want := range map[string]bool{"empty": false, "killed": false, "young": true, "other": true, "alive": true} {
		if _, err := os.Stat(s.runDir(id)); (err == nil) != want {
			t.Errorf("%s: %v, should be there: %v", id, err, want)
		}
	}
	if _, err := os.Stat(s.unborn("other")); err != nil {
		t.Error("a file of a folder that stays was removed")
	}
}
