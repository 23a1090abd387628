package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/comments"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// commentOptions of comment.
type commentOptions struct {
	at      time.Duration
	finding string
	remove  string
	json    string
}

func commentCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "comment RUN [TEXT | --remove ID]",
		Short: "Say something of a run, of a moment of it or of a finding",
		Long: `Write a comment on a run, list its comments, or delete one. Comments are kept with the run, and go with it. They
are shown by hightide show, on the run's page and by its API; people outside, who have a link, do not see them.
push does not send them. With --store, who wrote one is USER on MACHINE: the database knows no account.

--at names the moment that a comment is about, --finding a finding as show lists it: its kind where there is one of
that kind, else with its line.

Exit codes: 0 fine, 2 wrong usage, 3 no such run or comment.`,
		Example: `  hightide comment last "the cache is never emptied: see the pull request" --finding leak
  hightide comment last "the validation begins here" --at 12s
  hightide comment last`,
		Args: cobra.RangeArgs(1, 2),
	}, &commentOptions{at: -1})
}

func (o *commentOptions) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.at, "at", -1, "the `moment` that it is about, since the run began, as 12s")
	flags.Lookup("at").DefValue = ""
	addSettings(flags, options.Setting{Name: "finding", To: &o.finding, Help: "the `finding` that it is about, as leak"},
		options.Setting{Name: "remove", To: &o.remove, Help: "delete the comment of this `id`"})
	jsonFlag(flags, &o.json)
}

func (o *commentOptions) run(a *app, c *cobra.Command, args []string) error {
	writes := len(args) == 2
	if writes && o.remove != "" || !writes && (o.at >= 0 || o.finding != "") {
		return fail.Usage("hightide comment RUN TEXT", "--at and --finding go with a text, --remove goes without one")
	}
	e := a.engine()
	if o.remove != "" {
		return comments.Remove(c.Context(), e, args[0], o.remove, nil)
	}
	if writes {
		made := comments.Comment{By: a.writer(), Finding: o.finding, Text: args[1]}
		if o.at >= 0 {
			made.At = mem.Some(o.at.Nanoseconds())
		}
		made, err := comments.Add(c.Context(), e, args[0], made)
		if err != nil {
			return err
		}
		return a.show(o.json, madeComment{1, made}, func() error { _, err := fmt.Fprintln(a.stdout, made.ID); return err })
	}
	all, err := comments.Of(c.Context(), e, args[0])
	if err != nil {
		return err
	}
	return a.show(o.json, commentList{1, all}, func() error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(a.stdout, "No comments. Write one: hightide comment RUN TEXT")
			return err
		}
		return a.writeComments(all, true)
	})
}

// writer is who types a comment. In a team's store names are of accounts, which a user of a machine is not: that one is
// named with the machine, and so has no rights that an account of its name has.
func (a *app) writer() string {
	if a.engine().Shared() == "" {
		return accountName()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a machine"
	}
	return accountName() + store.OnMachine + host
}

// accountName is who types a command.
func accountName() string {
	if by, err := user.Current(); err == nil {
		return by.Username
	}
	return "somebody"
}

// showComments writes what people say of a run below its report; nothing where nobody says anything.
func (a *app) showComments(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	all, err := comments.Of(ctx, a.engine(), id)
	if fail.Code(err) == fail.ExitBadInput { // a recording that lies elsewhere has no comments
		return nil
	}
	if err != nil || len(all) == 0 {
		return err
	}
	if _, err := fmt.Fprint(a.stdout, "\nComments\n"); err != nil {
		return err
	}
	return a.writeComments(all, false)
}

// writeComments writes each comment: who and when, of what, and the text.
func (a *app) writeComments(all []comments.Comment, ids bool) error {
	for _, c := range all {
		head := report.Clean(c.By) + ", " + time.Unix(0, c.Made).Local().Format("2006-01-02 15:04")
		if at, has := c.At.Get(); has {
			head += ", at " + time.Duration(at).String()
		}
		if c.Finding != "" {
			head += ", on " + report.Clean(c.Finding)
		}
		if ids {
			head = c.ID + "  " + head
		}
		var lines strings.Builder
		for line := range strings.SplitSeq(c.Text, "\n") {
			lines.WriteString("    " + report.Clean(line) + "\n")
		}
		if _, err := fmt.Fprintf(a.stdout, "  %s\n%s", head, lines.String()); err != nil {
			return err
		}
	}
	return nil
}

// commentList is the JSON of comment without a text, madeComment that of one that was written.
type commentList struct {
	Version  int                `json:"version"`
	Comments []comments.Comment `json:"comments"`
}

type madeComment struct {
	Version int              `json:"version"`
	Comment comments.Comment `json:"comment"`
}
