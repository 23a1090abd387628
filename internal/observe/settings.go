package observe

import (
	"hightide/internal/fail"
	"hightide/internal/options"
)

// Shared are the settings of every recording.
func (o *Options) Shared() options.List {
	return options.List{
		{Name: "name", Help: "`name` of the run, for later commands", To: &o.Name, Check: options.RunName, Label: "Name",
			Example: "bigger-batch"},
		{Name: "tag", Help: "tag as `key=value`; may be given several times", To: options.Tags{To: &o.Tags}, Label: "Tags",
			Example: "model=bert", Keyword: "tags"},
		{Name: "duration", Help: "stop after that time, as in 90s or 2h", To: &o.Duration, Least: 1e6, Label: "At most",
			Example: "90s"},
	}
}

// Settable are what a user can set of a recording that is not imagined.
func (o *Options) Settable() options.List {
	return append(o.Shared(), options.List{
		{Name: "interval", Help: "sampling interval", To: &o.Interval, Default: "100ms", Least: 1e6},
		{Name: "steps", Help: "stop after this `number` of optimizer steps", To: &o.Steps},
		{Name: "snapshot-on", Help: "`when` to take an allocator snapshot, or JAX's profile of live arrays: oom, exit, " +
			"step:N, never; several with commas", To: &o.SnapshotOn, Default: "oom"},
		{Name: "memory", Help: "`size` of host memory that the program and all it starts may have, as 512MiB: does it run in that?",
			To: &o.Memory, Label: "Host memory", Example: "512MiB"},
		{Name: "stacks", Help: "sample the host heap with Python stacks", To: options.Off{To: &o.NoStacks}},
		{Name: "no-stacks", Help: "do not sample the host heap", To: &o.NoStacks},
		{Name: "tracemalloc", Help: "have Python's tracemalloc tell which lines hold Python's memory, in place of the heap " +
			"sampler: on every system, slower, and without native memory; PYTHONTRACEMALLOC=8 in the environment " +
			"keeps the callers of lines, too", To: &o.Tracemalloc},
		{Name: "alert", Help: "say when a `limit` is passed, as 'host.rss > 8GiB', 'host.rss > 80%', 'host.rss > " +
			"50MiB/step'; may be given several times", To: alertsOf{&o.Alerts}},
	}...)
}

// alertsOf reads limits.
type alertsOf struct{ to *[]Alert }

func (a alertsOf) SetMany()       {}
func (a alertsOf) String() string { return "" }

func (a alertsOf) Set(text string) error {
	alert, err := ParseAlert(text)
	if err != nil {
		return fail.Usage("as in --alert 'host.rss > 8GiB'", "%w", err)
	}
	*a.to = append(*a.to, alert)
	return nil
}
