package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/options"
	"hightide/internal/tui"
)

// topOptions of top.
type topOptions struct {
	every   time.Duration
	filter  string
	once    bool
	noMouse bool
	json    string
}

func topCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "top [RUN|FILE]",
		Short: "Watch runs, processes and GPUs on the terminal",
		Long: `Watch runs, processes and GPUs on the terminal: memory as bars and curves, phases, what each framework's
allocator holds, alerts and findings. With a run or a snapshot: walk through who holds its memory, with the source
beside it. "?" shows the keys.

Without a terminal, where TERM is dumb or not set, and with --once, it says the same once, in lines that a screen reader
reads well. NO_COLOR is respected.

Exit codes: 0 fine, 2 wrong usage, 3 no such run or file, 4 the terminal or the data directory cannot be used.`,
		Example: `  hightide top
  hightide top --filter python --interval 500ms
  hightide top last
  hightide top snapshot.pickle
  hightide top --once
  hightide top --json | jq '.machine.gpus[].used_bytes'`,
		Args: cobra.MaximumNArgs(1),
	}, &topOptions{})
}

func (o *topOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags, options.Setting{Name: "interval", To: &o.every, Default: "1s", Least: 1e8,
		Help: "time between two readings of the machine"})
	flags.StringVar(&o.filter, "filter", "", "show only runs and processes with these `letters`, in order")
	flags.BoolVar(&o.noMouse, "no-mouse", false, "leave clicks and the wheel to the terminal, as for selecting text")
	flags.BoolVar(&o.once, "once", false, "print once, as plain lines, and end")
	jsonFlag(flags, &o.json)
}

func (o *topOptions) run(a *app, c *cobra.Command, args []string) error {
	text := textOptions(a.stdout)
	screen := terminal(a.stdout)
	plain := o.once || o.json != "" || screen == nil || terminal(os.Stdin) == nil || plainTerminal()
	if plain && len(args) > 0 {
		return fail.Usage("hightide show "+args[0]+" prints it as plain lines; hightide explain reads files",
			"hightide top %s needs a terminal", args[0])
	}
	if plain {
		return o.printSnapshot(a, c)
	}
	options := tui.Options{Engine: a.engine(), Every: o.every, Filter: o.filter, In: os.Stdin, Out: screen,
		Color: text.Color, ASCII: text.ASCII, Console: kernelConsole(), Mouse: !o.noMouse}
	if len(args) > 0 {
		options.Ref = args[0]
	}
	return tui.Run(c.Context(), options)
}

// printSnapshot prints the snapshot.
func (o *topOptions) printSnapshot(a *app, c *cobra.Command) error {
	now, err := tui.Once(c.Context(), a.engine())
	if err != nil {
		return err
	}
	return a.show(o.json, now, func() error {
		_, err := a.stdout.Write([]byte(textOptions(a.stdout).Fit(now.Text(o.filter))))
		return err
	})
}
