package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/pytorch"
	"hightide/internal/replay"
	"hightide/internal/report"
)

// replayOptions of replay.
type replayOptions struct {
	replay.Options
	json string
}

func replayCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "replay [flags] FILE|RUN...",
		Short: "Run a recorded trace of allocations again under other settings, or on a smaller GPU",
		Long: `Run a recorded trace of allocations again, in a model of PyTorch's CUDA caching allocator that is
exact to the address: under other allocator settings, or with less memory.

New segments get made-up addresses, and the allocator chooses between free blocks of one size by address
or by the segments' age. So the replay is run with ascending and descending addresses and by age, and
the spread is shown. The program's own empty_cache and the allocator's retries are told apart by the
calling stack.

--policy and --compare run other allocators: async (cudaMallocAsync), bfc (TensorFlow, XLA), and ideal,
a lower bound. Those are estimates; native is exact.

Several files, as of the ranks of one job, are replayed side by side; a search then looks for the
settings of the one that reserves most, and runs the best of them on all. --output keeps what was replayed
as a snapshot (.pickle) or a recording (.hightide) that explain, diff and export open.

Exit codes: 0 fine, 1 --verify found a difference, or it ran out of memory, 2 wrong usage, 3 a file
that cannot be replayed.`,
		Example: `  hightide replay snapshot.pickle --alloc-conf expandable_segments:True
  hightide replay snapshot.pickle --memory 40GiB
  hightide replay snapshot.pickle --search
  hightide replay snapshot.pickle --gpu all
  hightide replay snapshot.pickle --compare
  hightide replay rank*.pickle.gz --search
  hightide replay snapshot.pickle --alloc-conf expandable_segments:True -o replayed.pickle
  hightide replay snapshot.pickle --verify`,
		Args: cobra.MinimumNArgs(1),
	}, &replayOptions{})
}

func (o *replayOptions) AddFlags(flags *pflag.FlagSet) {
	flags.Func("alloc-conf", "allocator `settings`, as PYTORCH_ALLOC_CONF has them (default as recorded)", o.setSettings)
	flags.Func("gpu", "`name` of the GPU whose memory, less a process's context, is the limit; all: which GPUs of the "+
		"catalogue the trace fits", o.setGPU)
	flags.Func("gpus", "with `all`: the same as --gpu all", o.setGPUs)
	_ = flags.MarkHidden("gpus")
	addSettings(flags, options.Catalogue(&o.Catalogue))
	flags.StringVar(&o.Memory, "memory", "", "`size` of the allocator's limit, as 24GiB")
	flags.BoolVar(&o.Fresh, "fresh", false,
		"begin with an empty cache, as --search does: without what was cached before the trace")
	o.Device = -1
	flags.Func("device",
		"`number` of the device in the file (default the one with the longest history; with --verify all)", o.setDevice)
	addSettings(flags, options.Setting{Name: frameworks.Torch, To: &o.Torch, Check: checkTorch,
		Help: "`version` of PyTorch whose rules apply (default as the file tells)"})
	flags.BoolVar(&o.Verify, "verify", false,
		"replay with the recorded settings, and compare every address and segment with the recording")
	flags.BoolVar(&o.Search, "search", false, "try a grid of settings and list the best")
	flags.StringVar(&o.Policy, "policy", "native", "`model` of the allocator: native, async, bfc, ideal")
	flags.BoolVar(&o.Compare, "compare", false, "run all models and show them beside each other")
	hiddenFile(flags, &o.Out, "out")
	outputFlag(flags, &o.Out, "keep the replay in this `file`, .pickle or .hightide; of several, in this folder")
	jsonFlag(flags, &o.json)
}

func (o *replayOptions) setDevice(number string) error {
	var n mem.Optional
	if err := device(&n)(number); err != nil {
		return err
	}
	o.Device = int(n.Or(-1))
	return nil
}

func (o *replayOptions) setSettings(line string) error {
	o.AllocConf, o.Changed = line, true
	return nil
}

func (o *replayOptions) setGPU(name string) error {
	if name == "all" {
		return o.setGPUs(name)
	}
	o.GPU = name
	return nil
}

func (o *replayOptions) setGPUs(all string) error {
	if all != "all" {
		return fail.Usage("for one GPU: --gpu "+all, "--gpus takes nothing but all, not %s", all)
	}
	o.AllGPUs = true
	return nil
}

func checkTorch(version string) error {
	v, ok := mem.ParseVersion(version)
	if !ok || v.Before(pytorch.Oldest) || v.Major != pytorch.Newest.Major {
		return fail.Usage("as in --torch 2.9", "--torch %s is not a version of PyTorch from %v on", version, pytorch.Oldest)
	}
	return nil
}

func (o *replayOptions) run(a *app, c *cobra.Command, args []string) error {
	result, err := a.engine().Replay(c.Context(), args, o.Options)
	if err != nil {
		return err
	}
	if o.json != toStdout {
		a.printReplay(result, o.Verify)
	}
	if o.json != "" {
		if err := a.writeJSON(o.json, result); err != nil {
			return err
		}
	}
	if o.Verify && !result.Verified.Exact() || !o.Verify && result.OOM != nil ||
		o.one() && result.Verdict.IsOutOfMemory() {
		return exitStatus(1)
	}
	return nil
}

// one says that one setup was asked for, so that its verdict is the answer.
func (o *replayOptions) one() bool { return !o.Verify && !o.Search && !o.Compare && !o.AllGPUs }

func (a *app) printReplay(r *replay.Result, verify bool) {
	if verify {
		files := append([]*replay.Result{r}, r.Files...)
		for _, f := range files {
			a.printVerified(f, len(files) > 1 || f.Trace() != f.Base())
		}
		return
	}
	fmt.Fprint(a.stdout, r.Text(textOptions(a.stdout)))
}

// printVerified says how far the model agrees with a record, named where there are several; the first is then the sum
// of them.
func (a *app) printVerified(r *replay.Result, named bool) {
	v, of := r.Verified, ""
	if named && r.File != "" {
		of = " of " + report.Clean(r.Trace())
	}
	if v.Addresses == 0 && v.Segments == 0 {
		fmt.Fprintf(a.stdout, "The trace%s allocates nothing: there is nothing to check.\n", of)
		return
	}
	fmt.Fprintf(a.stdout, "%d of %d addresses and %d of %d segments%s are as recorded (rules of torch %s).\n",
		v.AddressesExact, v.Addresses, v.SegmentsExact, v.Segments, of, r.Torch)
	if v.Ambiguous > 0 {
		fmt.Fprintf(a.stdout,
			"%d of the addresses chose between equal blocks whose segments' age the trace does not hold; %d were re-aligned.\n",
			v.Ambiguous, v.Realigned)
	}
	if v.First != "" && len(r.Files) == 0 {
		fmt.Fprintf(a.stdout, "First difference: %s.\n", v.First)
	}
	if r.DeviceUnknown {
		fmt.Fprintln(a.stdout, replay.DeviceUnknownText)
	}
}
