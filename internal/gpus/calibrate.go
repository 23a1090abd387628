package gpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/pythons"
	"hightide/internal/sampler"
)

// Calibration is what a present card really has and what a process takes of it beside its allocator.
type Calibration struct {
	Version int             `json:"version"`
	Label   mem.Label       `json:"label"`
	Python  string          `json:"python"`
	Torch   string          `json:"torch"`
	GPUs    []CalibratedGPU `json:"gpus"`
}

// CalibratedGPU is one card.
type CalibratedGPU struct {
	Index     int          `json:"index"`
	Name      string       `json:"name"`
	Like      string       `json:"like,omitempty"` // row of the catalogue, where it has one
	Compute   string       `json:"compute_capability"`
	SMs       int          `json:"multiprocessors"`
	Total     mem.Bytes    `json:"total_bytes"`
	Overhead  mem.Optional `json:"context_overhead_bytes,omitzero"` // absent where another process used the card meanwhile
	Catalogue mem.Optional `json:"catalogue_total_bytes,omitzero"`
	Known     mem.Optional `json:"catalogue_overhead_bytes,omitzero"`
}

// Calibrate measures the cards of this machine with the interpreter that has torch; python names one to
// prefer. It was written against NVML and PyTorch's documentation and has not run on hardware yet.
func Calibrate(ctx context.Context, python string) (*Calibration, error) {
	vendors := sampler.OpenVendors("/")
	defer func() {
		for _, v := range vendors {
			v.Close()
		}
	}()
	i := slices.IndexFunc(vendors, func(v sampler.Vendor) bool { return v.Name() == "NVIDIA" })
	if i < 0 || len(vendors[i].Devices()) == 0 {
		return nil, fail.Environment("run it on the machine that has the card", "there is no NVIDIA GPU here to calibrate")
	}
	all := pythons.Find(ctx, python)
	at := slices.IndexFunc(all, func(p pythons.Interpreter) bool { return p.Frameworks[frameworks.Torch] != "" && p.CUDA != "" })
	if at < 0 {
		return nil, fail.Environment("name one with --python", "no Python with a CUDA build of PyTorch was found")
	}
	before := deviceUse(vendors[i])
	c := exec.CommandContext(ctx, all[at].Path, "-c", frameworks.Calibration)
	var problem bytes.Buffer
	c.Stderr = &problem
	text, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(problem.String()), "\n")
		return nil, fail.Environment(frameworks.SeesCard,
			"calibrate with %s: %w: %s", all[at].Path, err, lines[len(lines)-1])
	}
	return readCalibration(text, all[at], before, deviceUse(vendors[i]))
}

// readCalibration joins what torch printed with what the driver said before and after it ran.
func readCalibration(text []byte, python pythons.Interpreter, before, after map[string]int64) (*Calibration, error) {
	var said struct {
		Torch string `json:"torch"`
		GPUs  []struct {
			CalibratedGPU
			Used     int64 `json:"used_bytes"`
			Reserved int64 `json:"reserved_bytes"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("read what torch said of the cards: %w", err)
	}
	catalogue := Builtin()
	result := &Calibration{Version: 1, Label: mem.Measured, Python: python.Path, Torch: said.Torch}
	for _, card := range said.GPUs {
		device := fmt.Sprintf("nvidia:%d", card.Index)
		was, known := before[device]
		if now := after[device]; known && now-was < 16<<20 && was-now < 16<<20 && card.Used-was > card.Reserved {
			card.Overhead = mem.Some(card.Used - was - card.Reserved)
		}
		if like, err := catalogue.Find(card.Name); err == nil {
			card.Like, card.Catalogue, card.Known = like.Slug, mem.Some(int64(like.Total)), mem.Some(int64(like.Overhead))
		}
		result.GPUs = append(result.GPUs, card.CalibratedGPU)
	}
	return result, nil
}

// deviceUse asks a driver for the bytes in use on each device, for at most a few seconds.
func deviceUse(v sampler.Vendor) map[string]int64 {
	use := map[string]int64{}
	for range 50 {
		readings, _ := v.Sample(nil)
		for _, r := range readings {
			if r.Name == mem.SeriesDeviceUsed {
				use[r.Device] = r.Value
			}
		}
		if len(use) > 0 {
			return use
		}
		time.Sleep(100 * time.Millisecond)
	}
	return use
}

// TOML is the rows for the user's own catalogue.
func (c *Calibration) TOML() string {
	var b strings.Builder
	host, _ := os.Hostname()
	for _, g := range c.GPUs {
		fmt.Fprintf(&b, "[[gpu]]  # measured by hightide info --calibrate with torch %s\n", c.Torch)
		fmt.Fprintf(&b, "slug = %q\n", strings.ToLower(strings.Join(strings.Fields(fmt.Sprintf("%s gpu%d", host, g.Index)),
			"-")))
		if g.Like != "" {
			fmt.Fprintf(&b, "like = %q\n", g.Like)
		}
		fmt.Fprintf(&b, "name = %q\ncompute_capability = %q\nmultiprocessors = %d\nmemory = %d\n", g.Name, g.Compute, g.SMs,
			g.Total)
		if overhead, ok := g.Overhead.Get(); ok {
			fmt.Fprintf(&b, "overhead = %d\n", overhead)
		}
		b.WriteString("\n")
	}
	return b.String()
}
