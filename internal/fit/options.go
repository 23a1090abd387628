package fit

import (
	"hightide/internal/frameworks"
	"hightide/internal/options"
)

// ofModel are the settings of a model's step; a command says such things itself.
func (o *Options) ofModel() options.List {
	m := &o.Model
	list := options.List{
		{Name: "size", Help: "`preset` of a model type, as 8b of llama", To: &m.Size, Label: "Size", Example: "8b"},
		{Name: "dtype", Help: "`type` of weights and activations: fp32, tf32, bf16 or fp16", To: &m.DType, Default: "fp32",
			Among: []string{"fp32", "tf32", "bf16", "fp16"}, Label: "Number format"},
		{Name: "amp", Help: "autocast to this `type`: bf16 or fp16", To: &m.AMP, Among: []string{"bf16", "fp16"},
			Label: "Autocast"},
		{Name: "optimizer", Help: "`name` of the optimizer: none, sgd, adam, adamw or adafactor", To: &m.Optimizer,
			Default: "none", Among: []string{"none", "sgd", "adam", "adamw", "adafactor"}, Label: "Optimizer"},
		{Name: "seq-len", Help: "`tokens` of a sequence", To: &m.SeqLen, Default: "128", Least: 1, Label: "Sequence",
			Example: "128"},
		{Name: "image-size", Help: "`pixels` of an image's side", To: &m.ImageSize, Default: "224", Least: 1, Label: "Image",
			Example: "224"},
		{Name: "train", Help: "training mode (dropout, batch statistics)", To: &m.Train, Label: "Training mode"},
		{Name: "eval", Help: "eval mode (the default); the backward pass runs in it as in --train", To: &o.Eval,
			Not: options.CommandOnly, Why: "it is the default"},
		{Name: "inference", Help: "no gradients; a language model fills its KV cache to --seq-len", To: &m.Inference,
			Label: "Inference"},
		{Name: "checkpointing", Help: "gradient checkpointing, where the model offers it", To: &m.Checkpointing,
			Label: "Checkpointing"},
		{Name: "compile", Help: frameworks.Compile + " the model", To: &m.Compile, Label: "Compile"},
		{Name: "validate-backward", Help: "compare the peak with that of the forward pass alone", To: &o.Backward,
			Label: "Forward alone"},
		{Name: "python", Help: "`interpreter` for --model (default that of $VIRTUAL_ENV, else the first with torch)",
			To: &o.Python, Label: "Python", Example: "/usr/bin/python3", Not: options.MCP,
			Why: "it names a program, and a model by its name is built without the user's leave"},
	}
	for i := range list {
		list[i].Part = "model"
	}
	return list
}

// Settings are what a user can set of a search.
func (o *Options) Settings() options.List {
	here := options.List{
		{Name: "model", Help: "model to build, by `name`; or a config file, org/model of the hub, or module:function", To: &o.Model.Model,
			More:  "bert, gpt2, resnet, a name of torchvision, or a model type of transformers; in place of a command",
			Label: "Model", First: true},
		options.Words(&o.Command, "a training command with {batch} where the batch size goes; in place of a model",
			"python train.py --batch-size {batch}"),
		{Name: "gpu", Help: "`name` of the GPU to imagine, as hightide gpus lists them", To: &o.GPU,
			Hint: "To imagine; choose one below.",
			More: "without one the machine's own is used", Label: "GPU", Example: "a10", First: true,
			Once: "fit looks at one GPU"},
		{Name: "memory", Help: "`size` of the GPU's memory in place of the catalogue's, as 24GiB; with --device cpu the limit",
			To: &o.Memory, Label: "Memory", Example: "24GiB"},
		{Name: "device", Help: "`where` to run: imaginary, cuda or cpu (default imaginary with --gpu, else cuda)",
			To: &o.Device, Label: "Device", Example: "imaginary", Not: options.Form, Why: "the page asks for a GPU to imagine"},
		{Name: "alloc-conf", Help: "`settings` of PyTorch's allocator, as expandable_segments:True", To: &o.AllocConf,
			Label: "Allocator settings", Example: "expandable_segments:True"},
		options.Catalogue(&o.Catalogue),
	}
	search := options.List{
		{Name: "current", Help: "`batch` in use now, to say what it leaves unused (default 16)", To: &o.Current, Least: 1,
			Label: "Batch now", Example: "16", First: true},
		{Name: "step", Help: "try only multiples of this `number`", To: &o.Granularity, Default: "1", Least: 1,
			Label: "Multiples of", Example: "1", First: true, Keyword: "granularity"},
		{Name: "start", Help: "`batch` to begin with (default --current)", To: &o.Start, Least: 1, Label: "Begin with",
			Example: "16", Keyword: "first"},
		{Name: "most", Help: "never try a larger `batch` than this", To: &o.Most, Least: 1, Label: "At most"},
		{Name: "headroom", Help: "leave this `part` of the device free, as 5% or 1GiB", To: &o.Headroom,
			Label: "Leave free", Example: "5%"},
		{Name: "grad-accum", Help: "plan gradient accumulation to this `batch`", To: &o.TargetBatch, Least: 1,
			Label: "Batch to reach", Example: "1024"},
		{Name: "price", Help: "price of the GPU in `USD` an hour (default the catalogue's)", To: &o.Price,
			Label: "USD an hour"},
	}
	const own = "hightide.fit runs the program's own step, on the device that this uses"
	return append(append(here.Without(options.Python, own), search...), o.ofModel().Without(options.Python, own)...)
}
