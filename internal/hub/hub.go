// Package hub finds the files of a model: a folder, a file, or what the Hugging Face hub's library keeps on this machine.
//
//	name ──▶ Open ──▶ a folder or file of this machine ─┬─▶ Place ──▶ modelfile.Read
//	              ├─▶ the cache of huggingface_hub ─────┤
//	              └─▶ the hub, ranges of files alone ───┘ (remote.go)
//
// HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE mean what they mean to the hub's library.
package hub

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"hightide/internal/fail"
)

// Place is where a model's files are.
type Place struct {
	Asked  string // as it was named
	Source string // folder, file, cache or hub
	Files  fs.FS
	Name   string // of the one file among them that was named; "": all
}

// Options say what may be asked.
type Options struct {
	Offline bool
	MayRead func(path string) error // says why a file may not be read; nil: any may
}

// repository is a name of the hub: owner and model, a revision behind @, and either one of its files or a word of the name
// of its GGUF, as Q4_K_M.
var repository = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([\w.-]+))?(?:/([\w./-]+)|:([\w.-]+))?$`)

// wanted is what such a name means.
type wanted struct {
	asked, owner, model, revision, file, word string
}

// IsName says whether a text can name a model of the hub.
func IsName(text string) bool { return repository.MatchString(text) }

// Open finds the files that a name means. What is here comes first; the hub is asked for what is not.
func Open(ctx context.Context, name string, o Options) (*Place, error) {
	found := repository.FindStringSubmatch(name)
	here, err := o.here(name)
	if here != nil || err != nil && found == nil {
		return here, err
	}
	if found == nil {
		return nil, fail.Input("give a config.json, a folder with one, a file of safetensors or GGUF, or a name of the hub as org/model",
			"there is no file %s", name)
	}
	w := wanted{name, found[1], found[2], found[3], found[4], found[5]}
	if w.revision == "" {
		w.revision = "main"
	}
	return w.find(ctx, o)
}

// here is the folder or file of a name; nil: there is none. Where it may not be read it is not looked at, so that
// nothing tells whether it is there.
func (o *Options) here(name string) (*Place, error) {
	if o.MayRead != nil {
		if err := o.MayRead(name); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, fail.Unread("a folder or file of a model", err)
	case info.IsDir():
		return &Place{name, "folder", regular{os.DirFS(name)}, ""}, nil
	}
	dir, file := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	return &Place{name, "file", regular{os.DirFS(dir)}, file}, nil
}

// regular are the regular files of a folder: to open a pipe would wait for who writes it.
type regular struct{ fs.FS }

func (r regular) Open(name string) (fs.File, error) {
	info, err := fs.Stat(r.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return r.FS.Open(name)
}

// Stat implements fs.StatFS: nothing is opened.
func (r regular) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// offline is what says that nobody is to be asked, as a user knows it; "": nothing does.
func (o *Options) offline() string {
	if o.Offline {
		return "--offline"
	}
	for _, name := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		if isOn(name) {
			return name
		}
	}
	return ""
}

// find looks into the cache, then asks the hub, but not where what is here does.
func (w *wanted) find(ctx context.Context, o Options) (*Place, error) {
	here, dir := w.cached()
	if here != nil && o.MayRead != nil {
		if err := o.MayRead(dir); err != nil {
			return nil, err
		}
	}
	offline := o.offline()
	if here != nil && (offline != "" || w.enough(here)) {
		return w.place("cache", here)
	} else if offline != "" {
		return nil, fail.Input("give its config.json, or the folder or GGUF that it was downloaded to",
			"there is no folder %s, and the cache of huggingface_hub does not have a model of that name; the hub was not asked (%s)", w.asked,
			offline)
	}
	files, err := openRemote(ctx, w.owner+"/"+w.model, w.revision)
	switch {
	case err == nil:
		return w.place("hub", files)
	case here != nil && fail.Code(err) == fail.ExitEnvironment:
		return w.place("cache", here) // the hub is not reached: what is here has to do
	}
	return nil, err
}

// enough says whether files have weights, or the one that is wanted: a configuration alone is often all that was
// downloaded.
func (w *wanted) enough(files fs.FS) bool {
	if w.file != "" {
		_, err := fs.Stat(files, w.file)
		return err == nil
	}
	entries, _ := fs.ReadDir(files, ".") // none: nothing is here
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		end := path.Ext(e.Name())
		return end == ".safetensors" && w.word == "" || end == ".gguf"
	})
}

// place is what was found, with the one file of it that is wanted.
func (w *wanted) place(source string, files fs.FS) (*Place, error) {
	if w.word == "" {
		return &Place{w.asked, source, files, w.file}, nil
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fail.Unread("is it a model?", err)
	}
	for _, e := range entries { // the first part of several comes first
		name := e.Name()
		if path.Ext(name) == ".gguf" && strings.Contains(strings.ToLower(name), strings.ToLower(w.word)) {
			return &Place{w.asked, source, files, name}, nil
		}
	}
	return nil, fail.Input("leave out what stands behind the colon, to see which there are",
		"%s/%s has no GGUF whose name has %s in it", w.owner, w.model, w.word)
}

// cached is what the hub's library has downloaded of a model, and where; nil: nothing.
func (w *wanted) cached() (files fs.FS, dir string) {
	root := filepath.Join(CacheDir(), "models--"+w.owner+"--"+w.model)
	commit := w.revision
	if text, err := os.ReadFile(filepath.Join(root, "refs", w.revision)); err == nil && len(text) < 100 {
		commit = strings.TrimSpace(string(text))
	}
	if strings.Contains(commit, "..") || strings.ContainsAny(commit, `/\`) {
		return nil, ""
	}
	dir = filepath.Join(root, "snapshots", commit)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, ""
	}
	return regular{os.DirFS(dir)}, dir
}
