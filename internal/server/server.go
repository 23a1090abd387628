// Package server is the front door over HTTP: the web UI and its API under /api/v1.
//
//	request ──▶ guard.go (host, origin, limits, headers), door.go (who asks) ──▶ a resource ──▶ engine ──▶ JSON
//	                                                            └──▶ assets.go: the web UI's own files
//
// A resource is one file and one line in resources below. It decodes, calls the engine, encodes; it decides nothing
// about memory. huma makes the OpenAPI description (/openapi.json) from the types of the handlers.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/metrics"
	"hightide/internal/store"
)

// Options of New. The zero value serves what the engine has to who brings a code, by the loopback's names, and starts
// no program.
type Options struct {
	Token     string // by which programs are known; "": one that nobody is told
	Metrics   string // a token that reads /metrics and nothing else; "": none does
	AllowExec bool   // jobs may start programs

	// Keys knows the keys of people and machines by the SHA-256 of their secrets, in hexadecimal; nil: there are none.
	Keys func(digest string) (Key, bool)
	// Access says what an account may do; nil: whoever is let in sees every run.
	Access   func(account string) Access
	Provider Provider       // at which people sign in; nil: none
	Accounts Accounts       // of people who sign in with a password; nil: nobody does
	Hosts    []string       // names by which the server may be called besides those of the loopback
	Origins  []string       // whose pages may ask, with the token, besides this server's own
	Files    []string       // of snapshots that were named on the command line
	Env      []string       // environment of programs that jobs start
	Room     Room           // what is served at once
	Rates    Rates          // of one caller
	Proxies  []netip.Prefix // whose word on who asks is believed

	Ready func(context.Context) error // says whether what keeps the runs can be used; nil: it can

	// Check reads an upload whole, in a process of its own, and says what it is; nil: the server takes no uploads.
	Check     func(ctx context.Context, path string) (*engine.FileFacts, error)
	MaxUpload int64 // bytes of one; 0: uploadBytes

	Audit func(store.Act) // told of each request that changes something or starts a program; nil: nobody is
	Acts  Acts            // reads what Audit was told; nil: it is not kept
	Log   *slog.Logger    // told of each request that ended; nil: nobody is

	Sessions Sessions // keeps browsers that were let in over TLS; nil: all end with the server
	Shares   Shares   // keeps links by which people outside see one run; nil: none are made

	Projects func() []ProjectInfo // that there are, without roles; nil: none
	Pushes   Pushes               // takes runs into them; nil: none are taken
	Fleet    Fleet                // what machines hold; nil: nothing is known of any

	Statuses Statuses                  // keeps how checks of commits ended; nil: none are kept
	People   People                    // keeps what there is of persons; nil: nothing is told of any
	Scrapes  func(account string) bool // who sees the server's own figures besides its admins; nil: nobody

	Warn func(line string) // told of each of Files that cannot be read; nil: nobody is
}

// Server answers requests by an engine.
type Server struct {
	api     huma.API
	mux     *routes
	door    *door
	engine  *engine.Engine
	options Options
	began   time.Time
	work    *jobs
	metrics *metrics.Exporter
	stop    context.CancelFunc
	hubs    *hubs
	list    *list
	uploads *uploads
	looked  looked
	opened  *engine.Opened
	tried   whatIfs
	sparks  engine.Sparks
	rows    outputIndexes
	streams atomic.Int64 // of events that are open
	views   views
	rates   rates
	own     *own // of the server whose view this is
	outside bool // it is a view of one run, for people outside
}

// resources lists what the API has. Add yours here.
var resources = []func(*Server, huma.API){
	(*Server).status,
	(*Server).session,
	(*Server).provider,
	(*Server).runs,
	(*Server).series,
	(*Server).sparklines,
	(*Server).facts,
	(*Server).output,
	(*Server).outputRows,
	(*Server).upload,
	(*Server).live,
	(*Server).jobs,
	(*Server).matrices,
	(*Server).gpus,
	(*Server).diff,
	(*Server).trend,
	(*Server).snapshots,
	(*Server).whatif,
	(*Server).plan,
	(*Server).pushes,
	(*Server).acts,
	(*Server).fleet,
	(*Server).shares,
	(*Server).comments,
	(*Server).people,
	(*Server).statuses,
}

