package main

import (
	"fmt"

	"hightide/internal/engine"

	"github.com/spf13/cobra"
)

func replayCommand(a *app) *cobra.Command {
	var o engine.ReplayOptions
	var asJSON, all string
	c := &cobra.Command{
		Use:   "replay [flags] FILE|RUN",
		Short: "Run a recorded trace of allocations again under other settings, or on a smaller GPU",
		Long: `Run a recorded trace of allocations again, in a model of PyTorch's CUDA caching allocator that is
exact to the address: under other allocator settings, or with less memory.

New segments get made-up addresses; ties between free blocks of one size go by address or by the
segments' age, so the replay is run with ascending and descending addresses and by age, and the spread
is told. The program's own empty_cache is told from the allocator's retries by the calling stack.

--policy and --compare run other allocators: async (cudaMallocAsync), bfc (TensorFlow, XLA), and ideal,
a lower bound. Those are estimates; native is exact.

Exit codes: 0 fine, 1 --verify found a difference, or it ran out of memory, 2 wrong usage, 3 a file
that cannot be replayed.`,
		Example: `  hightide replay snapshot.pickle --alloc-conf expandable_segments:True
  hightide replay snapshot.pickle --memory 40GiB
  hightide replay snapshot.pickle --search
  hightide replay snapshot.pickle --gpus all
  hightide replay snapshot.pickle --compare
  hightide replay snapshot.pickle --verify`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.Changed = c.Flags().Changed("alloc-conf")
			if o.AllGPUs = all == "all"; all != "" && !o.AllGPUs {
				return engine.UsageError("--gpus all, or --gpu "+all+" for one", "--gpus %s", all)
			}
			result, err := a.engine().Replay(args[0], o, a.stdin)
			if err != nil {
				return err
			}
			if asJSON != jsonToStdout {
				a.printReplay(result, o.Verify)
			}
			if err := a.writeJSON(asJSON, result); err != nil {
				return err
			}
			if o.Verify && !result.Verified.Exact() || !o.Verify && result.OOM != nil {
				return exitStatus(1)
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.AllocConf, "alloc-conf", "", "allocator `settings`, as PYTORCH_ALLOC_CONF has them (default as recorded)")
	flags.StringVar(&o.GPU, "gpu", "", "GPU whose memory, less a process's context, is the limit")
	flags.StringArrayVar(&o.Catalogue, "catalogue", nil, "a `file` with more GPUs; may be given several times")
	flags.StringVar(&o.Memory, "memory", "", "the limit for the allocator, as 24GiB")
	flags.IntVar(&o.Device, "device", -1, "device of the file (default the one with the longest history)")
	flags.StringVar(&o.Torch, "torch", "", "`version` of PyTorch whose rules apply (default as the file tells)")
	flags.BoolVar(&o.Verify, "verify", false, "hold every address and segment against the record")
	flags.BoolVar(&o.Search, "search", false, "try a grid of settings and list the best")
	flags.StringVar(&o.Policy, "policy", "native", "`model` of the allocator: native, async, bfc, ideal")
	flags.BoolVar(&o.Compare, "compare", false, "run all models and show them beside each other")
	flags.StringVar(&all, "gpus", "", "`all`: the smallest GPU of the catalogue that the trace fits")
	flags.StringVar(&asJSON, "json", "", "print as JSON; with =`FILE` into a file")
	flags.Lookup("json").NoOptDefVal = jsonToStdout
	return c
}

func (a *app) printReplay(r *engine.ReplayResult, verify bool) {
	v := r.Verified
	if verify {
		fmt.Fprintf(a.stdout, "%d of %d addresses and %d of %d segments are as recorded (rules of torch %s).\n",
			v.AddressesExact, v.Addresses, v.SegmentsExact, v.Segments, r.Torch)
		if v.Ambiguous > 0 {
			fmt.Fprintf(a.stdout, "%d of the addresses chose between equal blocks whose segments' age the trace does not hold; %d were re-aligned.\n",
				v.Ambiguous, v.Realigned)
		}
		if v.First != "" {
			fmt.Fprintf(a.stdout, "First difference: %s.\n", v.First)
		}
		return
	}
	fmt.Fprint(a.stdout, r.Table().Text(textOptions(a.stdout)))
	before, after := r.Pictures(60)
	fmt.Fprintf(a.stdout, "\n  reserved as recorded  %s\n  reserved now          %s\n", before, after)
	fmt.Fprintln(a.stdout)
	if r.Spread[0] != r.Spread[1] {
		fmt.Fprintf(a.stdout, "  Between %v and %v reserved, as addresses turn out: those cannot be known.\n", r.Spread[0], r.Spread[1])
	}
	if len(r.Search) > 0 && r.Search[0].AllocConf != "" {
		best := r.Search[0]
		fmt.Fprintf(a.stdout, "  Best: PYTORCH_CUDA_ALLOC_CONF=%s\n  It reserves %v less than recorded, with %+d calls of the driver.\n",
			best.AllocConf, r.Recorded.Reserved-best.Reserved, best.SegmentCalls-r.Recorded.SegmentCalls)
	}
	if g := r.Smallest(); g != nil {
		fmt.Fprintf(a.stdout, "  The smallest GPU it fits: %s.\n", g.GPU)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(a.stdout, "  "+printable(note))
	}
}
