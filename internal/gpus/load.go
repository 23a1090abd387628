package gpus

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hightide/internal/fail"
)

// Load is the built-in catalogue of GPUs with the user's own: gpus.toml in the configuration
// folder where there is one, then the files named.
func Load(files ...string) (*Catalogue, error) {
	c := Builtin()
	if dir, err := os.UserConfigDir(); err == nil {
		path := filepath.Join(dir, "hightide", "gpus.toml")
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			files = append([]string{path}, files...)
		}
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err == nil && (info.IsDir() || info.Size() > maxCatalogue) {
			err = errors.New("not a catalogue")
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(path)
		}
		if of := (*fs.PathError)(nil); errors.As(err, &of) {
			return nil, fail.Unread("name a catalogue of GPUs; hightide about imagine says how one is written", err)
		}
		if err == nil {
			err = c.Parse(path, text)
		}
		if err != nil {
			return nil, fail.Input("hightide about imagine says how a catalogue is written", "catalogue %s: %w", path, err)
		}
	}
	return c, nil
}

const maxCatalogue = 4 << 20 // bytes

// Named is Find with the error that a command ends with.
func (c *Catalogue) Named(name string) (*GPU, error) {
	g, err := c.Find(name)
	if err != nil {
		return nil, fail.Input("hightide gpus lists all; your own go into a file (hightide about imagine)", "%w", err)
	}
	return g, nil
}

// Imaginable is Named for those that CUDA programs can be imagined on.
func (c *Catalogue) Imaginable(name string) (*GPU, error) {
	g, err := c.Named(name)
	if err == nil && g.Scope == ScopeFormula {
		return nil, fail.Input("hightide plan computes with it; for a card of your own, put a row into a file (hightide about imagine)",
			"the memory of %s is a formula, and none is imagined by it", g.Slug)
	}
	if err == nil && !g.CUDA() {
		return nil, fail.Input("name an NVIDIA GPU; hightide gpus lists them",
			"%s is not a GPU that a CUDA build can use, and only those can be imagined", g.Slug)
	}
	return g, err
}

// List is what `hightide gpus --json` prints.
type List struct {
	Version int   `json:"version"`
	GPUs    []GPU `json:"gpus"` // by memory, smallest first
}

// Listed is the catalogue with the files' GPUs, or the one that a name means.
func Listed(files []string, name string) (*List, error) {
	c, err := Load(files...)
	if err != nil {
		return nil, err
	}
	list := &List{Version: 1, GPUs: c.GPUs}
	if name != "" {
		g, err := c.Named(name)
		if err != nil {
			return nil, err
		}
		list.GPUs = []GPU{*g}
	}
	slices.SortStableFunc(list.GPUs, func(a, b GPU) int { return cmp.Compare(a.Total, b.Total) })
	return list, nil
}
