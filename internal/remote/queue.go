package remote

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/files"
)

// Target is where a run goes.
type Target struct {
	Server  string `json:"server"`
	Project string `json:"project"`
}

// Queue is a folder that says of runs of this machine where they are still to be sent: a file a run, by its id. The
// runs themselves stay where they are.
type Queue struct{ Folder string }

// Add has a run wait.
func (q Queue) Add(id string, to Target) error {
	text, err := json.Marshal(to)
	if err == nil {
		err = files.Write(filepath.Join(q.Folder, id+".json"), "note what is to be sent", func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	return err
}

// Done has a run wait no more.
func (q Queue) Done(id string) error {
	if err := os.Remove(filepath.Join(q.Folder, id+".json")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Waiting are the runs that wait, and for which server.
func (q Queue) Waiting() (map[string]Target, error) {
	entries, err := os.ReadDir(q.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]Target{}
	for _, entry := range entries {
		id, is := strings.CutSuffix(entry.Name(), ".json")
		text, err := os.ReadFile(filepath.Join(q.Folder, entry.Name()))
		var to Target
		if is && err == nil && json.Unmarshal(text, &to) == nil {
			all[id] = to
		}
	}
	return all, nil
}
