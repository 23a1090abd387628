package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/metrics"
	"hightide/internal/options"
	"hightide/internal/server"
	"hightide/internal/store"
	"hightide/internal/system"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// uiOptions of ui.
type uiOptions struct {
	server.Options
	addr      string
	cert, key string                        // of TLS
	tokens    struct{ all, metrics string } // files
	open      bool
	idle      time.Duration // how long it goes on when nobody looks; 0: for ever
	readyFD   int           // where the address is written to; below 0: nowhere
	describe  bool          // print the description of the API, and serve nothing
	outside   outsideOptions
}

func uiCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "ui [FILE|RUN...]",
		Short: "Look at runs, snapshots and live trainings in a browser",
		Long: `Serve the web UI and its API on this machine: the runs, live while they are recorded, snapshots block by
block, what other settings would have done, imagined GPUs, matrices and differences.

FILE is a snapshot, a recording (run.hightide) or a folder of these; a recording is shown as a run with
its whole page, and stays where it is. Only this machine can reach it, unless --addr names another
address: then it should have TLS. Nothing that the page shows leaves this machine. Ctrl-C ends it; runs go on.

The address that is printed leads to what was named, and opens in one browser, once. Reload it and open
tabs there as you like. For another browser, or once the server was started again, hightide ui prints a
new address, also while a server runs already. Programs send a token, which is in a file that is named.

With --allow-exec the page can start programs: imagined runs, searches of the largest batch, matrices.
Whoever opens the printed address first, or has the token, can then run commands as you.

The API is under /api/v1, its OpenAPI description at /openapi.json. Metrics of live runs are at
/metrics, and can be pushed (hightide about metrics).

Exit codes: 0 ended by Ctrl-C, 2 wrong usage, 3 a file or run that is not there, 4 the address cannot
be used.`,
		Example: `  hightide ui --open
  hightide ui snapshot.pickle
  hightide ui from-the-cluster/run.hightide
  hightide ui snapshots/
  hightide ui --addr 127.0.0.1:8080
  hightide ui --addr 0.0.0.0:7333 --tls-cert cert.pem --tls-key key.pem
  hightide ui --metrics-token-file prometheus.token
  hightide ui --remote-write http://prometheus:9090/api/v1/write
  hightide ui --compat memorymark --origin http://localhost:3000`,
	}, &uiOptions{})
}

func (o *uiOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "addr", uiAddr, "`address` to listen on; port 0: any free one")
	flags.StringVar(&o.cert, "tls-cert", "", "serve over TLS with this certificate, a `file` of PEM")
	flags.StringVar(&o.key, "tls-key", "", "its private key, a `file` of PEM")
	flags.StringSliceVar(&o.Hosts, "host", nil,
		"`name` by which browsers may call this server, besides that of the machine; may be given several times")
	flags.StringVar(&o.tokens.all, "token-file", "",
		"the token of programs is in this `file`, which is made where there is none (default: a new one at each start)")
	flags.StringVar(&o.tokens.metrics, "metrics-token-file", "",
		"a token that reads /metrics and nothing else is in this `file`, which is made where there is none")
	flags.BoolVar(&o.open, "open", false, "open it in a browser")
	flags.BoolVar(&o.AllowExec, "allow-exec", false, "let who may ask start programs: imagined runs, fits, matrices")
	addSettings(flags, options.Setting{Name: "idle", To: &o.idle, Least: 1e9,
		Help: "end when nobody has looked for that `time`, as 10m"})
	flags.IntVar(&o.readyFD, "ready-fd", -1, "write the address to this descriptor")
	flags.BoolVar(&o.describe, "openapi", false, "print the description of the API (OpenAPI 3.1) and end")
	_ = flags.MarkHidden("ready-fd")
	o.outside.AddFlags(flags)
}

// uiAddr is where a server listens that was told nothing else.
const uiAddr = "127.0.0.1:7333"

// shutdownWithin is how long answers under way have to end after Ctrl-C.
const shutdownWithin = 2 * time.Second

