package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/server"
)

// uiOptions of ui.
type uiOptions struct {
	server.Options
	addr    string
	open    bool
	outside outsideOptions
}

func uiCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "ui [FILE|RUN...]",
		Short: "Look at runs, snapshots and live trainings in a browser",
		Long: `Serve the web UI and its API on this machine: the runs, live while they are recorded, snapshots block by
block, what other settings would have done, imagined GPUs, matrices and differences.

FILE and RUN are opened at once. It listens on the loopback alone; another address needs a token, which is
printed once. Nothing that the page shows leaves this machine. Ctrl-C ends it; runs go on.

With --allow-exec the page can start programs: imagined runs, searches of the largest batch, matrices.
Whoever has the printed address can then run commands as you.

The API is under /api/v1, its OpenAPI description at /openapi.json. Metrics of live runs are at /metrics, and can
be pushed (docs/metrics.md).

Exit codes: 0 ended by Ctrl-C, 2 wrong usage, 3 a file or run that is not there, 4 the address cannot be used.`,
		Example: `  hightide ui --open
  hightide ui snapshot.pickle
  hightide ui --addr 127.0.0.1:8080
  hightide ui --remote-write http://prometheus:9090/api/v1/write
  hightide ui --compat memorymark`,
	}, &uiOptions{})
}

func (o *uiOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "addr", "127.0.0.1:7333", "`address` to listen on; port 0: any free one")
	flags.BoolVar(&o.open, "open", false, "open it in a browser")
	flags.BoolVar(&o.AllowExec, "allow-exec", false, "let who has the token start programs: imagined runs, fits, matrices")
	o.outside.AddFlags(flags)
}

// shutdownWithin is how long answers under way have to end after Ctrl-C.
const shutdownWithin = 2 * time.Second

func (o *uiOptions) run(a *app, c *cobra.Command, args []string) error {
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	defer release()
	o.outside.choose(c, &o.addr)
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fail.Environment("choose another with --addr, as 127.0.0.1:0 for any free port", "listen on %s: %w", o.addr, err)
	}
	o.Files, o.Env = args, os.Environ()
	if o.AllowExec && o.Token == "" {
		o.Token = rand.Text()
	}
	s, handler := server.New(a.engine(), o.Options)
	defer s.Close()
	handler, stop, err := o.outside.begin(ctx, a, s, handler, o.Options)
	if err != nil {
		return err
	}
	defer stop()
	front := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		<-ctx.Done()
		late, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
		defer done()
		_ = front.Shutdown(late)
	}()
	address := "http://" + listener.Addr().String() + "/"
	if o.Token != "" {
		address += "?token=" + o.Token
	}
	fmt.Fprintf(a.stderr, "hightide ui: %s (Ctrl-C ends it)\n", address)
	if o.open {
		a.openInBrowser(address)
	}
	if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
