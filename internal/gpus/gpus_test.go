package gpus

import (
	"errors"
	"strings"
	"testing"

	"hightide/internal/mem"
)

func TestBuiltin(t *testing.T) {
	c := Builtin()
	if len(c.GPUs) < 42 {
		t.Fatalf("%d GPUs", len(c.GPUs))
	}
	seen := map[string]bool{}
	for i := range c.GPUs {
		g := &c.GPUs[i]
		if seen[g.Slug] {
			t.Errorf("%s twice", g.Slug)
		}
		seen[g.Slug] = true
		if found, err := c.Find(g.Slug); err != nil || found.Slug != g.Slug {
			t.Errorf("%s is not found by its slug: %v", g.Slug, err)
		}
		if found, err := c.Find(g.Name); err != nil || found.Slug != g.Slug {
			t.Errorf("%s is not found by its name %q: %v", g.Slug, g.Name, err)
		}
		if g.TotalBasis == "" || g.Overhead > 0 && g.OverheadBasis == "" || g.Price > 0 && g.PriceSource == "" {
			t.Errorf("%s: a figure without its source", g.Slug)
		}
		if g.OverheadHigh > 0 && g.OverheadHigh < g.Overhead || g.Lowest > g.Total || g.Tight() < g.Total/20 {
			t.Errorf("%s: %+v", g.Slug, *g)
		}
	}
	a10, err := c.Find("a10")
	if err != nil || a10.Total != 23609475072 || a10.SMs != 72 || a10.Compute != "8.6" {
		t.Errorf("a10: %+v %v", a10, err)
	}
}

func TestFind(t *testing.T) {
	c := Builtin()
	for name, want := range map[string]string{
		"A10": "a10", "NVIDIA A10": "a10", "a10g": "a10g", "g5.xlarge": "a10g", "A100-40GB": "a100-40g",
		"a100 40 GB":            "a100-40g",
		"NVIDIA A100-SXM4-80GB": "a100-80g", "a100_80g_pcie": "a100-80g-pcie", "NVIDIA GeForce RTX 4090": "rtx4090",
		"4090":     "rtx4090",
		"rtx-4090": "rtx4090", "RTX 4080 Super": "rtx4080-super", "H100 SXM": "h100-sxm",
		"NVIDIA H100 80GB HBM3": "h100-sxm", "h100sxm": "h100-sxm",
		"Tesla T4": "t4", "p5": "h100-sxm", "v100 32g": "v100-32g", "rtx a6000": "rtx-a6000", "a6000": "rtx-a6000",
		"MI300": "mi300x", "6000 ada": "rtx6000-ada",
	} {
		if g, err := c.Find(name); err != nil || g.Slug != want {
			t.Errorf("%q: %v %v, want %s", name, g, err, want)
		}
	}
	for name, want := range map[string]string{
		"a100": "a100-40g, a100-40g-pcie, a100-80g or a100-80g-pcie", "H100": "h100-sxm, h100-pcie or h100-nvl",
		"V100": "v100-16g or v100-32g",
	} {
		_, err := c.Find(name)
		var missing *NotFoundError
		if !errors.As(err, &missing) || !missing.Ambiguous || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	for name, want := range map[string]string{"rtx4900": "rtx4090", "h1000-sxm": "did you mean h100-sxm?",
		"h1000": "did you mean h100-sxm, h100-pcie or h100-nvl?",
		"v1000": "did you mean v100-16g or v100-32g?", "t5": "did you mean t4", "": "no GPU",
		"abacus": `no GPU "abacus" in the catalogue`} {
		if _, err := c.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestUserFile(t *testing.T) {
	c := Builtin()
	err := c.Parse("gpus.toml", []byte(`
[[gpu]]
slug = "lab"
like = "rtx4090"
memory = "23.5 GiB"
overhead = 450000000
price_usd_per_hour = 0.2

[[gpu]]
slug = "future"
compute_capability = "13.0"
multiprocessors = 200
memory = "512GiB"
`))
	if err != nil {
		t.Fatal(err)
	}
	lab, err := c.Find("lab")
	if err != nil || lab.Total != 47*mem.GiB/2 || lab.Overhead != 450000000 || lab.SMs != 128 ||
		lab.Source != "gpus.toml" || lab.Price != 0.2 {
		t.Errorf("%+v %v", lab, err)
	}
	if g, err := c.Find("rtx4090"); err != nil || g.Source != "catalogue" {
		t.Errorf("the template changed: %+v %v", g, err)
	}
	for text, want := range map[string]string{
		"[[gpu]]\nslug='x'\nmemory='lots'":                            "not a size",
		"[[gpu]]\nslug='x'\nlike='nothing'":                           "no GPU",
		"[[gpu]]\nslug='x'\nmemory='24GiB'":                           "compute capability",
		"[[gpu]]\nslug='x'\nlike='a10'\nmemmory='24GiB'":              "line 4: unknown key",
		"[[gpu]]\nlike='a10'":                                         "without a slug",
		"[[gpu]]\nslug='x'\nlike='a10'\noverhead='99GiB'":             "more than its memory",
		"[[gpu]]\nslug='x'\ncompute_capability='9.0'\nmemory='24GiB'": "multiprocessors",
	} {
		if err := Builtin().Parse("gpus.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Builtin().Parse("mine.csv", []byte("slug,total_memory_bytes,compute_capability,sm_count\nx,25000000000,8.9,xx\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// FuzzParse: whatever a user's file says, it is rows that could be imagined, or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte("[[gpu]]\nslug='x'\nlike='a10'\nmemory='1GiB'"), true)
	f.Add([]byte("slug,total_memory_bytes\nx,1"), false)
	f.Fuzz(func(t *testing.T, text []byte, isTOML bool) {
		c, name := Builtin(), "f.csv"
		if isTOML {
			name = "f.toml"
		}
		if c.Parse(name, text) != nil {
			return
		}
		for i := range c.GPUs {
			if err := c.GPUs[i].check(); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = c.Find(string(text[:min(len(text), 40)]))
	})
}

// TestWhatIsOpen: the margin covers every context that was seen, and is that of the memory alone where the context
// was given.
func TestWhatIsOpen(t *testing.T) {
	catalogue, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, slug := range []string{"a100-40g", "a100-40g-pcie", "a100-80g", "a100-80g-pcie"} {
		g, err := catalogue.Find(slug)
		if err != nil {
			t.Fatal(err)
		}
		if seen := g.Overheads(); seen.High < 1700*mem.MiB || seen.Low > g.Overhead ||
			g.Overhead+g.Uncertainty() < seen.High {
			t.Errorf("%s: %v, seen %v, open %v", slug, g.Overhead, seen, g.Uncertainty())
		}
		g.OverheadKnown = true
		if g.Uncertainty() != g.Total-g.Lowest || g.Overheads() != (mem.Range{}) {
			t.Errorf("%s with a context that was given: %v open, %v", slug, g.Uncertainty(), g.Overheads())
		}
	}
}

// TestInstances: each machine has a GPU of the catalogue, and a source and a day for its price.
func TestInstances(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range Instances() {
		g, err := Builtin().Find(i.GPU)
		if err != nil || g.Slug != i.GPU {
			t.Errorf("%s: %v", i.Name, err)
		}
		if seen[i.Name] || i.Count < 1 || i.VCPUs < 1 || i.Memory < mem.GiB || i.Price <= 0 || i.Source == "" ||
			len(i.Date) != len("2026-01-01") || i.Provider == "" {
			t.Errorf("%+v", i)
		}
		seen[i.Name] = true
	}
	if len(seen) < 25 {
		t.Errorf("%d machines", len(seen))
	}
}