func (o *uiOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.describe {
		return server.Describe(a.engine(), a.stdout)
	}
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	defer release()
	e := a.engine()
	named, err := e.Gather(ctx, args)
	if err != nil {
		return err
	}
	o.outside.choose(c, &o.addr)
	o.Room = room()
	if err := o.readTokens(); err != nil {
		return err
	}
	listener, err := o.listen()
	if errors.Is(err, syscall.EADDRINUSE) {
		return o.again(a, c, args, err)
	}
	if err != nil {
		return err
	}
	o.Files, o.Env = named.Snapshots, os.Environ()
	o.Check = a.checkUpload
	o.Warn = func(line string) { fmt.Fprintln(a.stderr, "hightide ui: "+line) }
	o.Audit = func(act store.Act) { o.Warn(act.String()) }
	if e.Shared() != "" {
		team, err := e.SharedStore()
		if err != nil {
			return err
		}
		defer team.Close()
		o.Keys, o.Shares = keysOf(ctx, team), team
	}
	s, handler := server.New(e, o.Options)
	defer s.Close()
	handler, stop, err := o.outside.startPushing(ctx, a, s, handler, o.Options)
	if err != nil {
		return err
	}
	defer stop()
	address, leave := o.announce(a, s, listener, pageOf(named))
	defer leave()
	if o.idle > 0 {
		go func() { s.WaitIdle(ctx, o.idle); cancel() }()
	}
	if o.open {
		if err := a.openPrivately(address); err != nil {
			return err
		}
	}
	return serve(ctx, listener, handler, o.Room)
}

// announce says where the server is: to other programs of this account until leave is called, then to who started it.
func (o *uiOptions) announce(a *app, s *server.Server, listener net.Listener, page string) (address string,
	leave func()) {
	base := o.base(listener)
	at, ok := listener.Addr().(*net.TCPAddr)
	reached := !ok || !at.IP.IsLoopback() // from other machines
	if o.outside.compat != "" {
		address, leave = base+"/"+o.Token, func() {} // its pages know no code, but a base address
		fmt.Fprintf(a.stderr, "hightide ui: %s (Ctrl-C ends it)\n", address)
	} else {
		file, remove, err := a.leaveDoor(listener, o.scheme(), o.Token)
		address, leave = opensOnce(base+page, s.Code()), remove
		fmt.Fprintf(a.stderr, "hightide ui: %s (Ctrl-C ends it)\n", address)
		switch {
		case err != nil:
			o.Warn("other programs of this account do not find the server: " + err.Error())
		case reached:
			fmt.Fprintf(a.stderr, "hightide ui: programs send the token that is in %s\n", cmp.Or(o.tokens.all, file))
		}
	}
	if reached && o.cert == "" {
		o.Warn("warning: without TLS, whoever is on the network between reads what is sent, and can ask in your name: " +
			"--tls-cert and --tls-key encrypt it")
	}
	if o.readyFD >= 0 {
		ready := os.NewFile(uintptr(o.readyFD), "ready")
		fmt.Fprintln(ready, address)
		ready.Close()
	}
	return address, leave
}

// again prints a new address of the server that is there already, where nothing else was asked for.
func (o *uiOptions) again(a *app, c *cobra.Command, args []string, busy error) error {
	more := len(args) > 0
	c.Flags().Visit(func(f *pflag.Flag) { more = more || f.Name != "addr" && f.Name != "open" && f.Name != "data-dir" })
	address, ok := a.runningAt(o.addr)
	switch {
	case ok && more:
		return fail.Environment("end that one first, or take a free port: --addr 127.0.0.1:0; hightide ui alone prints a "+
			"new address of it", "a server of this account is at %s already", o.addr)
	case !ok:
		return busy
	}
	fmt.Fprintf(a.stderr, "hightide ui: %s (a server that runs already)\n", address)
	if o.open {
		return a.openPrivately(address)
	}
	return nil
}

