package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/remote"
	"hightide/internal/report"
)

// loginOptions of login.
type loginOptions struct{}

func loginCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "login SERVER",
		Short: "Keep your key of a team's server, for push",
		Long: `Read a key from standard input, ask the server what it is good for, and keep it in servers.json of your
configuration folder, which nobody else may read. Who administers the server makes keys (hightide key NAME --may
push). $HIGHTIDE_KEY is used before it.

Exit codes: 0 kept, 2 wrong usage, 3 the server does not know the key, 4 it cannot be asked.`,
		Example: `  hightide login https://runs.example.org:7333 < key.txt`,
		Args:    cobra.ExactArgs(1),
	}, &loginOptions{})
}

func (o *loginOptions) AddFlags(*pflag.FlagSet) {}

func (o *loginOptions) run(a *app, c *cobra.Command, args []string) error {
	server, err := remote.Address(args[0])
	if err != nil {
		return err
	}
	if a.canAsk() {
		fmt.Fprintf(a.stderr, "Key of %s: ", server)
	}
	line, _ := bufio.NewReader(io.LimitReader(a.stdin, 4<<10)).ReadString('\n')
	key := strings.TrimSpace(line)
	if key == "" {
		return fail.Usage("hightide login "+server+" < key.txt", "no key was given")
	}
	client, err := remote.NewClient(server, key)
	if err != nil {
		return err
	}
	projects, err := client.Projects(c.Context())
	if err != nil {
		return err
	}
	servers, err := remote.LoadServers(serversFile())
	if err != nil {
		return err
	}
	servers.Keys[server] = key
	if err := servers.Save(serversFile()); err != nil {
		return err
	}
	if len(projects) == 0 {
		_, err = fmt.Fprintf(a.stdout, "%s knows the key, which is of no project yet.\n", server)
		return err
	}
	for _, p := range projects {
		if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", report.Clean(p.Name), report.Clean(p.Role)); err != nil {
			return err
		}
	}
	return nil
}

// allowOptions of allow.
type allowOptions struct{}

func allowCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "allow",
		Short: "Confirm the server that this folder's .hightide.toml names",
		Long: `Print which server and project the .hightide.toml of this folder, or of one above it, names, and confirm
them: from then on hightide push and run --push send there. The file may come from a stranger, as with a copy of a
repository, so nothing is sent before. When the file names another server or project, it has to be confirmed again.

Exit codes: 0 confirmed, 2 there is no such file, or it names no server.`,
		Example: `  hightide allow`,
		Args:    cobra.NoArgs,
	}, &allowOptions{})
}

func (o *allowOptions) AddFlags(*pflag.FlagSet) {}

func (o *allowOptions) run(a *app, _ *cobra.Command, _ []string) error {
	path := findProjectFile()
	settings, err := readTarget(path)
	if err != nil {
		return err
	}
	if settings.Server == "" {
		return fail.Usage("write server = \"https://…\" and project = \"NAME\" into .hightide.toml",
			"no .hightide.toml of this folder names a server")
	}
	if _, err := remote.Address(settings.Server); err != nil {
		return err
	}
	servers, err := remote.LoadServers(serversFile())
	if err != nil {
		return err
	}
	to := remote.Target{Server: settings.Server, Project: settings.Project}
	servers.Allow(path, to)
	if err := servers.Save(serversFile()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s sends into %s of %s\n", path, report.Clean(cmp.Or(to.Project, "no project yet")),
		report.Clean(to.Server))
	return err
}
