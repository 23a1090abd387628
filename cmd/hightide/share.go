package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// shareOptions of share.
type shareOptions struct {
	lasts  time.Duration
	server string
	revoke int
	json   string
}

func shareCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "share [RUN [--lasts 168h | --revoke N]]",
		Short: "Links by which people outside a team see one run, for a time",
		Long: `Make, list and revoke links to runs of a team. Who opens a link in a browser sees this run, with its report, its
curves, its output and its files. Nothing can be changed by it, and no other run is seen. The link is printed
once; the store keeps the SHA-256 of its secret. A revoked link ends at once, with the browsers that it let in.

The command asks the store itself, as hightide key does. The page of a run makes links, too: its Share.

Exit codes: 0 fine, 2 wrong usage, 3 no such run or link, 4 the store cannot be used.`,
		Example: `  hightide share bigger-batch --server https://runs.example.org:7333
  hightide share bigger-batch --lasts 24h
  hightide share bigger-batch --revoke 3
  hightide share`,
		Args: cobra.MaximumNArgs(1),
	}, &shareOptions{})
}

func (o *shareOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags,
		options.Setting{Name: "lasts", To: &o.lasts, Least: 1e9,
			Help: "the link ends after that `time`, at most 2160h (default: 168h, seven days)"},
		options.Setting{Name: "revoke", To: &o.revoke, Least: 1, Help: "end the link of this `number`"})
	flags.StringVar(&o.server, "server", "", "the `address` of the team's server, which begins the link")
	jsonFlag(flags, &o.json)
}

func (o *shareOptions) run(a *app, c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && (o.lasts != 0 || o.revoke != 0 || o.server != ""):
		return fail.Usage("hightide share RUN makes a link, hightide share lists them", "no run is named")
	case o.revoke != 0 && o.lasts != 0:
		return fail.Usage("name one of them", "--revoke ends a link, --lasts is of one that is made")
	case o.lasts > store.LongestShare:
		return fail.Usage("make another one then", "a link lasts at most %d days", int(store.LongestShare.Hours()/24))
	}
	e := a.engine()
	team, err := e.SharedStore()
	if err != nil {
		return err
	}
	defer team.Close()
	if len(args) == 0 {
		all, err := team.Shares(c.Context(), "")
		if err != nil {
			return e.Advised(err)
		}
		return a.show(o.json, shareList{1, append([]store.Share{}, all...)}, func() error { return a.listShares(all) })
	}
	run, err := store.Find(team, args[0])
	if err != nil {
		return e.Advised(err)
	}
	if o.revoke != 0 {
		return e.Advised(team.RevokeShareHere(c.Context(), run.ID, int64(o.revoke)))
	}
	secret, made, err := team.AddShareHere(c.Context(), run.ID, accountName(), cmp.Or(o.lasts, store.ShareLasts))
	if err != nil {
		return e.Advised(err)
	}
	at := strings.TrimRight(o.server, "/") + "/runs/" + url.PathEscape(run.ID) + "#share=" + secret
	return a.show(o.json, madeShare{1, made, at}, func() error {
		_, err := fmt.Fprintln(a.stdout, at)
		return err
	})
}

// listShares shows links as a table.
func (a *app) listShares(all []store.Share) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "No links. Make one: hightide share RUN")
		return err
	}
	day := func(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }
	var rows [][]string
	for _, s := range all {
		revoked := ""
		if s.Revoked != nil {
			revoked = day(*s.Revoked)
		}
		rows = append(rows, []string{fmt.Sprint(s.ID), report.Clean(s.Run), report.Clean(s.Maker), day(s.Made),
			day(s.Expires), revoked})
	}
	o := textOptions(a.stdout)
	columns := []report.ListColumn{{Title: "LINK", Right: true}, {Title: "RUN"}, {Title: "BY"}, {Title: "MADE"},
		{Title: "EXPIRES"}, {Title: "REVOKED"}}
	return report.WriteList(a.stdout, columns, rows, o.Width, o.Color)
}

// shareList is the JSON of share without a run, madeShare that of a link that was made.
type shareList struct {
	Version int           `json:"version"`
	Shares  []store.Share `json:"shares"`
}

type madeShare struct {
	Version int         `json:"version"`
	Share   store.Share `json:"share"`
	Address string      `json:"address"`
}
