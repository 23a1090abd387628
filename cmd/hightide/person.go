package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// personOptions of person.
type personOptions struct {
	export   string
	forget   bool
	keepRuns bool
	json     string
}

func personCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "person NAME [--export FILE | --delete [--keep-runs]]",
		Short: "Everything that a team's store has of a person: list, export, delete",
		Long: `List what a team's store has of a person, by the name of the account: the account, its keys, the runs that its
keys sent to the team's server, comments, links to runs, lines of the log, and what was reserved on machines.

--export writes all of it to a .tar.gz, with the files of the runs. --delete deletes it: rows and objects, and the
runs with everything that belongs to them unless they are kept. In lines of the log and in figures of machines that
stay, the name is taken out, with the address. A delete that was cut off is ended by another one.

Runs that were recorded with the password of the database name nobody who sent them; delete those by hightide rm.
Comments that were written with it are by a user of a machine, as "anna on laptop", who need not be the same person.
Such names are listed; hightide person "anna on laptop" is of these comments.
A recording may hold names in its command, its paths or its environment; --keep-runs leaves those. The team's file,
backups, logs of the server and the machine of the person are not touched.

Exit codes: 0 fine, 2 wrong usage, 3 a run of the person is still recorded, 4 the store cannot be used.`,
		Example: `  hightide person anna
  hightide person anna --export anna.tar.gz
  hightide person anna --delete`,
		Args: cobra.ExactArgs(1),
	}, &personOptions{})
}

func (o *personOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.export, "export", "", "write all of it to this `file`, a .tar.gz")
	flags.BoolVar(&o.forget, "delete", false, "delete all of it")
	flags.BoolVar(&o.keepRuns, "keep-runs", false, "with --delete: the runs stay, without the name of who sent them")
	jsonFlag(flags, &o.json)
}

func (o *personOptions) run(a *app, c *cobra.Command, args []string) error {
	switch {
	case args[0] == "":
		return fail.Usage("hightide account and hightide key list them", "the name is empty")
	case o.forget && o.export != "":
		return fail.Usage("export first, then delete", "--export and --delete do not go together")
	case o.keepRuns && !o.forget:
		return fail.Usage("hightide person NAME --delete --keep-runs", "--keep-runs goes with --delete")
	}
	e := a.engine()
	team, err := e.SharedStore()
	if err != nil {
		return err
	}
	defer team.Close()
	if o.forget {
		err := team.Forget(c.Context(), args[0], o.keepRuns)
		if errors.Is(err, store.ErrRunning) {
			return fail.Input("wait until it has ended, or for a minute after it was cut off, and delete again", "%w", err)
		}
		if err == nil {
			err = a.tellUsersLeft(c.Context(), team, args[0])
		}
		return e.Advised(err)
	}
	p, err := team.Person(c.Context(), args[0])
	if err != nil {
		return e.Advised(err)
	}
	if o.export != "" {
		return writeWhole(o.export, func(w io.Writer) error { return team.Export(c.Context(), w, p) })
	}
	return a.show(o.json, p, func() error {
		account := "none with a password"
		if p.Account != nil {
			account = "with a password"
		}
		_, err := fmt.Fprintf(a.stdout, "account: %s\nkeys: %d\nruns: %d\ncomments: %d\nlinks: %d\nlines of the log: %d\n"+
			"figures of machines: %d\n", account, len(p.Keys), len(p.Runs), len(p.Comments), len(p.Shares), len(p.Acts),
			len(p.Reserved))
		return errors.Join(err, a.tellUsers(a.stdout, p.Users))
	})
}

// tellUsersLeft names the users of machines whose comments a delete has left.
func (a *app) tellUsersLeft(ctx context.Context, team *store.Team, name string) error {
	p, err := team.Person(ctx, name)
	if err != nil {
		return err
	}
	return a.tellUsers(a.stderr, p.Users)
}

// tellUsers says which users of machines have the same name and wrote comments.
func (a *app) tellUsers(w io.Writer, users []string) error {
	for _, name := range users {
		_, err := fmt.Fprintf(w, "perhaps the same person, by comments: %s; hightide person %s\n", report.Clean(name),
			mem.CommandLine([]string{name}))
		if err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes a file whole or not at all.
func writeWhole(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(path.Dir(name), ".person-*")
	if err != nil {
		return fail.Unread("name a file in a folder that can be written to", err)
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
