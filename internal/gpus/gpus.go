// Package gpus is the catalogue of GPUs: what a framework sees of their memory, what a process takes
// beside its allocator, what they cost, and how sure that is.
//
//	gpus.csv (DATA.md: sources) ──▶ Builtin ──┐
//	user's TOML or CSV ──▶ Parse ──▶ Add ─────┴─▶ Catalogue ──▶ Find: a name as people write it
//	         a real card ──▶ Calibrate: a row for the user's own
//
// Start reading at GPU; Load reads the user's files.
package gpus

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hightide/internal/mem"
)

// GPU is one row of the catalogue. Slug is its name in commands.
type GPU struct {
	Slug    string   `json:"gpu" doc:"Its short name, as --gpu takes it."`
	Name    string   `json:"name" doc:"Its full name."`
	Aliases []string `json:"aliases,omitempty" doc:"Further names that are understood."`
	Vendor  string   `json:"vendor" doc:"Who makes it."`
	Arch    string   `json:"arch,omitempty" doc:"The architecture's name."`
	Compute string   `json:"compute_capability" doc:"The compute capability, as 8.6; of AMD as gfx942."`
	SMs     int      `json:"multiprocessors" doc:"How many multiprocessors it has."`

	Total      mem.Bytes `json:"total_bytes" doc:"Its memory as a framework sees it, in bytes."`
	Lowest     mem.Bytes `json:"total_lowest_bytes,omitempty" doc:"The lowest that was ever seen of this GPU, in bytes; absent: not known."`
	TotalBasis string    `json:"total_basis" doc:"How the memory is known."`
	TotalSeen  string    `json:"total_seen,omitempty" doc:"Every value that was seen, in GiB, with how often."`

	Overhead      mem.Bytes `json:"context_overhead_bytes" doc:"What a process takes beside the framework's allocator, in bytes."`
	OverheadLow   mem.Bytes `json:"context_overhead_low_bytes,omitempty" doc:"The lowest of that which was seen, in bytes."`
	OverheadHigh  mem.Bytes `json:"context_overhead_high_bytes,omitempty" doc:"The highest of that which was seen, in bytes."`
	OverheadBasis string    `json:"context_overhead_basis" doc:"How what a process takes is known."`
	OverheadKnown bool      `json:"context_overhead_known,omitempty" doc:"Whether who asks said what a process takes, so that nothing is left open."`

	Bandwidth   float64   `json:"bandwidth_gb_per_s,omitempty" doc:"The bandwidth of its memory in GB a second, of 10^9 bytes."`
	L2          mem.Bytes `json:"l2_bytes,omitempty" doc:"Its L2 cache, in bytes; absent: not known."`
	Clock       float64   `json:"clock_mhz,omitempty" doc:"The highest clock of its multiprocessors in MHz; absent: not known."`
	ClockBasis  string    `json:"clock_basis,omitempty" doc:"How the L2 cache and the clock are known."`
	Price       float64   `json:"price_usd_per_hour,omitempty" doc:"A price in USD an hour, on demand; absent: none is known."`
	PriceSource string    `json:"price_source,omitempty" doc:"Whose price it is."`
	PriceDate   string    `json:"price_date,omitempty" doc:"Of which day the price is."`
	PriceOther  string    `json:"price_other,omitempty" doc:"Prices elsewhere."`
	Confidence  string    `json:"confidence,omitempty" doc:"How sure the figures of its memory are: high, medium, low, or spec only."`
	Notes       string    `json:"notes,omitempty" doc:"What else is to be known of it."`
	Scope       Scope     `json:"scope,omitempty" doc:"Absent: it is looked at wherever all are; named: where it is named, and by plan; formula: by plan alone, as no real figure of its memory is known."`
	Source      string    `json:"source" doc:"Where the row comes from: catalogue, or the user's file."`
}

// Scope says where a GPU is looked at.
type Scope string

// The scopes but that of all.
const (
	ScopeNamed   Scope = "named"   // by name: each runs a program once more
	ScopeFormula Scope = "formula" // never run: its memory is a formula
)

