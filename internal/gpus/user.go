package gpus

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/mem"

	"github.com/pelletier/go-toml/v2"
)

// userFile is a catalogue as people write it:
//
//	[[gpu]]
//	slug = "lab-4090"
//	like = "rtx4090"        # everything not said here
//	memory = "23.5 GiB"     # as torch.cuda.get_device_properties(0).total_memory, or bytes
//	overhead = "430 MiB"    # context and libraries of one process
//	price_usd_per_hour = 0.2
type userFile struct {
	GPU []userGPU `toml:"gpu"`
}

type userGPU struct {
	Slug         string   `toml:"slug"`
	Like         string   `toml:"like"`
	Name         string   `toml:"name"`
	Aliases      []string `toml:"aliases"`
	Vendor       string   `toml:"vendor"`
	Arch         string   `toml:"arch"`
	Compute      string   `toml:"compute_capability"`
	SMs          int      `toml:"multiprocessors"`
	Memory       any      `toml:"memory"`
	Lowest       any      `toml:"memory_lowest"`
	Overhead     any      `toml:"overhead"`
	OverheadHigh any      `toml:"overhead_high"`
	Bandwidth    float64  `toml:"bandwidth_gb_per_s"`
	Price        float64  `toml:"price_usd_per_hour"`
	Notes        string   `toml:"notes"`
}

// Parse reads a user's catalogue, TOML or (where the name ends in .csv) a CSV with the columns of
// gpus.csv, and adds its rows. Errors say the place; nothing is added then.
func (c *Catalogue) Parse(name string, text []byte) error {
	if strings.HasSuffix(name, ".csv") {
		rows, err := readCSV(bytes.NewReader(text), name)
		if err == nil {
			c.Add(rows)
		}
		return err
	}
	var file userFile
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) && len(strict.Errors) > 0 {
			row, _ := strict.Errors[0].Position()
			return fmt.Errorf("line %d: unknown key %s", row, strings.Join(strict.Errors[0].Key(), "."))
		}
		var fault *toml.DecodeError
		if errors.As(err, &fault) {
			row, column := fault.Position()
			return fmt.Errorf("%d:%d: %w", row, column, err)
		}
		return err
	}
	var rows []GPU
	for i := range file.GPU {
		row, err := file.GPU[i].gpu(c, name)
		if err != nil {
			return fmt.Errorf("GPU %d: %w", i+1, err)
		}
		rows = append(rows, row)
	}
	c.Add(rows)
	return nil
}

func (u *userGPU) gpu(c *Catalogue, source string) (GPU, error) {
	g := GPU{TotalBasis: "user's file", OverheadBasis: "user's file"}
	if u.Like != "" {
		like, err := c.Find(u.Like)
		if err != nil {
			return g, err
		}
		g = *like
		g.Aliases = nil
	}
	g.Slug, g.Source = canonical(u.Slug), source
	g.Name = u.Slug
	for to, value := range map[*string]string{&g.Name: u.Name, &g.Vendor: u.Vendor, &g.Arch: u.Arch,
		&g.Compute: u.Compute, &g.Notes: u.Notes} {
		if value != "" {
			*to = value
		}
	}
	if u.Aliases != nil {
		g.Aliases = u.Aliases
	}
	if u.SMs != 0 {
		g.SMs = u.SMs
	}
	if u.Bandwidth > 0 {
		g.Bandwidth = u.Bandwidth
	}
	if u.Price > 0 {
		g.Price, g.PriceSource, g.PriceDate, g.PriceOther = u.Price, source, "", ""
	}
	return g, errors.Join(u.sizes(&g), g.check())
}

// sizes takes the sizes over, and forgets what the template said of those.
func (u *userGPU) sizes(g *GPU) error {
	if u.Memory != nil {
		g.Lowest, g.TotalSeen, g.TotalBasis, g.Confidence = 0, "", "user's file", ""
	}
	if u.Overhead != nil {
		g.OverheadLow, g.OverheadHigh, g.OverheadBasis = 0, 0, "user's file"
	}
	for _, s := range []struct {
		to    *mem.Bytes
		value any
		name  string
	}{{&g.Total, u.Memory, "memory"}, {&g.Lowest, u.Lowest, "memory_lowest"}, {&g.Overhead, u.Overhead, "overhead"},
		{&g.OverheadHigh, u.OverheadHigh, "overhead_high"}} {
		if s.value == nil {
			continue
		}
		text := fmt.Sprint(s.value)
		size, err := mem.ParseBytes(text)
		// as info --calibrate writes it
		if n, plain := strconv.ParseInt(text, 10, 64); plain == nil && n >= 0 && mem.Bytes(n) <= mem.MaxSize {
			size, err = mem.Bytes(n), nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		*s.to = size
	}
	return nil
}
