package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// Catalogue is the built-in catalogue of GPUs with the user's own: gpus.toml in the configuration
// folder where there is one, then the files named.
func Catalogue(files ...string) (*gpus.Catalogue, error) {
	c := gpus.Builtin()
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
		if err == nil {
			err = c.Parse(path, text)
		}
		if err != nil {
			return nil, InputError("docs/imagine.md says how a catalogue is written", "catalogue %s: %w", path, err)
		}
	}
	return c, nil
}

const maxCatalogue = 4 << 20 // bytes

// FindGPU is Catalogue.Find with the error that a command ends with.
func FindGPU(c *gpus.Catalogue, name string) (*gpus.GPU, error) {
	g, err := c.Find(name)
	if err != nil {
		return nil, InputError("hightide gpus lists all; your own go into a file (docs/imagine.md)", "%w", err)
	}
	return g, nil
}

// findImaginable is FindGPU for those that CUDA programs can be imagined on.
func findImaginable(c *gpus.Catalogue, name string) (*gpus.GPU, error) {
	g, err := FindGPU(c, name)
	if err == nil && !g.CUDA() {
		return nil, InputError("name an NVIDIA GPU; hightide gpus lists them", "%s is not a GPU that a CUDA build can use, and only those can be imagined", g.Slug)
	}
	return g, err
}

// GPUList is what `hightide gpus --json` prints.
type GPUList struct {
	Version int        `json:"version"`
	GPUs    []gpus.GPU `json:"gpus"` // by memory, smallest first
}

// ListGPUs is the catalogue with the files' GPUs, or the one that a name means.
func ListGPUs(files []string, name string) (*GPUList, error) {
	c, err := Catalogue(files...)
	if err != nil {
		return nil, err
	}
	list := &GPUList{Version: 1, GPUs: c.GPUs}
	if name != "" {
		g, err := FindGPU(c, name)
		if err != nil {
			return nil, err
		}
		list.GPUs = []gpus.GPU{*g}
	}
	slices.SortStableFunc(list.GPUs, func(a, b gpus.GPU) int { return cmp.Compare(a.Total, b.Total) })
	return list, nil
}

// Table shows the list for people.
func (l *GPUList) Table() *analyze.Table {
	t := &analyze.Table{Name: "gpus", Title: "GPUs that can be imagined", Columns: []analyze.Column{
		{Name: "gpu", Title: "gpu"}, {Name: "name", Title: "name"}, {Name: "memory", Title: "memory", Unit: mem.UnitBytes},
		{Name: "overhead", Title: "context", Unit: mem.UnitBytes}, {Name: "uncertainty", Title: "uncertain", Unit: mem.UnitBytes},
		{Name: "compute", Title: "cc"}, {Name: "sms", Title: "SMs", Unit: mem.UnitCount}, {Name: "price", Title: "$/h"}, {Name: "known", Title: "known"},
	}}
	for i := range l.GPUs {
		g := &l.GPUs[i]
		known := g.Confidence
		if g.Source != "catalogue" {
			known = filepath.Base(g.Source)
		}
		if !g.CUDA() {
			known = strings.TrimSpace(known + ", not with CUDA builds")
		}
		t.Rows = append(t.Rows, []analyze.Cell{g.Slug, g.Name, int64(g.Total), int64(g.Overhead), int64(g.Uncertainty()), g.Compute, int64(g.SMs), price(g.Price), known})
	}
	return t
}

// Sources says where each figure of a GPU comes from, a line each.
func Sources(g *gpus.GPU) []string {
	lines := []string{
		fmt.Sprintf("memory      %v: %s", g.Total, g.TotalBasis),
		fmt.Sprintf("context     %v: %s", g.Overhead, g.OverheadBasis),
		fmt.Sprintf("tight below %v: 5 %% of the memory, or what the figures leave open (%v)", g.Tight(), g.Uncertainty()),
	}
	if g.TotalSeen != "" {
		lines = append(lines, "seen (GiB)  "+g.TotalSeen)
	}
	if g.OverheadHigh > 0 {
		lines = append(lines, fmt.Sprintf("            between %v and %v in the messages looked at", g.OverheadLow, g.OverheadHigh))
	}
	if g.Price > 0 {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("price       $%s an hour: %s %s", price(g.Price), g.PriceSource, g.PriceDate)))
	}
	if g.PriceOther != "" {
		lines = append(lines, "elsewhere   "+g.PriceOther)
	}
	if g.Notes != "" {
		lines = append(lines, "note        "+g.Notes)
	}
	return lines
}

func price(dollars float64) string {
	if dollars <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", dollars)
}
