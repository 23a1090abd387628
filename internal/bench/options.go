package bench

import (
	"strconv"
	"strings"

	"hightide/internal/executor"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
)

// Settings are what a user can set of a matrix. The spec is text: no path of a request is opened.
func (o *Options) Settings() options.List {
	const cluster = "jobs of a cluster read the spec from a file"
	return options.List{
		{Name: "name", Help: "`name` of the matrix (default that of the file)", To: &o.Name, Label: "Name",
			Hint:    "Letters, digits, dots, dashes and underscores. The same name goes on where it was.",
			Example: "nightly", First: true},
		{Name: "spec", Help: "YAML: axes, whose combinations are the cells; hightide about bench has every key",
			To: specText{&o.Text}, Label: "Spec", First: true, Not: options.Command, Why: "FILE names it"},
		{Name: "jobs", Help: "at most this `number` of trials at once, as memory allows; times are then not comparable " +
			"(default 1; of a cluster 200)", To: &o.Jobs, Least: 1, Label: "At once",
			Hint: "Trials beside each other disturb each other's times.", Example: "1", First: true},
		{Name: "executor", Help: "`where` trials run: local, or as jobs of a cluster: slurm, ray", To: &o.Executor,
			Default: "local", Among: Executors(), Not: options.CommandOnly, Why: cluster},
		{Name: "resources", Help: "`what` each job of a cluster asks for, as cpus=2,memory=8GiB,gpus=1",
			To: resources{&o.Resources}, Not: options.CommandOnly, Why: cluster},
		{Name: "only", Help: "only cells with this `axis=value`, or axis=value,value; may be given several times",
			To: &o.Only, Label: "Only", Example: "batch=16,32"},
		{Name: "repeats", Help: "exactly this `number` of trials of each cell (default as the file says)", To: &o.Repeats,
			Least: 1, Label: "Repeats", Example: "5"},
		{Name: "timeout", Help: "of each trial, as in 90s or 5m (default as the file says)", To: &o.Timeout, Least: 1e9,
			Label: "Timeout", Example: "5m"},
		{Name: "again", Help: "measure everything again", To: &o.Again, Label: "Again"},
		options.Catalogue(&o.Catalogue),
	}.Without(options.MCP|options.Python, "a matrix is measured by the command, and read by the tools")
}

// specText takes the spec itself.
type specText struct{ to *[]byte }

func (s specText) String() string { return string(*s.to) }

func (s specText) Set(text string) error {
	*s.to = []byte(text)
	return nil
}

// resources take what a job asks for.
type resources struct{ of *executor.Resources }

func (r resources) String() string { return "" }

func (r resources) Set(text string) error {
	const such = "as in --resources cpus=2,memory=8GiB,gpus=1"
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch name {
		case "cpus":
			r.of.CPUs, err = strconv.Atoi(value)
		case "gpus":
			r.of.GPUs, err = strconv.Atoi(value)
		case "memory":
			var bytes mem.Bytes
			bytes, err = mem.ParseBytes(value)
			r.of.Memory = int64(bytes)
		default:
			return fail.Usage(such, "%q is none of cpus, gpus, memory", name)
		}
		if err != nil || r.of.CPUs < 0 || r.of.GPUs < 0 || r.of.Memory < 0 {
			return fail.Usage(such, "%q says no number or size", part)
		}
	}
	return nil
}
