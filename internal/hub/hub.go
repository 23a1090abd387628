// Package hub finds the files of a model: a folder, a file, or what the Hugging Face hub's library keeps on this machine.
//
//	name ──▶ Open ──▶ a folder or file of this machine ─┬─▶ Place ──▶ modelfile.Read
//	              └─▶ the cache of huggingface_hub ─────┘
package hub

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"hightide/internal/fail"
)

// Place is where a model's files are.
type Place struct {
	Asked  string // as it was named
	Source string // folder, file or cache
	Files  fs.FS
	Name   string // of the one file among them that was named; "": all
}

// Options say what may be asked.
type Options struct {
	Offline bool
	MayRead func(path string) error // says why a file may not be read; nil: any may
}

// repository is a name of the hub, with a revision behind @ or without.
var repository = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?$`)

// Open finds the files that a name means.
func Open(_ context.Context, name string, o Options) (*Place, error) {
	info, err := os.Stat(name)
	if err == nil {
		if o.MayRead != nil {
			if err := o.MayRead(name); err != nil {
				return nil, err
			}
		}
		if info.IsDir() {
			return &Place{name, "folder", os.DirFS(name), ""}, nil
		}
		dir, file := filepath.Split(name)
		if dir == "" {
			dir = "."
		}
		return &Place{name, "file", os.DirFS(dir), file}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Unread("a folder or file of a model", err)
	}
	found := repository.FindStringSubmatch(name)
	if found == nil {
		return nil, fail.Input("give a config.json, a folder with one, a file of safetensors or GGUF, or a name of the hub as org/model",
			"there is no file %s", name)
	}
	if place := cached(name, found[1], found[2], found[3]); place != nil {
		return place, nil
	}
	return nil, fail.Input("give its config.json, or the folder or GGUF that it was downloaded to",
		"there is no folder %s, and the cache of huggingface_hub does not have a model of that name", name)
}

// cached is a model that the hub's library has downloaded; nil: it has not.
func cached(asked, owner, model, revision string) *Place {
	if revision == "" {
		revision = "main"
	}
	root := filepath.Join(cacheDir(), "models--"+owner+"--"+model)
	commit := revision
	if text, err := os.ReadFile(filepath.Join(root, "refs", filepath.FromSlash(revision))); err == nil && len(text) < 100 {
		commit = strings.TrimSpace(string(text))
	}
	if strings.Contains(commit, "..") || strings.ContainsAny(commit, `/\`) {
		return nil
	}
	dir := filepath.Join(root, "snapshots", commit)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	return &Place{asked, "cache", os.DirFS(dir), ""}
}

// cacheDir is where the hub's library keeps what it downloads.
func cacheDir() string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := os.Getenv(name); dir != "" {
			return dir
		}
	}
	return filepath.Join(home(), "hub")
}

// home is the hub library's folder.
func home() string {
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "huggingface")
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, ".cache", "huggingface")
}
