package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"hightide/agent"
	"hightide/device"
	"hightide/heap"
	"hightide/internal/fail"
	"hightide/internal/imagine"
	"hightide/internal/launch"
)

// What rides along in observed processes is embedded in this program, and unpacked where it can be read from.

var (
	agentBundle  = sync.OnceValues(func() (*launch.Bundle, error) { return launch.NewBundle(agentFiles) })
	deviceBundle = sync.OnceValues(func() (*launch.Bundle, error) { return launch.NewBundle(deviceFiles) })
)

// unpack writes files to the first place that can hold them: the cache, which later runs find filled,
// else hightide's own folder, else shared memory.
func (e *Engine) unpack(b *launch.Bundle) (dir string, err error) {
	var parents []string
	if cache, err := os.UserCacheDir(); err == nil {
		parents = append(parents, filepath.Join(cache, "hightide", "helpers"))
	}
	parents = append(parents, filepath.Join(e.Folder(), "helpers"))
	if shared := e.Runtime.SharedDir(); launch.MakePrivate(shared) == nil {
		parents = append(parents, filepath.Join(shared, "helpers"))
	}
	return launch.Extract(b, parents...)
}

// UnpackAgent unpacks the agent and, in a build that has one, the heap sampler; heapLibrary is "" in one
// that has not.
func (e *Engine) UnpackAgent() (agentDir, heapLibrary string, err error) {
	bundle, err := agentBundle()
	if err != nil {
		return "", "", fmt.Errorf("no agent in this build: %w", err)
	}
	dir, err := e.unpack(bundle)
	if err == nil && bundle.Has("heap/"+heap.LibraryName) {
		heapLibrary = filepath.Join(dir, "heap", heap.LibraryName)
	}
	return filepath.Join(dir, "agent"), heapLibrary, err
}

// helpers are what rides along in any run: the agent first, and with stacks the heap sampler. What cannot
// be had is left out, with a note: the run goes on with what is there.
func (e *Engine) helpers(stacks bool) (list []launch.Helper, notes []string) {
	dir, library, err := e.UnpackAgent()
	if err != nil {
		return nil, []string{fmt.Sprintf("programs are watched from outside only: %v", err)}
	}
	hook := filepath.Join(dir, "hook")
	list = append(list, launch.Helper{Name: "agent", PythonPath: hook, Env: map[string]string{"HIGHTIDE_AGENT_PATH": hook}})
	switch {
	case stacks && library == "":
		notes = append(notes, "no heap library in this build: allocations are not blamed on lines")
	case stacks && !launch.Runs(library):
		notes = append(notes, fmt.Sprintf("allocations are not seen: no library can be loaded from %s, which is mounted noexec, and no other place was found; XDG_CACHE_HOME can name one", filepath.Dir(library)))
	case stacks:
		list = append(list, launch.Helper{Name: "heap", Preload: library, Env: map[string]string{"HIGHTIDE_HEAP": library}})
	}
	return list, notes
}

// agentFiles are the agent and, in a build that has one, the heap sampler.
func agentFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	tree := agent.Source()
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		files["agent/"+path], err = fs.ReadFile(tree, path)
		return err
	})
	if library, ok := heap.Library(); ok {
		files["heap/"+heap.LibraryName] = library
	}
	return files, err
}

// imagineHelpers are what rides along in an imagined run: the device too.
func (e *Engine) imagineHelpers() (*imagine.Helpers, error) {
	const hint = "is there a folder that hightide can write to?"
	list, notes := e.helpers(true)
	if len(list) == 0 {
		return nil, fail.Environment(hint, "%s", notes[0])
	}
	h := &imagine.Helpers{Agent: list[0]}
	if len(list) > 1 {
		h.Heap = &list[1]
	}
	bundle, err := deviceBundle()
	if err != nil {
		return nil, err
	}
	dir, err := e.unpack(bundle)
	if err != nil {
		return nil, fail.Environment(hint, "%w", err)
	}
	libraries := filepath.Join(dir, "device")
	h.Device = launch.Helper{Name: "device", Preload: filepath.Join(libraries, device.LibraryName), Libraries: libraries, Programs: filepath.Join(libraries, "bin")}
	return h, nil
}

// deviceFiles are the libraries of the imaginary GPUs, by their path in the helpers' folder. The driver's
// own names stand beside the one that is preloaded: Triton links against libcuda.so, and pynvml opens
// libnvidia-ml.so.1 in processes of its own.
func deviceFiles() (map[string][]byte, error) {
	libraries, ok := device.Libraries()
	if !ok {
		return nil, fail.Environment("build it with make", "this hightide was built without its device library")
	}
	files := map[string][]byte{}
	for name, image := range libraries {
		files["device/"+name] = image
	}
	for name, text := range device.Programs() {
		files["device/bin/"+name] = text
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so"} {
		files["device/"+name] = libraries[device.LibraryName]
	}
	return files, nil
}

// CanImagine says whether this build has the imaginary GPU.
func CanImagine() bool {
	_, ok := device.Libraries()
	return ok
}
