package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/options"
)

// monitorOptions of monitor, and with thresholds of track: attach, with readings shown as they come and saved at the
// end.
type monitorOptions struct {
	attachOptions
	output, format string
	threshold      mem.Bytes
}

func monitorCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "monitor [PID] [flags]",
		Short: "Show the memory of a process, of its children and of the machine's GPUs as it changes",
		Long: `Show the memory of a process, of its children and of the machine's GPUs as it changes, and record it.

Without PID: the process that started hightide, which is your shell or script, with all that it starts.
Other programs show only in the memory of the GPUs and in what the machine has left.

It is hightide attach with another view: a run like any other, for show, report and export. Ctrl-C and
--duration end it. --output leaves the readings in a file besides, which hightide analyze reads.

Exit codes: as of attach; 3 also a file of --output that cannot be written.`,
		Example: `  hightide monitor
  hightide monitor 4711 --interval 1 --duration 120 --output monitor.csv
  hightide monitor --duration 10s --json`,
		Args: cobra.MaximumNArgs(1),
	}, &monitorOptions{})
}

func (o *monitorOptions) AddFlags(flags *pflag.FlagSet) {
	o.attachOptions.AddFlags(flags)
	for name, to := range map[string]*time.Duration{"duration": &o.Duration, "interval": &o.Interval} {
		flag := flags.Lookup(name)
		flag.Value = seconds{flagOf{&options.Setting{Name: name, To: to, Least: 1e6}}}
		flag.Usage += "; a number without a unit is seconds"
	}
	file := flags.Lookup("output")
	file.Value, file.Usage = flagOf{&options.Setting{Name: "output", To: &o.output}},
		"also leave the readings in this `file`, or in one that ends in .hightide the recording"
	addSettings(flags, options.Setting{Name: "format", To: &o.format, Among: []string{"csv", "json"},
		Help: "of the readings: csv or json (default: as the file's name ends, else csv)"})
	flags.Func("threshold",
		"say when a GPU, or the processes together, hold this `size`; a number without a unit is MiB", o.setThreshold)
	olderFlags(flags, "all GPUs are recorded", "device=")
	olderFlags(flags, "a recording is thinned as it grows, and nothing is dropped", "max-history=")
}

// seconds is a span that is also given as a number of seconds.
type seconds struct{ flagOf }

func (s seconds) Set(word string) error {
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		word += "s"
	}
	return s.flagOf.Set(word)
}

func (o *monitorOptions) setThreshold(word string) error {
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		word += "MiB"
	}
	limit := options.Setting{Name: "threshold", To: &o.threshold, Example: "4000 or 4GiB"}
	return limit.Set(word)
}

// beyond is the threshold as alerts; none is given: there are none.
func (o *monitorOptions) beyond(a *app) (all []string) {
	if o.threshold <= 0 {
		return nil
	}
	if a.engine().HasGPUs() {
		all = append(all, fmt.Sprintf("device > %dB", int64(o.threshold)))
	}
	return append(all, fmt.Sprintf("rss > %dB", int64(o.threshold)))
}

func (o *monitorOptions) run(a *app, c *cobra.Command, args []string) error {
	o.live = true
	return o.watch(a, c, args, o.beyond(a), true)
}

// watch records as attach does, shows readings where they are wanted, and saves them at the end.
func (o *monitorOptions) watch(a *app, c *cobra.Command, args, limits []string, shows bool) error {
	for _, limit := range limits {
		if err := o.RunOptions.Settings().Find("alert").Set(limit); err != nil {
			return err
		}
	}
	if o.format == "" && filepath.Ext(o.output) == ".hightide" {
		o.Out, o.output = o.output, ""
	}
	if o.output != "" {
		if err := files.CheckFolder(o.output, "the readings"); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		if os.Getppid() == 0 {
			return fail.Usage("as in hightide "+c.Name()+" 4711",
				"what started hightide is outside of this container: name a process")
		}
		args = []string{strconv.Itoa(os.Getppid())}
		o.chosen = args
		if !o.quiet && o.readyFD < 0 {
			fmt.Fprintf(a.stderr, "hightide: watching what started this command, process %s with all that it starts, and the "+
				"machine's memory and GPUs\n", args[0])
		}
	}
	o.also = o.promise
	if shows && !o.quiet && o.json != toStdout && terminal(a.stderr) == nil {
		lines := o.lines(a.stdout)
		o.also = func(e event.Event) { o.promise(e); lines(e) }
	}
	result, err := o.record(a, c, args)
	if err != nil || result == nil {
		return err
	}
	if err := o.save(a, c.Context(), result); err != nil {
		return err
	}
	if !shows && o.json == "" {
		if !o.quiet {
			fmt.Fprintf(a.stderr, "hightide: recorded as %s; its report: hightide show %[1]s\n", result.ID)
		}
		return nil
	}
	return o.print(a, result, result.Summary())
}

// lines writes a line for a reading, one in a second at most, where there is no terminal to draw on.
func (o *monitorOptions) lines(to io.Writer) event.Sink {
	next := int64(0)
	every := int64(max(o.Interval, time.Second))
	return func(e event.Event) {
		s, ok := e.(observe.Status)
		if !ok || s.Elapsed < next {
			return
		}
		next = s.Elapsed/every*every + every
		fmt.Fprintln(to, strings.TrimPrefix(statusLine(s), "hightide "))
	}
}