// CUDA says whether a CUDA build of a framework can use it.
func (g *GPU) CUDA() bool { return strings.EqualFold(g.Vendor, "NVIDIA") }

// Capability is the compute capability of an NVIDIA GPU.
func (g *GPU) Capability() (major, minor int, ok bool) {
	a, b, found := strings.Cut(g.Compute, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	return major, minor, found && err1 == nil && err2 == nil && major > 0 && minor >= 0
}

// Uncertainty is how much less memory there may be than Total minus Overhead says: other drivers and
// settings show less, other runs took more. Where a single figure of the overhead is known, it may be
// twice that: such is the spread where there are many.
func (g *GPU) Uncertainty() mem.Bytes {
	u := g.Overhead
	switch {
	case g.OverheadKnown:
		u = 0
	case g.OverheadHigh > g.Overhead:
		u = g.OverheadHigh - g.Overhead
	}
	if g.Lowest > 0 && g.Lowest < g.Total {
		u += g.Total - g.Lowest
	}
	return u
}

// Overheads is what was seen of the overhead; zero where a single figure is known, or none is open.
func (g *GPU) Overheads() mem.Range {
	if g.OverheadKnown || g.OverheadHigh <= g.OverheadLow {
		return mem.Range{}
	}
	return mem.Range{Low: g.OverheadLow, High: g.OverheadHigh}
}

// GraphNode is what a driver keeps on the device for each kernel, copy and memset of a CUDA graph, in bytes, and GraphNodeLow
// and GraphNodeHigh what was published of it. docs/fidelity.md has the sources; no row of the catalogue differs yet.
const (
	GraphNode     mem.Bytes = 10 * mem.KiB
	GraphNodeLow  mem.Bytes = 5 * mem.KiB / 2
	GraphNodeHigh mem.Bytes = 36 * mem.KiB
)

// Alone says that a machine has one of it: it is a part of the processor, or of a laptop.
func (g *GPU) Alone() bool {
	return g.Vendor == "Apple" || strings.HasSuffix(g.Slug, "-laptop") ||
		strings.Contains(g.TotalBasis, "shared with the system") || strings.Contains(g.TotalBasis, "its firmware gives")
}

// Tight is the margin below which a fit is called tight: the uncertainty, at least 5 % of the memory.
func (g *GPU) Tight() mem.Bytes { return max(g.Uncertainty(), g.Total/20) }

// Label is Measured where the memory was seen on a GPU, Estimated where no sighting exists.
func (g *GPU) Label() mem.Label {
	switch {
	case strings.HasPrefix(g.TotalBasis, "estimated"):
		return mem.Estimated
	case strings.HasPrefix(g.TotalBasis, "--"): // what somebody asked for, by a flag of that name
		return mem.Imagined
	}
	return mem.Measured
}

// Catalogue is a list of GPUs, slugs unique.
type Catalogue struct{ GPUs []GPU }

//go:embed gpus.csv
var builtin string

var parsed = sync.OnceValues(func() ([]GPU, error) { return readCSV(strings.NewReader(builtin), "catalogue") })

// Builtin is the catalogue that hightide carries; the caller may change its copy.
func Builtin() *Catalogue {
	rows, err := parsed()
	if err != nil {
		panic(err) // embedded, and a test reads it
	}
	return &Catalogue{slices.Clone(rows)}
}

// Common are the GPUs that a program is imagined on where all are wanted.
func (c *Catalogue) Common() []GPU {
	return slices.DeleteFunc(slices.Clone(c.GPUs), func(g GPU) bool { return g.Scope != "" })
}

// Real are those whose memory is no formula.
func (c *Catalogue) Real() []GPU {
	return slices.DeleteFunc(slices.Clone(c.GPUs), func(g GPU) bool { return g.Scope == ScopeFormula })
}

// Add puts rows in front of those of the same slug, or at the end.
func (c *Catalogue) Add(rows []GPU) {
	for _, row := range rows {
		if i := slices.IndexFunc(c.GPUs, func(g GPU) bool { return g.Slug == row.Slug }); i >= 0 {
			c.GPUs[i] = row
			continue
		}
		c.GPUs = append(c.GPUs, row)
	}
}

// readCSV reads rows by the names of their columns; unknown columns are left alone.
func readCSV(in io.Reader, source string) ([]GPU, error) {
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	if !slices.Contains(header, "slug") || !slices.Contains(header, "total_memory_bytes") {
		return nil, errors.New(`the header lacks "slug" or "total_memory_bytes"`)
	}
	var rows []GPU
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		row := record{values: map[string]string{}}
		for i, name := range header {
			row.values[name] = strings.TrimSpace(fields[i])
		}
		gpu := row.gpu(source)
		if row.err == nil {
			row.err = gpu.check()
		}
		if row.err != nil {
			return nil, fmt.Errorf("line %d: %w", line, row.err)
		}
		rows = append(rows, gpu)
	}
}

