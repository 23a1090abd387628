package imagine

import (
	"hightide/internal/levers"
	"hightide/internal/options"
)

// Settings are what a user can set of an imagined run beside what any run has.
func (o *Options) Settings() options.List {
	return options.List{
		{Name: "gpu", Help: "`name` of a GPU as in hightide gpus, several with commas, or all (default h100-sxm)", To: &o.GPU, Label: "GPU",
			Hint:    "Choose one below. Without, h100-sxm is taken.",
			Example: "h100-sxm", First: true, Once: "name several with commas, as a10,l4, or all of the catalogue by --gpu all"},
		{Name: "gpus", Help: "`number` of these GPUs in the machine (default 1)", To: &o.GPUs, Least: 1, Label: "How many",
			Example: "1", First: true, Older: "gpu_count"},
		{Name: "memory", Help: "`size` of the GPU's memory in place of the catalogue's, as 24GiB", To: &o.Memory,
			Label: "Memory", Example: "24GiB"},
		{Name: "context", Help: "`size` of device memory that a process takes beside PyTorch's allocator, as 900MiB; " +
			"hightide info --calibrate measures it", To: &o.Context, Label: "Context", Example: "900MiB"},
		{Name: "users", Help: "of an LLM server: the `number` of sequences that it is to run at once; of several GPUs the cheapest " +
			"that does is looked for", To: &o.Users, Least: 1, Label: "Users", Example: "20"},
		{Name: "tokens", Help: "`number` of tokens of each of them, prompt and answer together (default: the longest that the " +
			"engine takes)", To: &o.Tokens, Least: 1, Label: "Tokens of each", Example: "8192"},
		{Name: "load", Help: "of an LLM server: before it ends, have it answer `requests` over HTTP, as 8x512+128: 8 at once, of 512 " +
			"tokens and 128 of answer each", To: &o.Load, Label: "Requests to play", Example: "8x512+128"},
		{Name: "steps", Help: "stop after this `number` of optimizer steps; auto: once the peak is steady; 0: run to the end",
			To: &o.Until, Default: "auto", Label: "Steps", Example: "auto"},
		{Name: "until", Help: "do not stop before this `part` of the training: evaluation, checkpoint, epoch, several with " +
			"commas; data loaders are cut short to get there early; ready: stop an LLM server once its engine has started; load: once it has answered --load", To: &o.Reach, Commas: true, Among: Goals,
			Label: "Reach", Example: "evaluation,checkpoint"},
		{Name: "longest", Help: "put the largest sample of a data set into the first batch", To: &o.Longest,
			Label: "Largest sample"},
		{Name: "alloc-conf", Help: "`settings` of PyTorch's allocator, as expandable_segments:True", To: &o.AllocConf,
			Label: "Allocator settings", Example: "expandable_segments:True"},
		{Name: "world-size", Help: "imagine a cluster of this `number` of ranks and play some of them, a process each",
			To: &o.World, Least: 1, Label: "Ranks of a cluster", Example: "1024"},
		{Name: "play", Help: "which `ranks` to play, as 0,1,127, 0-15, 0-120/8 or all; each kind once, at most 64 (default " +
			"all of up to eight, else the first two, a middle one and the last)", To: &o.PlayList, Label: "Ranks to play",
			Example: "0,1,1023"},
		{Name: "data-sizes", Help: "sizes that depend on data: upper (their upper bound), zero, or a `fraction` of the bound",
			To: &o.Sizes, Default: "upper", Label: "Sizes that depend on data", Example: "upper"},
		{Name: "read-value", Help: "value that the program reads where a GPU would have computed it: a number for all lines, " +
			"or `LINE=VALUE`; may be given several times", To: &o.ReadValues, Label: "Values read",
			Example: "0.5 train.py:41=3"},
		{Name: "vary", Help: "also run with other settings that change the peak: allocator, attention, compile caches, " +
			"data-dependent sizes, a GPU that is behind the host; of an LLM server: its settings, one at a time", To: &o.Vary, Label: "Vary"},
		{Name: "sandbox", Help: "let the program write into a folder that is deleted afterwards", To: &o.Sandbox,
			Label: "Sandbox"},
		{Name: "fake-weights", Help: "where weights are not on this machine, make up some of the right shapes",
			To: &o.FakeWeights, Label: "Made-up weights"},
		{Name: "suggest", Help: "where it does not fit, try what would make it fit", To: options.Off{To: &o.NoSuggest},
			Not: options.Form, Why: "a box that is ticked says no_suggest"},
		{Name: "no-suggest", Help: "do not try what would make it fit", To: &o.NoSuggest, Label: "No suggestions",
			Not: options.MCP | options.Python, Why: "suggest says it"},
		levers.Setting(&o.Plan),
		options.Catalogue(&o.Catalogue),
	}
}
