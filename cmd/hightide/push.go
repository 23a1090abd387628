package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/remote"
	"hightide/internal/report"
	"hightide/internal/store"
)

// pushOptions of push.
type pushOptions struct {
	target
	preview bool
	json    string
}

func pushCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "push [RUN...]",
		Short: "Send runs of this machine to a team's server or store",
		Long: `Send runs of the data directory to a project of a team's server, with their reports and snapshots. They stay
here too. --server and --project say where to, as do $HIGHTIDE_SERVER and $HIGHTIDE_PROJECT, and your config.toml. The
.hightide.toml of this folder does once you allowed it (hightide allow). The key is that of hightide login, or
$HIGHTIDE_KEY. With --store they go to the store of a team instead.

What the project does not want to have is taken out before it is sent: --dry-run sends nothing and says what
would go, what is taken out and what is left out. What waits to be sent, as the server was away, goes first;
without RUN it goes alone. What was cut off goes on where it ended.

Exit codes: 0 sent, or there already; 2 wrong usage, 3 no such run or the server refuses it, 4 the server or the
store cannot be used.`,
		Example: `  hightide push last
  hightide push last --server https://runs.example.org:7333 --project ranker --dry-run
  hightide push baseline --store postgres://hightide@db/hightide --objects s3://our-runs
  hightide push`,
	}, &pushOptions{})
}

func (o *pushOptions) AddFlags(flags *pflag.FlagSet) {
	o.target.AddFlags(flags)
	flags.BoolVar(&o.preview, "dry-run", false, "only say what would be sent, and what would be taken out")
	jsonFlag(flags, &o.json)
}

func (o *pushOptions) run(a *app, c *cobra.Command, args []string) error {
	if a.store == "" || o.server != "" {
		to, err := a.targetOf(o.target)
		if err != nil {
			return err
		}
		if to.Server != "" || a.engine().Shared() == "" {
			return o.toServer(a, c, args, to)
		}
	}
	if o.preview {
		return fail.Usage("a store takes everything", "--dry-run is for a server: --server")
	}
	all, failed := a.engine().Push(c.Context(), args)
	if failed != nil && len(all) == 0 {
		return failed
	}
	err := a.show(o.json, pushedList{1, all}, func() error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(a.stdout, "Nothing waits to be sent. A run of this machine: hightide push RUN")
			return err
		}
		for _, p := range all {
			what := "sent"
			if p.There {
				what = "there already"
			}
			name := strings.TrimSpace(p.ID + "  " + report.Clean(p.Name))
			if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", name, what); err != nil {
				return err
			}
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// pushedList is the JSON of push.
type pushedList struct {
	Version int             `json:"version"`
	Runs    []engine.Pushed `json:"runs"`
}

// toServer is push to a server.
func (o *pushOptions) toServer(a *app, c *cobra.Command, args []string, to placed) error {
	s, err := a.sender()
	if err != nil {
		return err
	}
	defer s.own.Close()
	if len(args) > 0 && (to.Server == "" || to.Project == "") {
		return noTarget()
	}
	var all []remote.Sent
	var failed error
	if !o.preview {
		all, failed = s.sendWaiting(c.Context(), to.rules, "")
	}
	for _, ref := range args {
		if failed != nil {
			break
		}
		var run store.Run
		var sent remote.Sent
		if run, failed = store.Find(s.own, ref); failed != nil {
			failed = a.engine().Advised(failed)
		} else if sent, failed = s.send(c.Context(), run, to, o.preview); failed == nil {
			all = append(all, sent)
		}
	}
	if failed != nil && len(all) == 0 {
		return failed
	}
	err = a.show(o.json, sentList{1, o.preview, append([]remote.Sent{}, all...)}, func() error {
		return o.printSent(a.stdout, to, all)
	})
	return errors.Join(failed, err)
}

// sentList is the JSON of push to a server.
type sentList struct {
	Version int           `json:"version"`
	Preview bool          `json:"dry_run"`
	Runs    []remote.Sent `json:"runs"`
}

func (o *pushOptions) printSent(w io.Writer, to placed, all []remote.Sent) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "Nothing waits to be sent. A run of this machine: hightide push RUN")
		return err
	}
	for _, sent := range all {
		name := strings.TrimSpace(sent.ID + "  " + report.Clean(sent.Name))
		what := "sent into " + sent.Project
		switch {
		case o.preview:
			what = fmt.Sprintf("would go into %s: %s, %v", sent.Project, strings.Join(sent.Files, ", "), mem.Bytes(sent.Bytes))
		case sent.There:
			what = "there already"
		}
		lines := []string{name + ": " + what}
		if sent.Redact != "" {
			lines = append(lines, "  taken out: "+report.Clean(sent.Redact))
		} else if o.preview {
			lines = append(lines, "  taken out: nothing; neither the project nor your settings have rules that match")
		}
		if sent.Run != "" && to.Server != "" {
			lines = append(lines, "  "+to.Server+"/runs/"+sent.Run)
		}
		if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return nil
}