// record is one line of a CSV file; the first thing wrong with it stays in err.
type record struct {
	values map[string]string
	err    error
}

func (r *record) number(name string) float64 {
	text := r.values[name]
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if (err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1<<50) && r.err == nil {
		r.err = fmt.Errorf("%s: %q is not a number", name, text)
		return 0
	}
	return v
}

func (r *record) mib(name string) mem.Bytes { return mem.Bytes(r.number(name) * float64(mem.MiB)) }

func (r *record) gpu(source string) GPU {
	v := r.values
	g := GPU{
		Slug: canonical(v["slug"]), Name: v["name"], Vendor: v["vendor"], Arch: v["arch"], Compute: v["compute_capability"],
		SMs: int(r.number("sm_count")), Total: mem.Bytes(r.number("total_memory_bytes")),
		Lowest:     mem.Bytes(r.number("total_memory_lowest_bytes")),
		TotalBasis: v["total_memory_basis"], TotalSeen: v["total_memory_seen_GiB"],
		Overhead: r.mib("overhead_MiB"), OverheadLow: r.mib("overhead_low_MiB"), OverheadHigh: r.mib("overhead_high_MiB"),
		OverheadBasis: v["overhead_basis"],
		Bandwidth:     r.number("bandwidth_GBps"), L2: r.mib("l2_MiB"), Clock: r.number("clock_MHz"),
		ClockBasis: v["clock_source"], Price: r.number("price_usd_per_hour"), PriceSource: v["price_source"],
		PriceDate:  v["price_date"],
		PriceOther: v["price_other"], Confidence: v["confidence"], Notes: v["notes"],
		Scope: Scope(v["scope"]), Source: source,
	}
	for alias := range strings.SplitSeq(v["aliases"], ";") {
		if alias = strings.TrimSpace(alias); alias != "" {
			g.Aliases = append(g.Aliases, alias)
		}
	}
	return g
}

// check refuses a row that could not be imagined, and fills in what follows from the rest.
func (g *GPU) check() error {
	g.Vendor = cmp.Or(g.Vendor, "NVIDIA")
	g.Name = cmp.Or(g.Name, g.Slug)
	_, _, capability := g.Capability()
	switch {
	case g.Slug == "":
		return errors.New("a GPU without a slug")
	case g.Total < mem.GiB || g.Total > 4*mem.TiB:
		return fmt.Errorf("%s: memory of %v; it is between 1 GiB and 4 TiB", g.Slug, g.Total)
	case g.CUDA() && !capability:
		return fmt.Errorf("%s: compute capability %q; write it as 8.6", g.Slug, g.Compute)
	case g.Scope != "" && g.Scope != ScopeNamed && g.Scope != ScopeFormula:
		return fmt.Errorf("%s: the scope %q is not known", g.Slug, g.Scope)
	case g.SMs <= 0 || g.SMs > 1<<12:
		return fmt.Errorf("%s: %d multiprocessors", g.Slug, g.SMs)
	case g.Overhead >= g.Total:
		return fmt.Errorf("%s: an overhead of %v is more than its memory", g.Slug, g.Overhead)
	}
	return nil
}
