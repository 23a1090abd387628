package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/server"
	"hightide/internal/store"
)

// keyOptions of key.
type keyOptions struct {
	may    string
	of     string
	lasts  time.Duration
	revoke bool
	json   string
}

func keyCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "key [NAME [--may read|push|exec|admin | --revoke]]",
		Short: "Keys of people and machines for a team's server",
		Long: `Make, list and revoke the keys by which people and machines ask a hightide serve, or a hightide ui that serves
a team's store. --may says what a key is good for: read sees runs, push also changes, deletes and uploads, exec
also starts programs where the server lets them, admin also reads who did what. With hightide serve a key does no
more than its account may: that of --of, else of the key's own name. The key is printed once; the store keeps its
SHA-256.

A program sends it as Authorization: Bearer KEY. A revoked key ends at once, with the browsers that it let in.

Exit codes: 0 fine, 2 wrong usage, 3 no such key, or there already; 4 the store cannot be used.`,
		Example: `  hightide key anna --may push --lasts 2160h
  hightide key annas-laptop --of anna --may push
  hightide key ci --may read
  hightide key anna --revoke
  hightide key`,
		Args: cobra.MaximumNArgs(1),
	}, &keyOptions{})
}

func (o *keyOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags,
		options.Setting{Name: "may", To: &o.may, Among: []string{"read", "push", "exec", "admin"},
			Help: "make a key that may do `this`: read, push, exec, admin"},
		options.Setting{Name: "lasts", To: &o.lasts, Least: 1e9, Help: "the new key ends after that `time`, as 720h"})
	flags.StringVar(&o.of, "of", "", "the new key is of this `account` (default: one of the key's name)")
	flags.BoolVar(&o.revoke, "revoke", false, "end the key")
	jsonFlag(flags, &o.json)
}

func (o *keyOptions) run(a *app, c *cobra.Command, args []string) error {
	if (o.may != "" || o.revoke) != (len(args) == 1) || o.may != "" && o.revoke {
		return fail.Usage("hightide key NAME --may read makes one, hightide key NAME --revoke ends it",
			"a name goes with --may or --revoke")
	}
	team, err := a.engine().SharedStore()
	if err != nil {
		return err
	}
	defer team.Close()
	switch {
	case o.revoke:
		return a.engine().Advised(team.RevokeKey(c.Context(), args[0]))
	case o.may != "":
		secret, err := team.AddKey(c.Context(), store.Key{Name: args[0], Account: o.of, May: o.may}, o.lasts)
		if err != nil {
			return a.engine().Advised(err)
		}
		_, err = fmt.Fprintln(a.stdout, secret)
		return err
	}
	keys, err := team.Keys(c.Context())
	if err != nil {
		return a.engine().Advised(err)
	}
	return a.show(o.json, keyList{1, append([]store.Key{}, keys...)}, func() error { return a.printKeys(keys) })
}

// keyList is the JSON of key.
type keyList struct {
	Version int         `json:"version"`
	Keys    []store.Key `json:"keys"`
}

func (a *app) printKeys(keys []store.Key) error {
	if len(keys) == 0 {
		_, err := fmt.Fprintln(a.stdout, "No keys. Make one: hightide key NAME --may read")
		return err
	}
	day := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return at.Local().Format("2006-01-02 15:04")
	}
	var rows [][]string
	for _, k := range keys {
		rows = append(rows, []string{report.Clean(k.Name), report.Clean(k.Account), k.May, day(&k.Made),
			day(k.Expires), day(k.Revoked)})
	}
	o := textOptions(a.stdout)
	columns := []report.ListColumn{{Title: "NAME"}, {Title: "OF"}, {Title: "MAY"}, {Title: "MADE"}, {Title: "EXPIRES"},
		{Title: "REVOKED"}}
	return report.WriteList(a.stdout, columns, rows, o.Width, o.Color)
}

// keysOf asks the store for a key at each request, so that one which is revoked ends at once. Where the store cannot be
// asked, no key is known.
func keysOf(ctx context.Context, team *store.Team) func(digest string) (server.Key, bool) {
	rights := map[string]server.Right{"read": server.MayRead, "push": server.MayChange, "exec": server.MayStart,
		"admin": server.MayAdmin}
	return func(digest string) (server.Key, bool) {
		k, good, err := team.KeyOf(context.WithoutCancel(ctx), digest) // answers outlast the server by a moment
		may, known := rights[k.May]
		return server.Key{Name: k.Name, Account: k.Account, May: may, Away: err != nil}, err == nil && good && known
	}
}
