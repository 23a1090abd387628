package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// Everybody sees, saves and deletes what is kept of oneself, and who administers the server what is kept of anybody:
//
//	GET /people/{person} ──▶ rows      GET …/export ──▶ .tar.gz with the files of runs      DELETE ──▶ none of it
//
// Of others' data the answer is the same whether there is any. Runs that one does not see are counted, not given.

// People keeps what there is of persons.
type People interface {
	Person(ctx context.Context, name string) (*store.Person, error)
	Export(ctx context.Context, w io.Writer, p *store.Person) error
	Forget(ctx context.Context, name string, keepRuns bool) error
}

// peoplePath is where the data of a person is, by the name of the account.
const peoplePath = "/api/v1/people/"

// PersonInput names a person.
type PersonInput struct {
	Person string `path:"person" maxLength:"200" doc:"The name of an account: one's own, or any as an admin of the server."`
}

type forgetInput struct {
	PersonInput
	KeepRuns bool `query:"keep_runs" doc:"The runs stay, without the name of who sent them."`
}

// Forgotten is what a deletion has left.
type Forgotten struct {
	Users []string `json:"users" doc:"Users of machines of that name, who wrote comments with the database's password and need not be that person."`
}

func (s *Server) people(api huma.API) {
	const of = "/people/{person}"
	get(api, of, "What is kept of a person: of oneself, or of anybody as an admin of the server", s.showPerson)
	served(api, of+"/export", "All of it as a .tar.gz, with the files of the runs",
		map[string]*huma.MediaType{"application/gzip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		s.exportPerson)
	change(api, http.MethodDelete, of, "Delete what is kept of a person, and the runs unless they are kept",
		s.forgetPerson)
}

// personOf is who is asked for, where who asks may know of that one.
func (s *Server) personOf(ctx context.Context, name string) (p *store.Person, by asking, err error) {
	by, _ = ctx.Value(askingKey{}).(asking)
	switch {
	case s.options.People == nil:
		return nil, by, fail.Input("hightide serve does", "this server keeps nothing of people")
	case s.outside || !by.isSelf(name) && !by.seesPeople():
		return nil, by, huma.Error403Forbidden("what is kept of a person is seen by that one, and by an admin of " +
			"the server with a key for admin")
	}
	if p, err = s.options.People.Person(ctx, name); err == nil {
		p.Within(by.scope)
	}
	return p, by, err
}

func (a asking) isSelf(person string) bool { return a.account != "" && a.account == person }

// seesPeople says whether somebody sees what is kept of anybody.
func (a asking) seesPeople() bool { return a.scope.All && a.may >= MayAdmin }

func (s *Server) showPerson(ctx context.Context, in *PersonInput) (*store.Person, error) {
	p, by, err := s.personOf(ctx, in.Person)
	if err == nil && !by.isSelf(in.Person) && p.Known() { // of who was deleted nothing is kept by a look
		s.tell(by.who, by.from, fmt.Sprintf("looked at what is kept of %q", in.Person))
	}
	return p, err
}

func (s *Server) exportPerson(ctx context.Context, in *PersonInput) (serving, error) {
	p, by, err := s.personOf(ctx, in.Person)
	if err != nil {
		return nil, err
	}
	if p.Known() {
		s.tell(by.who, by.from, fmt.Sprintf("exported what is kept of %q", in.Person))
	}
	return func(ctx context.Context, w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Disposition", `attachment; filename="person.tar.gz"`)
		if err := s.options.People.Export(ctx, w, p); err != nil {
			panic(http.ErrAbortHandler) // the client learns that it is not whole
		}
	}, nil
}

// forgetPerson goes on where who asked is gone: the key of who deletes the own data ends first.
func (s *Server) forgetPerson(ctx context.Context, in *forgetInput) (*Forgotten, error) {
	p, by, err := s.personOf(ctx, in.Person)
	if err != nil {
		return nil, err
	}
	if !in.KeepRuns {
		if p.NotSeen > 0 {
			return nil, huma.Error403Forbidden("runs are in projects that you see no more: keep the runs, or ask an admin " +
				"of the server")
		}
		for _, r := range p.Runs {
			if project := r.Tags[store.ProjectTag]; !by.scope.Has(store.Admin, project) {
				return nil, huma.Error403Forbidden(fmt.Sprintf("runs of project %q are deleted by its admins: keep the runs, or "+
					"ask one of them", project))
			}
		}
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.options.People.Forget(ctx, in.Person, in.KeepRuns); err != nil {
		return nil, err
	}
	s.door.forget(in.Person)
	return &Forgotten{p.Users}, nil
}

// forget ends the sessions of an account, also of one at the provider, whose word was good for a time.
func (d *door) forget(account string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for cookie, s := range d.sessions {
		if s.by.account == account {
			delete(d.sessions, cookie)
		}
	}
	for secret, c := range d.codes {
		if c.by.account == account {
			delete(d.codes, secret)
		}
	}
}

// forgets is the person whose data a request deletes; false: it is another one.
func forgets(r *http.Request) (person string, is bool) {
	person, of := strings.CutPrefix(r.URL.Path, peoplePath)
	return person, of && r.Method == http.MethodDelete
}

// forgetAct is what the log has of a request that deletes what is kept of a person. Once that was done, it has the name
// no more; and what was refused has it as the log writes names, so that it is found by it.
func forgetAct(r *http.Request, known caller, person string, status int) store.Act {
	act := store.Act{Time: time.Now(), Who: cmp.Or(known.name, "nobody"), From: r.RemoteAddr,
		What: fmt.Sprintf("deletes what is kept of %q", clip(person, auditPath)), Status: status}
	if status == http.StatusOK {
		act.What = "deletes what is kept of " + store.Deleted
		if known.account == person {
			act.Who, act.From = store.Deleted, ""
		}
	}
	return act
}