// New makes the handler of the web UI and its API. Close it when the server has stopped.
func New(given *engine.Engine, o Options) (*Server, http.Handler) {
	s := serverOf(given, o, newDoor(cmp.Or(o.Token, rand.Text()), o.Metrics))
	s.door.keys, s.door.access, s.door.accounts = o.Keys, o.Access, o.Accounts
	s.door.shares, s.door.kept = o.Shares, o.Sessions
	// the page without what it shows, and what lets a browser in
	return s, proxied(o.Proxies, s.guard(s.viewed(compressed(s.mux)), func(r *http.Request) bool {
		_, route := s.mux.Handler(r)
		return route == "/" && !isAPI(r) && reads(r) || r.Method == http.MethodPost && r.URL.Path == sessionPath || isHealth(r) ||
			isProvider(r)
	}, refuse))
}

// serverOf is a server without what stands before it.
func serverOf(given *engine.Engine, o Options, d *door) *Server {
	own := *given // which may have visitors that others do not see
	e := &own
	if e.Visitors == nil {
		e.Visitors = new(store.Visitors)
	}
	if e.Seen == nil {
		e.Seen = new(engine.Seen)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{engine: e, door: d, options: o, began: time.Now(), mux: new(routes),
		work: newJobs(), metrics: metrics.New(e), stop: stop, hubs: newHubs(ctx, e), list: &list{feed: newFeed(), ctx: ctx}}
	s.uploads = &uploads{root: e.Keep, limit: cmp.Or(o.MaxUpload, uploadBytes), check: o.Check}
	s.opened = e.Open(o.Files)
	go s.opened.Warm(ctx, func(err error) { // whoever named files wants to see them
		if o.Warn != nil {
			o.Warn(line(err))
		}
	})
	go s.rest(ctx, snapshotIdle)
	config := huma.DefaultConfig("hightide", engine.Version)
	config.DocsPath = "" // its page would load scripts from elsewhere
	config.CreateHooks = nil
	config.Components.Schemas = schemas()
	s.api = humago.New(s.mux, config)
	for _, add := range resources {
		add(s, s.api)
	}
	describe(s.api.OpenAPI())
	s.own = newOwn(s)
	s.mux.Handle("GET /metrics", s.metrics.Handler())
	s.mux.HandleFunc("GET "+ownPath, s.serveOwn)
	addHealth(s.mux, o.Ready)
	s.mux.Handle("/", assets())
	return s
}

// Close ends what the server does beside answering: jobs are cancelled, and nothing of it reads a recording afterwards.
func (s *Server) Close() {
	s.views.close()
	s.work.close()
	s.stop()
	s.hubs.gone.Wait()
	s.uploads.close()
}

// Describe writes the description of the API, as /openapi.json has it, for people to read.
func Describe(e *engine.Engine, w io.Writer) error {
	s, _ := New(e, Options{})
	defer s.Close()
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(s.api.OpenAPI())
}

// Status is what the web UI asks first.
type Status struct {
	Version   string `json:"version" doc:"The version of hightide."`
	AllowExec bool   `json:"allow_exec" doc:"Whether jobs may start programs (hightide ui --allow-exec)."`
	Folder    string `json:"folder,omitempty" doc:"Where jobs start programs; absent: they start none."`
	MaxUpload int64  `json:"max_upload_bytes,omitempty" doc:"The most that a file which is sent may have; absent: the server takes none."`
	UptimeNS  int64  `json:"uptime_ns" doc:"How long the server has run, in ns."`
	Fleet     bool   `json:"fleet,omitempty" doc:"Whether who asks may see what machines hold."`
	Shares    bool   `json:"shares,omitempty" doc:"Whether who asks may make links by which people outside see a run."`
	Comments  bool   `json:"comments,omitempty" doc:"Whether who asks may write comments on runs, at least of some project."`
	Account   string `json:"account,omitempty" doc:"The account of who asks, of which the server tells what it keeps; absent: it does not."`
	People    bool   `json:"people,omitempty" doc:"Whether who asks may see what is kept of anybody."`
	Outside   string `json:"outside,omitempty" doc:"The run that a link shows to who asks, and nothing else; absent: who asks is of the team."`
	Problem   string `json:"problem,omitempty" doc:"Why the data directory cannot be read now; absent: it can."`
}

func (s *Server) status(api huma.API) {
	get(api, "/status", "What this server is and may do", func(ctx context.Context, _ *struct{}) (*Status, error) {
		status := &Status{Version: engine.Version, AllowExec: s.options.AllowExec,
			UptimeNS: time.Since(s.began).Nanoseconds()}
		if status.AllowExec {
			status.Folder, _ = os.Getwd()
		}
		if s.options.Check != nil {
			status.MaxUpload = s.uploads.limit
		}
		by, _ := ctx.Value(askingKey{}).(asking)
		if s.options.Fleet != nil {
			status.Fleet = by.scope.All || s.options.Fleet.Sees(by.account)
		}
		status.Comments, status.Outside = by.may >= MayChange && by.scope.Changes(), by.scope.Run
		if s.options.People != nil && by.scope.Run == "" {
			status.Account, status.People = by.account, by.seesPeople()
		}
		status.Shares = status.Comments && s.options.Shares != nil
		if err := s.engine.Unread(); err != nil {
			status.Problem = line(err)
		} else if s.away(ctx) {
			status.Problem = "the team's database does not answer now"
		}
		return status, nil
	})
}

// away says that what keeps the runs cannot be used now.
func (s *Server) away(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, readyWithin)
	defer done()
	return s.options.Ready != nil && s.options.Ready(ctx) != nil
}