// readTokens takes the tokens from their files, or makes one for this time.
func (o *uiOptions) readTokens() (err error) {
	o.Token = rand.Text()
	if o.tokens.all != "" {
		if o.Token, err = tokenIn("--token-file", o.tokens.all); err != nil {
			return err
		}
	}
	if o.tokens.metrics != "" {
		o.Metrics, err = tokenIn("--metrics-token-file", o.tokens.metrics)
	}
	return err
}

// room is what this process can serve at once.
func room() server.Room {
	most := system.MaxFiles()
	if most == 0 {
		return server.Room{}
	}
	return server.RoomOf(int(min(most, 1<<20)))
}

// listen opens the address.
func (o *uiOptions) listen() (net.Listener, error) {
	if (o.cert == "") != (o.key == "") {
		return nil, fail.Usage("name both, or none", "--tls-cert and --tls-key go together")
	}
	listener, err := o.socket()
	if err != nil {
		return nil, cannotListen(o.addr, err)
	}
	if name, err := os.Hostname(); err == nil {
		o.Hosts = append(o.Hosts, strings.ToLower(name))
	}
	if name, _, err := net.SplitHostPort(o.addr); err == nil && name != "" {
		o.Hosts = append(o.Hosts, strings.ToLower(name))
	}
	listener = o.Room.Listen(listener)
	if o.cert == "" {
		return listener, nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		listener.Close()
		return nil, fail.Input("openssl req -x509 -newkey ed25519 -noenc -keyout key.pem -out cert.pem makes a pair",
			"--tls-cert: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}), nil
}

// socket is the one that systemd or another program hands over, as sd_listen_fds(3) has it; else one at the address.
// Who hands it over keeps it while one server ends and the next one starts, so nobody is refused meanwhile.
func (o *uiOptions) socket() (net.Listener, error) {
	handed, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID")
	if handed == "" || pid != strconv.Itoa(os.Getpid()) {
		return net.Listen("tcp", o.addr)
	}
	_ = errors.Join(os.Unsetenv("LISTEN_FDS"), os.Unsetenv("LISTEN_PID")) // nobody else's
	if handed != "1" {
		return nil, fmt.Errorf("%s sockets are handed over, and one is served", handed)
	}
	file := os.NewFile(3, "the socket that was handed over")
	defer file.Close()
	return net.FileListener(file)
}

// cannotListen says why an address cannot be used, in the words that the error has below the names of calls.
func cannotListen(address string, err error) error {
	const hint = "--addr HOST:PORT names another, as --addr 127.0.0.1:0 for any free port"
	var number syscall.Errno
	var wrong *net.AddrError
	switch {
	case errors.As(err, &number):
		err = number
	case errors.As(err, &wrong):
		err = errors.New(wrong.Err)
	}
	return fail.Environment(hint, "cannot listen on %s: %w", address, err)
}

// pageOf is the page that shows what was named, or a list of that.
func pageOf(named *engine.Gathered) string {
	switch files, runs := len(named.Snapshots), len(named.Runs); {
	case files == 1 && runs == 0:
		return "/snapshots/" + engine.OpenedID(named.Snapshots[0])
	case files == 0 && runs == 1:
		return "/runs/" + named.Runs[0].ID
	case files > 0 && runs == 0:
		return "/snapshots"
	}
	return "/"
}

// base is what addresses of this server begin with, as people open them.
func (o *uiOptions) base(listener net.Listener) string {
	at := listener.Addr().String()
	if ip, ok := listener.Addr().(*net.TCPAddr); ok && ip.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			at = net.JoinHostPort(name, strconv.Itoa(ip.Port))
		}
	}
	return o.scheme() + "://" + at
}

func (o *uiOptions) scheme() string {
	if o.cert != "" {
		return "https"
	}
	return "http"
}

