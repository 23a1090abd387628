package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
)

// accountOptions of account.
type accountOptions struct {
	close bool
	json  string
}

func accountCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "account [NAME [--close]]",
		Short: "People who sign in with a password on a team's server",
		Long: `Make an account of a hightide serve, or give it another password, which is read from standard input. What the
account may do stands in the team's file. --close ends it at once, with the browsers that it let in; its keys are
revoked by hightide key. Without a name the accounts are listed.

A password has 12 to 72 bytes. The store keeps its bcrypt.

Exit codes: 0 fine, 2 wrong usage, 3 no such account, 4 the store cannot be used.`,
		Example: `  hightide account anna < password.txt
  hightide account anna --close
  hightide account`,
		Args: cobra.MaximumNArgs(1),
	}, &accountOptions{})
}

func (o *accountOptions) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.close, "close", false, "let nobody in by it any more")
	jsonFlag(flags, &o.json)
}

func (o *accountOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.close && len(args) == 0 {
		return fail.Usage("hightide account NAME --close", "--close is of an account")
	}
	team, err := a.engine().SharedStore()
	if err != nil {
		return err
	}
	defer team.Close()
	switch {
	case o.close:
		return a.engine().Advised(team.CloseAccount(c.Context(), args[0]))
	case len(args) == 1:
		password, err := a.readPassword(args[0])
		if err != nil {
			return err
		}
		return a.engine().Advised(team.SetPassword(c.Context(), args[0], password))
	}
	accounts, err := team.Accounts(c.Context())
	if err != nil {
		return a.engine().Advised(err)
	}
	list := accountList{1, append([]store.Account{}, accounts...)}
	return a.show(o.json, list, func() error { return a.printAccounts(accounts) })
}

// accountList is the JSON of account.
type accountList struct {
	Version  int             `json:"version"`
	Accounts []store.Account `json:"accounts"`
}

func (a *app) readPassword(name string) (string, error) {
	if a.canAsk() {
		fmt.Fprintf(a.stderr, "Password of %s (it is shown as you type): ", report.Clean(name))
	}
	line, _ := bufio.NewReader(io.LimitReader(a.stdin, 4<<10)).ReadString('\n')
	password := strings.TrimRight(line, "\r\n")
	if len(password) < store.ShortestPassword || len(password) > store.LongestPassword {
		return "", fail.Usage("hightide account "+name+" < password.txt", "a password has %d to %d bytes, and this one %d",
			store.ShortestPassword, store.LongestPassword, len(password))
	}
	return password, nil
}

func (a *app) printAccounts(accounts []store.Account) error {
	if len(accounts) == 0 {
		_, err := fmt.Fprintln(a.stdout, "No accounts. Make one: hightide account NAME < password.txt")
		return err
	}
	var rows [][]string
	for _, account := range accounts {
		closed := ""
		if account.Closed != nil {
			closed = account.Closed.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{report.Clean(account.Name), account.Made.Local().Format(time.DateTime), closed})
	}
	o := textOptions(a.stdout)
	columns := []report.ListColumn{{Title: "NAME"}, {Title: "PASSWORD SET"}, {Title: "CLOSED"}}
	return report.WriteList(a.stdout, columns, rows, o.Width, o.Color)
}
