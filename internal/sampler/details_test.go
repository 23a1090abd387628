package sampler

import (
	"errors"
	"os"
	"testing"
)

// TestReadDetails of this very process, and of none.
func TestReadDetails(t *testing.T) {
	var page [4096]byte
	n, err := readFile("/proc/self/stat", page[:])
	if err != nil {
		t.Fatal(err)
	}
	stat, err := parseStat(page[:n])
	if err != nil {
		t.Fatal(err)
	}
	d, err := ReadDetails("/", os.Getpid(), uint64(stat.start))
	if err != nil {
		t.Fatal(err)
	}
	folder, _ := os.Getwd()
	rss := d.Anon.Or(0) + d.File.Or(0) + d.Shmem.Or(0)
	if d.Folder != folder || d.OpenFiles.Or(0) < 3 || !d.Age.Known() || d.Age.Or(0) > 3600e9 || rss < 1<<20 ||
		d.Peak.Or(0) < d.Anon.Or(0) || d.USS.Or(0) > d.PSS.Or(0) {
		t.Errorf("%+v", d)
	}
	if _, err := ReadDetails("/", os.Getpid(), uint64(stat.start)+1); !errors.Is(err, ErrGone) {
		t.Errorf("of another process with this number: %v", err)
	}
}
