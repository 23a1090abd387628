package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"hightide/internal/metrics"
	"hightide/internal/server"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// outsideOptions are what ui tells other systems, and whose API it speaks in place of its own.
type outsideOptions struct {
	metrics.Push
	compat string
}

// memoryMark is the API of --compat, and where programs expect it.
const (
	memoryMark     = "memorymark"
	memoryMarkAddr = "127.0.0.1:5001"
)

// pushToken is sent to receivers of metrics. In the environment, as other users see the arguments of a command.
const pushToken = "HIGHTIDE_PUSH_TOKEN"

func (o *outsideOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.RemoteWrite, "remote-write", "", "push metrics to this `URL` by Prometheus remote write ($"+pushToken+" is sent as a bearer token)")
	flags.StringVar(&o.OTLP, "otlp", "", "push metrics to this `URL` by OpenTelemetry over HTTP, as http://localhost:4318/v1/metrics")
	flags.StringArrayVar(&o.Headers, "push-header", nil, "also send this `header`, as 'X-Scope-OrgID: team'; may be given several times")
	flags.Var(span{&o.Every, metrics.LeastPause}, "push-every", "how often to push (default 15s)")
	flags.Var(choice(&o.compat, "--compat", "", []string{memoryMark}), "compat", "serve another tool's `API` in place of this one's: memorymark, on port 5001")
}

// choose takes the address that programs expect, where none was named.
func (o *outsideOptions) choose(c *cobra.Command, addr *string) {
	if o.compat == memoryMark && !c.Flags().Changed("addr") {
		*addr = memoryMarkAddr
	}
}

// begin starts to push, and says what is to be served. stop ends it.
func (o *outsideOptions) begin(ctx context.Context, a *app, s *server.Server, ours http.Handler, so server.Options) (handler http.Handler, stop func(), err error) {
	handler = ours
	if o.compat == memoryMark {
		handler = server.NewMemoryMark(a.engine(), so)
	}
	if o.RemoteWrite == "" && o.OTLP == "" {
		return handler, func() {}, o.Check()
	}
	if o.Dir, err = a.engine().Keep("push"); err != nil {
		return nil, nil, err
	}
	o.Token = os.Getenv(pushToken)
	o.Say = func(line string) { fmt.Fprintln(a.stderr, "hightide: "+line) }
	stop, err = s.Metrics().Start(ctx, o.Push)
	return handler, stop, err
}
