package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/fleet"
	"hightide/internal/options"
	"hightide/internal/watch"
)

// watchOptions of watch.
type watchOptions struct {
	server  string
	machine string
	every   time.Duration
	look    time.Duration
	once    bool
	json    string
}

func watchCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "watch",
		Short: "Tell a team's server what this machine holds, and whose it is",
		Long: `Look at the processes, control groups and GPUs of this machine, and send a team's server who holds how much, who
does nothing, and what grows: hightide fleet, and the page Fleet, show it for all machines. It runs as a service,
best as root: of other people's processes the kernel tells others neither PSS nor job nor run. What is sent are
figures, names of people and jobs, and commands with their secrets masked.

The key is that of hightide login, or $HIGHTIDE_KEY, of an account that stands in machines of [fleet] in the team's
file, and --machine is that account. While the server is away, what was reserved is kept and sent later. With --once
nothing is sent, and what would be is printed.

Exit codes: 0 ended by Ctrl-C, 2 wrong usage, 3 the server refuses, 4 this machine cannot be watched.`,
		Example: `  hightide watch --server https://runs.example.org:7333
  hightide watch --server https://runs.example.org:7333 --machine gpu-07 --interval 1m
  hightide watch --once --json`,
		Args: cobra.NoArgs,
	}, &watchOptions{})
}

func (o *watchOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.server, "server", "", "tell the team's server at this `address`, as https://runs.example.org")
	flags.StringVar(&o.machine, "machine", "", "the machine's `account` there (default: the name of this host)")
	addSettings(flags, options.Setting{Name: "interval", To: &o.every, Default: "30s", Least: 1e8,
		Help: "time between two reports"},
		options.Setting{Name: "look", To: &o.look, Default: "5s", Least: 1e7, Help: "time between two looks"})
	flags.BoolVar(&o.once, "once", false, "print what would be sent, and end")
	jsonFlag(flags, &o.json)
}

func (o *watchOptions) run(a *app, c *cobra.Command, _ []string) error {
	if err := engine.CheckLinux("watch"); err != nil {
		return err
	}
	if o.json != "" && !o.once {
		return fail.Usage("add --once; hightide fleet --json is of all machines", "--json prints what is sent")
	}
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	defer release()
	settings := watch.Options{Version: engine.Version, Look: o.look, Every: o.every}
	if o.once {
		state, err := watch.Once(ctx, settings)
		if err != nil {
			return err
		}
		if o.machine, err = o.account(); err != nil {
			return err
		}
		return a.show(o.json, state, func() error {
			m := fleet.Node{Name: o.machine, Heard: state.Time, State: state}
			return a.printFleet(fleet.Of([]fleet.Node{m}, nil, state.Time, fleet.Settings{}))
		})
	}
	to, err := a.targetOf(target{server: o.server})
	if err != nil {
		return err
	}
	if to.Server == "" {
		return fail.Usage("hightide watch --server https://runs.example.org:7333", "no server of a team is named")
	}
	client, err := to.client()
	if err != nil {
		return err
	}
	if o.machine, err = o.account(); err != nil {
		return err
	}
	if settings.Folder, err = a.engine().Keep("watch"); err != nil {
		return err
	}
	settings.Send = func(ctx context.Context, r fleet.Report) error { return client.Report(ctx, o.machine, r) }
	settings.Lost = func(err error) bool { return fail.Code(err) != fail.ExitEnvironment }
	settings.Say = func(line string) { fmt.Fprintln(a.stderr, "hightide watch: "+harmless(line)) }
	settings.Say(fmt.Sprintf("%s tells %s what it holds, every %v (Ctrl-C ends it)", o.machine, to.Server, o.every))
	if err = watch.Run(ctx, settings); errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// account is by which the server knows the machine.
func (o *watchOptions) account() (string, error) {
	if o.machine != "" {
		return o.machine, nil
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "", fail.Usage("hightide watch --machine gpu-07", "this host has no name: %v", err)
	}
	return name, nil
}