// promise writes, as soon as there is a run, which one the readings will be of. The command analyze follows that
// where we are killed outright, or are asked for the readings before they are written.
func (o *monitorOptions) promise(e event.Event) {
	begun, ok := e.(engine.Attached)
	if !ok || o.output == "" {
		return
	}
	text, err := json.Marshal(promised{begun.RunID})
	if err == nil {
		_ = os.WriteFile(o.output, text, 0o644) // what is wrong with the file is told when the readings are written
	}
}

// promised stands in a file of readings until they are written.
type promised struct {
	Run string `json:"hightide_run"`
}

// follow is the run that a file promises readings of, or the reference itself.
func follow(ref string) string {
	info, err := os.Stat(ref)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<10 {
		return ref
	}
	text, err := os.ReadFile(ref)
	var p promised
	if err != nil || json.Unmarshal(text, &p) != nil || p.Run == "" {
		return ref
	}
	return p.Run
}

// save leaves the readings in a file.
func (o *monitorOptions) save(a *app, ctx context.Context, result *engine.RunResult) error {
	if o.output == "" {
		return nil
	}
	format := cmp.Or(o.format, strings.TrimPrefix(filepath.Ext(o.output), "."))
	as := map[bool]string{true: "telemetry", false: "telemetry-csv"}[format == "json"]
	_, err := a.engine().Export(context.WithoutCancel(ctx), result.ID, engine.ExportOptions{Format: as, Out: o.output})
	if err == nil && !o.quiet {
		fmt.Fprintf(a.stderr, "hightide: readings are in %s\n", o.output)
	}
	return err
}

// trackOptions of track.
type trackOptions struct {
	monitorOptions
	warning, critical float64
	watchdog          bool
}

func trackCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "track [PID] [flags]",
		Short: "Record a process, its children and the machine's GPUs without output, and say when a limit is passed",
		Long: `Record a process, its children and the machine's GPUs without output, and say when a limit is passed.

Without PID: the process that started hightide, which is your shell or script, with all that it starts.

It is hightide attach with limits: the percentages of each GPU's memory, and of the machine's memory, that
may be in use. With --detach it returns once the recording has begun; --alert takes any other limit.

Exit codes: as of attach; 3 also a file of --output that cannot be written.`,
		Example: `  hightide track 4711 --output results.json --warning-threshold 70 --critical-threshold 90
  hightide track --detach --threshold 6000
  hightide track --alert 'rss > 50MiB/step' $(pgrep -f train.py)`,
		Args: cobra.MaximumNArgs(1),
	}, &trackOptions{})
}

func (o *trackOptions) AddFlags(flags *pflag.FlagSet) {
	o.monitorOptions.AddFlags(flags)
	flags.BoolVar(&o.detach, "background", false, "the same as --detach")
	_ = flags.MarkHidden("background") // as in older tools
	o.warning, o.critical = 80, 95
	flags.Var(percentage{&o.warning}, "warning-threshold",
		"say when that much of a GPU's or the machine's memory is in use, in `percent`")
	flags.Var(percentage{&o.critical}, "critical-threshold", "say it again when that much is in use, in `percent`")
	flags.Lookup("threshold").Usage = "in place of percentages: " + flags.Lookup("threshold").Usage
	olderFlags(flags, "under hightide run the allocator's snapshot is always kept where memory runs out",
		"oom-flight-recorder")
	olderFlags(flags, "the snapshot of an out-of-memory lies in the run's folder", "oom-dump-dir=", "oom-buffer-size=",
		"oom-max-dumps=", "oom-max-total-mb=")
	olderFlags(flags, "ranks are known from their environment; --tag names anything else", "job-id=", "rank=",
		"local-rank=", "world-size=")
	olderFlags(flags, "the recording is written as it grows; hightide ui --remote-write sends it on",
		"telemetry-sink-dir=", "telemetry-flush-seconds=",
		"telemetry-rollover-mb=", "telemetry-retention-files=", "telemetry-retention-total-mb=")
	flags.BoolVar(&o.watchdog, "watchdog", false, "clean up at limits: that is done inside the program, see hightide about sdk")
	_ = flags.MarkHidden("watchdog")
}

// percentage is a flag above 0 and at most 100.
type percentage struct{ to *float64 }

func (p percentage) String() string {
	if p.to == nil {
		return ""
	}
	return strconv.FormatFloat(*p.to, 'g', -1, 64)
}
func (p percentage) Type() string { return "percent" }

func (p percentage) Set(word string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(word, "%"), 64)
	if err != nil || !(n > 0 && n <= 100) {
		return fail.Usage("as in --warning-threshold 80", "%q is not a percentage above 0 and at most 100", word)
	}
	*p.to = n
	return nil
}

func (o *trackOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.watchdog {
		return fail.Usage("in the program: hightide.compat.gpumemprof.MemoryWatchdog, see hightide about sdk",
			"the memory to free is inside the program: hightide cannot clean up from outside")
	}
	if o.warning > o.critical {
		return fail.Usage("swap them", "the warning at %v %% comes after the critical threshold of %v %%", o.warning,
			o.critical)
	}
	return o.watch(a, c, args, o.limits(a), false)
}

// limits are the thresholds as alerts.
func (o *trackOptions) limits(a *app) (all []string) {
	if o.threshold > 0 {
		return o.beyond(a)
	}
	gpus := a.engine().HasGPUs()
	for _, percent := range []float64{o.warning, o.critical} {
		if gpus {
			all = append(all, fmt.Sprintf("device > %g%%", percent))
		}
		all = append(all, fmt.Sprintf("available < %g%%", 100-percent))
	}
	return all
}
