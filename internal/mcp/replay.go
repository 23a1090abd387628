package mcp

import (
	"context"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/replay"
)

type replayInput struct {
	Files     []string `json:"files" jsonschema:"paths of allocator snapshots with a history, or runs; several: the ranks of one job"`
	AllocConf string   `json:"alloc_conf,omitempty" jsonschema:"allocator settings as PYTORCH_ALLOC_CONF has them, as expandable_segments:True; default as recorded"`
	GPU       string   `json:"gpu,omitempty" jsonschema:"GPU whose memory, less a process's context, is the limit; or all"`
	Memory    string   `json:"memory,omitempty" jsonschema:"the limit for the allocator, as 24GiB"`
	Fresh     bool     `json:"fresh,omitempty" jsonschema:"begin with an empty cache, as a search does: without what was cached before the trace"`
	Search    bool     `json:"search,omitempty" jsonschema:"try a grid of settings and find the best"`
}

// replayAnswer is what became of the trace.
type replayAnswer struct {
	Label    mem.Label        `json:"label" jsonschema:"replayed: exact to the address; estimated: not"`
	Torch    string           `json:"torch" jsonschema:"version whose rules apply"`
	Capacity mem.Bytes        `json:"capacity_bytes,omitempty"`
	Verdict  *replay.Verdict  `json:"verdict,omitempty" jsonschema:"whether memory runs out; absent: it is not short, and no limit was asked for"`
	Recorded replay.Figures   `json:"recorded"`
	Replayed replay.Figures   `json:"replayed"`
	Spread   [2]mem.Bytes     `json:"peak_reserved_spread_bytes" jsonschema:"over what addresses may turn out to be"`
	Best     []replay.Figures `json:"best,omitempty" jsonschema:"of a search: the best settings of each file, where some are no worse than the record"`
	GPUs     []gpuAnswer      `json:"gpus,omitempty" jsonschema:"smallest first"`
	Exact    int              `json:"addresses_exact" jsonschema:"of the recorded addresses, those that the model reproduces"`
	Checked  int              `json:"addresses_total"`
	Notes    []string         `json:"notes"`
}

type gpuAnswer struct {
	GPU      string    `json:"gpu"`
	Fits     bool      `json:"fits"`
	Reserved mem.Bytes `json:"peak_reserved_bytes"`
	Capacity mem.Bytes `json:"capacity_bytes"`
	Price    float64   `json:"price_usd_per_hour,omitempty"`
}

var replayTrace = tool[replayInput, replayAnswer]{
	name: "replay", title: "Replay a trace under other settings",
	about: "Run a recorded trace of GPU allocations again in an exact model of PyTorch's caching allocator: under " +
		"other settings, with less memory or on another GPU; or search the best settings. Starts no program and needs no " +
		"GPU.",
	answer: func(ctx context.Context, d *door, in replayInput, _ event.Sink) (out replayAnswer, text string, err error) {
		if len(in.Files) == 0 {
			return out, "", fail.Usage("name a snapshot or a run", "there is nothing to replay")
		}
		if err := d.readable(in.Files...); err != nil {
			return out, "", err
		}
		result, err := d.engine.Replay(ctx, in.Files, in.options())
		if err != nil {
			return out, "", err
		}
		return replayed(result), result.VerdictText() + result.Table().Text(plain) + result.Words(), nil
	},
}

func (in *replayInput) options() replay.Options {
	o := replay.Options{Device: -1, AllocConf: in.AllocConf, Changed: in.AllocConf != "", GPU: in.GPU, Memory: in.Memory,
		Fresh: in.Fresh, Search: in.Search}
	if in.GPU == "all" {
		o.GPU, o.AllGPUs = "", true
	}
	return o
}

func replayed(r *replay.Result) replayAnswer {
	a := replayAnswer{
		Label: r.Label, Torch: r.Torch, Capacity: r.Capacity, Verdict: r.Verdict, Recorded: r.Recorded, Replayed: r.Figures,
		Spread: r.Spread,
		Exact:  r.Verified.AddressesExact, Checked: r.Verified.Addresses, Notes: []string{},
	}
	each := r.Files
	if each == nil {
		each = []*replay.Result{r}
	}
	for _, f := range each {
		if f.Best != nil {
			a.Best = append(a.Best, f.Best.Figures)
		}
		for _, g := range f.GPUs {
			a.GPUs = append(a.GPUs, gpuAnswer{g.GPU, g.Fits, g.Reserved, g.Capacity, g.Price})
		}
		a.Notes = append(a.Notes, f.Notes...)
	}
	return a
}