// serve answers until the context ends. Streams of events end then; other answers under way have a moment to.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, room server.Room) error {
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	front := &http.Server{
		Handler: untilEnd(ctx, handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		BaseContext:    func(net.Listener) context.Context { return answering }, ErrorLog: log.New(panics{os.Stderr}, "", 0),
	}
	door := room.Watch(front)
	// first nobody is accepted any more, then those that were are answered: a connection between the two would be lost
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	if err := front.Serve(listener); ctx.Err() == nil {
		return err
	}
	late, done := context.WithTimeout(answering, shutdownWithin)
	defer done()
	door.End(late)
	return nil
}

// panics passes on what the server says of a fault of its own. What strangers do wrong is told to them.
type panics struct{ to io.Writer }

func (p panics) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: panic serving")) {
		return p.to.Write(line)
	}
	return len(line), nil
}

// untilEnd ends streams of events with the server's context: they would go on for as long as somebody looks.
func untilEnd(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server.Lasts(r) {
			of, end := context.WithCancel(r.Context())
			defer end()
			defer context.AfterFunc(ctx, end)()
			r = r.WithContext(of)
		}
		handler.ServeHTTP(w, r)
	})
}

// openPrivately opens an address with a code. The browser is handed a file that leads there, as every user of a
// machine sees the arguments of its programs. The file stays for an hour, as nothing says when the browser has read
// it; by then its code is of no use.
func (a *app) openPrivately(address string) error {
	dir, err := a.engine().Keep("ui")
	if err != nil {
		dir = os.TempDir() // a data directory that is only read
	}
	before, _ := filepath.Glob(filepath.Join(dir, "open-*.html"))
	for _, old := range before {
		if info, err := os.Stat(old); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(old)
		}
	}
	file, err := os.CreateTemp(dir, "open-*.html") // which nobody else may read
	if err != nil {
		return err
	}
	target := html.EscapeString(address)
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer><meta "+
		"http-equiv=refresh content=\"0; url=%s\">\n<a href=\"%s\">hightide</a>\n", target, target)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	a.openInBrowser(file.Name())
	return nil
}

// outsideOptions are what ui tells other systems, and whose API it speaks in place of its own.
type outsideOptions struct {
	metrics.Push
	compat  string
	origins []string // whose pages may speak it
}

// memoryMark is the API of --compat, and where programs expect it.
const (
	memoryMark     = "memorymark"
	memoryMarkAddr = "127.0.0.1:5001"
)

// pushToken is sent to receivers of metrics. In the environment, as other users see the arguments of a command.
const pushToken = "HIGHTIDE_PUSH_TOKEN"

func (o *outsideOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.RemoteWrite, "remote-write", "",
		"push metrics to this `URL` by Prometheus remote write ($"+pushToken+" is sent as a bearer token)")
	flags.StringVar(&o.OTLP, "otlp", "",
		"push metrics to this `URL` by OpenTelemetry over HTTP, as http://localhost:4318/v1/metrics")
	flags.StringArrayVar(&o.Headers, "push-header", nil,
		"also send this `header`, as 'X-Scope-OrgID: team'; may be given several times")
	addSettings(flags,
		options.Setting{Name: "push-every", To: &o.Every, Least: int64(metrics.LeastPause),
			Help: "how often to push (default 15s)"},
		options.Setting{Name: "compat", To: &o.compat, Among: []string{memoryMark},
			Help: "serve another tool's `API` in place of this one's: memorymark, on port 5001"})
	flags.StringSliceVar(&o.origins, "origin", nil,
		"with --compat, pages of this `origin` may ask, as http://localhost:3000; may be given several times")
}

// choose takes the address that programs expect, where none was named.
func (o *outsideOptions) choose(c *cobra.Command, addr *string) {
	if o.compat == memoryMark && !c.Flags().Changed("addr") {
		*addr = memoryMarkAddr
	}
}

// startPushing starts to push, and says what is to be served. stop ends it.
func (o *outsideOptions) startPushing(ctx context.Context, a *app, s *server.Server, ours http.Handler,
	so server.Options) (handler http.Handler, stop func(), err error) {
	handler = ours
	if o.compat == memoryMark {
		so.Origins = o.origins
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
