package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/oidc"
	"hightide/internal/options"
	"hightide/internal/server"
	"hightide/internal/store"
	"hightide/internal/team"
)

// serveOptions of serve.
type serveOptions struct{ config, log string }

func serveCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve the runs of a team, each project to its own people",
		Long: `Serve the web UI and its API to a team, over its store. The file says where, and who has which role in which
project: viewers see runs, members also make, name and tag them, admins also delete them. A run belongs to the
project of its tag project=NAME. Who has no role in it does not learn that it is there.

People and machines ask with keys (hightide key NAME --may push). What they change is kept in the store
(hightide audit). Roles that change in the file count at once; the rest of it is read at the start.

/healthz says that the server answers, /readyz that its store does.

Exit codes: 0 ended by Ctrl-C, 2 wrong usage, 3 a file that cannot be read or is wrong, 4 the address or the store
cannot be used.`,
		Example: `  hightide serve --config team.toml`,
		Args:    cobra.NoArgs,
	}, &serveOptions{})
}

func (o *serveOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.config, "config", "", "the team's `file`: hightide about team says what stands in it")
	addSettings(flags, options.Setting{Name: "log", To: &o.log, Default: "text", Among: []string{"text", "json"},
		Help: "the `form` of what is told on standard error: text, messages alone; json, messages and requests, a line each"})
}

func (o *serveOptions) run(a *app, c *cobra.Command, _ []string) error {
	if o.config == "" {
		return fail.Usage("hightide serve --config team.toml", "no file of the team is named")
	}
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	defer release()
	say := func(line string) { fmt.Fprintln(a.stderr, "hightide serve: "+line) }
	var log *slog.Logger
	if o.log == "json" {
		log = slog.New(slog.NewJSONHandler(a.stderr, nil))
		say = func(line string) { log.Info(line) }
	}
	config := &roleFile{path: o.config, warn: say}
	now, err := config.read()
	if err != nil {
		return err
	}
	if a.store == "" {
		a.store, a.objects = now.Store, now.Objects
	}
	e := a.engine()
	shared, err := e.SharedStore()
	if err != nil {
		return err
	}
	defer shared.Close()
	if _, err := shared.Acts(ctx, 0, 1); err != nil { // the schema is made, or brought forward, before anybody asks
		return e.Advised(err)
	}
	e.Store = shared
	e.MayRead = func(string) error { return os.ErrPermission } // recordings of others name files, none of them ours
	front, err := frontOf(now, filepath.Dir(o.config))
	if err != nil {
		return err
	}
	front.Keys, front.Access, front.Check = keysOf(ctx, shared), config.access, a.checkUpload
	front.Audit, front.Acts, front.Log = noted(ctx, shared, say), shared.Acts, log
	front.Projects, front.Pushes, front.Accounts = config.projects, shared, shared
	front.Shares, front.Sessions, front.People, front.Statuses = shared, shared, shared, shared
	front.Fleet = teamFleet{shared, config}
	front.Scrapes = func(account string) bool { return slices.Contains(config.newest().Scrapers, account) }
	if front.Provider, err = providerOf(now.OIDC, filepath.Dir(o.config)); err != nil {
		return err
	}
	front.Ready = func(ctx context.Context) error { _, err := shared.Acts(ctx, 0, 1); return err }
	var besides sync.WaitGroup
	besides.Go(func() { config.prune(ctx, e, shared.Sweep, front.Audit) })
	besides.Go(func() { (&teller{team: shared, engine: e, file: config}).run(ctx) })
	err = front.serve(ctx, e, say)
	cancel()
	besides.Wait()
	return err
}

// frontOf is the door that a file describes.
func frontOf(config *team.Config, folder string) (o *uiOptions, err error) {
	o = &uiOptions{addr: config.Address, cert: beside(folder, config.TLS.Cert), key: beside(folder, config.TLS.Key)}
	if o.addr == "" {
		o.addr = uiAddr
	}
	o.Hosts, o.AllowExec, o.Env = config.Names, config.AllowExec, os.Environ()
	o.Rates = server.Rates{Requests: config.Rates.Requests, Bytes: int64(config.Rates.Bytes)}
	o.Room = room()
	o.Proxies, err = config.Trusted()
	return o, err
}

// providerOf is the provider of a file; nil: it names none.
func providerOf(o team.OIDC, folder string) (server.Provider, error) {
	if o.Issuer == "" {
		return nil, nil
	}
	secret := os.Getenv("HIGHTIDE_OIDC_SECRET")
	if o.SecretFile != "" {
		text, err := os.ReadFile(beside(folder, o.SecretFile))
		if err != nil {
			return nil, fail.Unread("client-secret-file names a file that can be read", err)
		}
		secret = strings.TrimSpace(string(text))
	}
	p, err := oidc.New(oidc.Config{Issuer: o.Issuer, ID: o.ClientID, Secret: secret, Account: o.Account,
		Groups: o.Groups, Scopes: o.Scopes, Back: strings.TrimRight(o.URL, "/") + "/api/v1/session/provider/back"})
	if err != nil {
		return nil, fail.Input("hightide about team says what stands in it", "[oidc]: %w", err)
	}
	return p, nil
}

// serve answers until the context ends.
func (o *uiOptions) serve(ctx context.Context, e *engine.Engine, say func(string)) error {
	listener, err := o.listen()
	if err != nil {
		return err
	}
	s, handler := server.New(e, o.Options)
	defer s.Close()
	say(o.base(listener) + " (Ctrl-C ends it)")
	at, ok := listener.Addr().(*net.TCPAddr)
	if (!ok || !at.IP.IsLoopback()) && o.cert == "" && len(o.Proxies) == 0 {
		say("warning: without TLS, whoever is on the network between reads what is sent, and can ask in another's name: " +
			"[tls] cert and key encrypt it")
	}
	return serve(ctx, listener, handler, o.Room)
}

// noted keeps who did what. Where it cannot be kept it is printed, so that it is not lost.
func noted(ctx context.Context, shared *store.Team, say func(string)) func(store.Act) {
	return func(act store.Act) {
		if err := shared.Note(context.WithoutCancel(ctx), act); err != nil {
			say(fmt.Sprintf("%s (not kept: %v)", act, err))
		}
	}
}
