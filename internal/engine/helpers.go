package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hightide/agent"
	"hightide/heap"
	"hightide/internal/launch"
)

// helpers extracts what rides along in the observed processes. What cannot be had is left out, with
// a note: the run goes on with what is there.
func helpers(fallback string, stacks bool) ([]launch.Helper, []string) {
	files, err := agentFiles()
	if err != nil {
		return nil, []string{fmt.Sprintf("no agent in this build: %v", err)}
	}
	var notes []string
	library, haveHeap := heap.Library()
	if stacks && !haveHeap {
		notes = append(notes, "no heap library in this build: allocations are not blamed on lines")
	}
	if haveHeap {
		files["heap/"+heap.LibraryName] = library
	}
	dir, err := launch.Extract(files, helperParents(fallback)...)
	if err != nil {
		return nil, append(notes, fmt.Sprintf("programs are watched from outside only: %v", err))
	}
	hook := filepath.Join(dir, "agent", "hook")
	list := []launch.Helper{{Name: "agent", PythonPath: hook, Env: map[string]string{"HIGHTIDE_AGENT_PATH": hook}}}
	if stacks && haveHeap {
		path := filepath.Join(dir, "heap", heap.LibraryName)
		list = append(list, launch.Helper{Name: "heap", Preload: path, Env: map[string]string{"HIGHTIDE_HEAP": path}})
	}
	return list, notes
}

// helperParents are the places where helpers may live: the cache, which later runs find filled, else
// hightide's own folder, else shared memory.
func helperParents(fallback string) []string {
	var parents []string
	if cache, err := os.UserCacheDir(); err == nil {
		parents = append(parents, filepath.Join(cache, "hightide", "helpers"))
	}
	parents = append(parents, fallback)
	shared := (&Runtime{}).SharedDir()
	if launch.MakePrivate(shared) == nil {
		parents = append(parents, filepath.Join(shared, "helpers"))
	}
	return parents
}

func agentFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	tree := agent.Source()
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		files["agent/"+path], err = fs.ReadFile(tree, path)
		return err
	})
	return files, err
}
