package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/fleet"
	"hightide/internal/report"
)

// Fleet is what the server knows of the team's machines.
type Fleet interface {
	// Sees says whether an account may see all machines, Reports whether it is the account of one.
	Sees(account string) bool
	Reports(account string) bool
	TakeReport(ctx context.Context, machine string, r fleet.Report) error
	Overview(ctx context.Context) (*fleet.Overview, error)
}

const fleetPath = "/api/v1/fleet/"

type machineInput struct {
	Machine string `path:"machine" maxLength:"200" doc:"The account of the key that asks: a machine tells of itself."`
	Body    fleet.Report
}

// Heard is the answer to a report.
type Heard struct {
	Taken bool `json:"taken" doc:"True: it is kept."`
}

func (s *Server) fleet(api huma.API) {
	get(api, "/fleet", "What every machine of the team holds, by person, job and line", s.showFleet)
	savedPage(api, "/fleet/page", "The same as one HTML file that needs nothing else", "fleet.html",
		func(ctx context.Context, _ *struct{}) (htmlWriter, error) {
			v, err := s.showFleet(ctx, nil)
			return &report.Saved{Fleet: v, Made: time.Now()}, err
		})
	change(api, http.MethodPut, "/fleet/machines/{machine}", "Say what a machine holds, as hightide watch does",
		s.takeReport)
}

// isReport says whether a request is of hightide watch, which asks again and again.
func isReport(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, fleetPath)
}

// machines are those of the team; an error where this server is of none.
func (s *Server) machines() (Fleet, error) {
	if s.options.Fleet == nil {
		return nil, fail.Input("hightide serve does", "this server keeps nothing of machines")
	}
	return s.options.Fleet, nil
}

func (s *Server) showFleet(ctx context.Context, _ *struct{}) (*fleet.Overview, error) {
	all, err := s.machines()
	if err != nil {
		return nil, err
	}
	if by, _ := ctx.Value(askingKey{}).(asking); !by.scope.All && !all.Sees(by.account) {
		return nil, huma.Error403Forbidden("machines are seen by the viewers of [fleet] in the team's file, and by its admins")
	}
	return all.Overview(ctx)
}

func (s *Server) takeReport(ctx context.Context, in *machineInput) (*Heard, error) {
	all, err := s.machines()
	if err != nil {
		return nil, err
	}
	by, _ := ctx.Value(askingKey{}).(asking)
	if by.account != in.Machine || !all.Reports(by.account) {
		return nil, huma.Error403Forbidden("a machine tells of itself, with a key of an account that stands in machines " +
			"of [fleet] in the team's file")
	}
	if err := all.TakeReport(ctx, in.Machine, in.Body); err != nil {
		return nil, err
	}
	return &Heard{true}, nil
}