// answer is a response whose body is JSON.
type answer[T any] struct{ Body T }

// get adds a resource that is read.
func get[In, Out any](api huma.API, path, summary string, handle func(context.Context, *In) (*Out, error)) {
	huma.Get(api, "/api/v1"+path, answering(handle), func(o *huma.Operation) { o.Summary = summary })
}

// change adds a resource that changes something.
func change[In, Out any](api huma.API, method, path, summary string, handle func(context.Context, *In) (*Out, error)) {
	id := huma.GenerateOperationID(method, path, new(answer[*Out]))
	huma.Register(api, huma.Operation{OperationID: id, Method: method, Path: "/api/v1" + path, Summary: summary,
		DefaultStatus: http.StatusOK}, answering(handle))
}

// answering wraps the body and gives an error the status of its kind.
func answering[In, Out any](handle func(context.Context, *In) (*Out, error)) func(context.Context,
	*In) (*answer[*Out], error) {
	return func(ctx context.Context, in *In) (*answer[*Out], error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, problem(err)
		}
		return &answer[*Out]{out}, nil
	}
}

// problem is an error as RFC 9457 writes it: our one line, and what to do.
func problem(err error) error {
	var known huma.StatusError
	if errors.As(err, &known) {
		return known
	}
	status := http.StatusInternalServerError
	switch fail.Code(err) {
	case fail.ExitUsage:
		status = http.StatusUnprocessableEntity
	case fail.ExitBadInput:
		status = http.StatusNotFound
	case fail.ExitEnvironment:
		status = http.StatusServiceUnavailable
	}
	switch {
	case errors.Is(err, context.Canceled):
		status = 499 // as proxies log it: nobody waits for the answer any more
	case errors.Is(err, store.ErrNotFound): // of who asks the store itself
		status = http.StatusNotFound
	case errors.Is(err, store.ErrForbidden):
		status = http.StatusForbidden
	case errors.Is(err, store.ErrPlace): // it goes on by itself: a client tries again
		status = http.StatusServiceUnavailable
	case errors.Is(err, store.ErrRunning), errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrElsewhere):
		status = http.StatusConflict
	}
	return huma.NewError(status, line(err))
}

// line is what a person is told of an error: what happened and what to do, on one line.
func line(err error) string {
	text := err.Error()
	if hint := fail.Hint(err); hint != "" {
		text += " (" + hint + ")"
	}
	return strings.Join(strings.Fields(text), " ")
}
