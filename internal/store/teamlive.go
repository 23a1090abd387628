package store

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// The copies of runs that are being sent; teamstream.go says how they come.

func (t *Team) liveDir(run string) string { return filepath.Join(t.outbox.dir, "live", run) }

// openCopy opens what there is of a run that is being sent; nil: nothing.
func (t *Team) openCopy(run string) *os.File {
	if !validID(run) || strings.ContainsAny(run, `/\`) {
		return nil
	}
	file, err := openPlain(filepath.Join(t.liveDir(run), Recording), os.O_RDONLY)
	if err != nil {
		return nil
	}
	return file
}

// dropLive deletes the copy of a run. Who follows it reads on to its end.
func (t *Team) dropLive(run string) error {
	t.live.mu.Lock()
	defer t.live.mu.Unlock()
	if one := t.live.all[run]; one != nil {
		if delete(t.live.all, run); one.users == 0 {
			one.close()
		}
	}
	if err := os.RemoveAll(t.liveDir(run)); err != nil {
		return t.outbox.badPlace("write to", err)
	}
	return nil
}

// dropLost deletes copies of runs that the team does not have.
func (t *Team) dropLost() error {
	entries, err := os.ReadDir(t.liveDir(""))
	if err != nil || len(entries) == 0 {
		return nil
	}
	runs, err := t.listed(Filter{Brief: true})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, run := range runs {
		known[run.ID] = true
	}
	for _, entry := range entries {
		if !known[entry.Name()] {
			err = cmp.Or(err, t.dropLive(entry.Name()))
		}
	}
	return err
}
