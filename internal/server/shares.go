package server

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// A link shows one run to people outside, for a time:
//
//	POST /runs/{id}/shares ──▶ /runs/ID?…#share=SECRET ──▶ POST /session ──▶ a session that sees this run, and changes nothing
//
// The secret stands behind the # of an address, which browsers send to nobody; the page takes it out of the address
// first. It opens sessions and nothing else, and each request of them asks whether the link is still open.

// Shares keeps links by which people outside see one run.
type Shares interface {
	AddShare(ctx context.Context, run, maker string, lasts time.Duration) (secret string, made store.Share, err error)
	RevokeShare(ctx context.Context, run string, id int64) error
	Shares(ctx context.Context, run string) ([]store.Share, error)
	ShareOf(ctx context.Context, digest string) (store.Share, bool, error)
}

// MadeShare is a link that was made.
type MadeShare struct {
	Share  store.Share `json:"share" doc:"The link, as the list of them has it."`
	Secret string      `json:"secret" doc:"Put behind #share= of an address of the run on this server. It is told once."`
}

// ShareList is the links of a run.
type ShareList struct {
	Shares []store.Share `json:"shares" doc:"The newest first, also those that have ended."`
}

type shareInput struct {
	RunInput
	Body struct {
		Lasts int64 `json:"lasts_s,omitempty" minimum:"1" maximum:"7776000" doc:"How long it lasts, in seconds; absent: seven days."`
	}
}

type revokeInput struct {
	RunInput
	Share int64 `path:"share" minimum:"1" doc:"The number of the link."`
}

func (s *Server) shares(api huma.API) {
	const of = "/runs/{id}/shares"
	get(api, of, "Links by which people outside see a run", s.listShares)
	change(api, http.MethodPost, of, "Make a link by which people outside see a run, for a time", s.addShare)
	change(api, http.MethodDelete, of+"/{share}", "End a link at once", s.revokeShare)
}

// shareable is a run of which links may be told of. For people outside there are none.
func (s *Server) shareable(ctx context.Context, ref string) (store.Run, error) {
	run, err := s.findRun(ctx, ref)
	if err == nil && (s.options.Shares == nil || s.outside) {
		err = fail.Input("hightide serve does", "this server keeps no links to runs")
	}
	return run, err
}

// sharing is a run of which who asks may make links and end them: its project's members.
func (s *Server) sharing(ctx context.Context, ref string) (run store.Run, by asking, err error) {
	by, _ = ctx.Value(askingKey{}).(asking)
	if run, err = s.shareable(ctx, ref); err == nil && !by.scope.Has(store.Member, run.Tags[store.ProjectTag]) {
		err = huma.Error403Forbidden("links to a run are made and ended by the members of its project")
	}
	return run, by, err
}

func (s *Server) listShares(ctx context.Context, in *RunInput) (*ShareList, error) {
	run, err := s.shareable(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	all, err := s.options.Shares.Shares(ctx, run.ID)
	return &ShareList{orEmpty(all)}, err
}

func (s *Server) addShare(ctx context.Context, in *shareInput) (*MadeShare, error) {
	run, by, err := s.sharing(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	lasts := store.ShareLasts
	if in.Body.Lasts > 0 {
		lasts = time.Duration(in.Body.Lasts) * time.Second
	}
	secret, made, err := s.options.Shares.AddShare(ctx, run.ID, by.person(), lasts)
	if err != nil {
		return nil, err
	}
	s.tell(by.who, by.from, fmt.Sprintf("made link %d to run %s until %s", made.ID, run.ID,
		made.Expires.UTC().Format(time.RFC3339)))
	return &MadeShare{made, secret}, nil
}

func (s *Server) revokeShare(ctx context.Context, in *revokeInput) (*ShareList, error) {
	run, _, err := s.sharing(ctx, in.ID)
	if err == nil {
		err = s.options.Shares.RevokeShare(ctx, run.ID, in.Share)
	}
	if err != nil {
		return nil, err
	}
	return s.listShares(ctx, &in.RunInput)
}

// tell keeps what somebody did besides the request itself.
func (s *Server) tell(who, from, what string) {
	if s.options.Audit != nil {
		s.options.Audit(store.Act{Time: time.Now(), Who: who, From: from, What: what})
	}
}

// enterByShare begins a session of who has a link. The link is good until it ends, in any browser.
func (s *Server) enterByShare(ctx context.Context, in *EnterInput) (*enterOutput, error) {
	given := digestOf(in.Body.Share)
	digest := hex.EncodeToString(given[:])
	link, good, err := s.door.share(ctx, digest)
	if err != nil {
		return nil, huma.Error503ServiceUnavailable(awayText)
	}
	if !good {
		return nil, huma.Error401Unauthorized("this link has ended: ask who sent it for another one")
	}
	cookie, page := s.door.begin(grant{share: digest}, in.cookie(), time.Now())
	s.tell(fmt.Sprintf("link %d", link.ID), in.request.RemoteAddr, "opened run "+link.Run)
	return s.entered(ctx, in.request, in.cookie(), cookie, page), nil
}

// share is the link of a digest, where it is open.
func (d *door) share(ctx context.Context, digest string) (link store.Share, open bool, err error) {
	if d.shares == nil {
		return link, false, nil
	}
	link, open, err = d.shares.ShareOf(ctx, digest)
	return link, open && err == nil, err
}

// sharedWith is who was let in by a link: a caller of no account, who sees one run.
func (d *door) sharedWith(ctx context.Context, digest, as string) caller {
	link, open, err := d.share(ctx, digest)
	if !open {
		return caller{away: err != nil}
	}
	return caller{name: fmt.Sprintf("%s of link %d", as, link.ID), may: MayRead, scope: store.Scope{Run: link.Run},
		account: fmt.Sprintf("link:%d", link.ID)}
}
