package server

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
	"hightide/internal/explore"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// SnapshotList is the snapshots that are open.
type SnapshotList struct {
	Snapshots []engine.OpenedSnapshot `json:"snapshots" doc:"The snapshots that are open."`
}

type snapshotsInput struct {
	Run string `query:"run" maxLength:"200" doc:"Only those that this run recorded; they are opened."`
}

// SnapshotInput names a snapshot.
type SnapshotInput struct {
	ID string `path:"id" maxLength:"200" doc:"As the list of snapshots has it."`
}

type reportInput struct {
	SnapshotInput
	Page bool `query:"page" doc:"Without what a page does not draw, and with maps of at most 6,000 parts."`
}

// DeviceInput names a device of a snapshot.
type DeviceInput struct {
	SnapshotInput
	Device int `query:"device" default:"-1" minimum:"-1" doc:"-1: the device with the highest peak."`
}

// Blocks is a tile, with the labels that the client does not know yet.
type Blocks struct {
	explore.Tile
	Labels explore.Labels `json:"labels" doc:"What the numbers of sites, categories, modules and streams stand for."`
}

type blocksInput struct {
	DeviceInput
	From   int   `query:"from" doc:"A point: so many events before it."`
	To     int   `query:"to" doc:"The point after the last; not above from: the whole trace."`
	Low    int64 `query:"low" minimum:"0" doc:"Bytes of the stack."`
	High   int64 `query:"high" minimum:"0" doc:"Not above low: all of the stack."`
	Width  int   `query:"width" minimum:"0" doc:"Pixels."`
	Height int   `query:"height" minimum:"0" doc:"Pixels."`
	Most   int   `query:"most" minimum:"0" doc:"Blocks drawn singly."`
	FilterInput
	KnownInput
}

// FilterInput is which blocks are wanted, or drawn before others.
type FilterInput struct {
	Search string `query:"q" maxLength:"1000" doc:"A regular expression of RE2, of frames, category, module or an attached text; or an address such as 0x7f12c0000000, for the blocks that had it."`
	By     string `query:"by" doc:"Only blocks that are one thing by this: site, category, module, stream, size or age." enum:"site,category,module,stream,size,age,"`
	Only   string `query:"only" maxLength:"1000" doc:"That thing: a name, or of sizes and ages LOW-HIGH."`
	SelectedInput
}

// SelectedInput is what of blocks is selected; each leaves out the others.
type SelectedInput struct {
	Line     string `query:"line" maxLength:"1000" doc:"Only blocks of this site, by its name."`
	Category string `query:"category" maxLength:"1000" doc:"Only blocks of this category."`
	Module   string `query:"module" maxLength:"1000" doc:"Only blocks of this module."`
}

// KnownInput says how many labels the client has already.
type KnownInput struct {
	Sites      int `query:"sites" minimum:"0" doc:"So many labels of sites are known already; likewise the others."`
	Categories int `query:"categories" minimum:"0" doc:"So many labels of categories are known already."`
	Modules    int `query:"modules" minimum:"0" doc:"So many labels of modules are known already."`
}

// MomentAnswer is a moment, with the labels that the client does not know yet.
type MomentAnswer struct {
	explore.Moment
	Labels explore.Labels `json:"labels" doc:"What the numbers of sites, categories, modules and streams stand for."`
}

type momentInput struct {
	DeviceInput
	At     int    `query:"at" minimum:"0" doc:"A point."`
	Width  int    `query:"width" default:"6000" minimum:"1" maximum:"1000000" doc:"Pixels of all segments in a row: smaller parts are joined."`
	By     string `query:"by" default:"category" enum:"site,category,module,stream,size,age" doc:"What a part says of its block; with only it is what that is of."`
	Search string `query:"q" maxLength:"1000" doc:"A regular expression of RE2: other blocks are marked."`
	Only   string `query:"only" maxLength:"1000" doc:"As for blocks, of what by says."`
	SelectedInput
	KnownInput
}

type blockInput struct {
	DeviceInput
	N      int   `query:"n" default:"-1" doc:"The block's number; -1: the one at an offset."`
	At     int   `query:"at" default:"-1" doc:"The point at which to look."`
	Offset int64 `query:"offset" default:"-1" doc:"Bytes of the stack at that point."`
}

type searchInput struct {
	DeviceInput
	FilterInput
}

type flameInput struct {
	DeviceInput
	At   int    `query:"at" default:"-1" doc:"What lived at this point; -1: what was allocated from one point to another."`
	From int    `query:"from" doc:"A point: so many events before it."`
	To   int    `query:"to" doc:"Not above from: to the end."`
	Of   string `query:"of" default:"allocated" enum:"allocated,held,freed" doc:"Of a range: what it allocated, freed, or held when that was most."`
	FilterInput
}

type sourceInput struct {
	SnapshotInput
	Place int `query:"place" minimum:"0" doc:"Number of a frame's place, as a block's stack or a flame graph has it."`
}

type eventsInput struct {
	DeviceInput
	From  int `query:"from" minimum:"0" doc:"Number of the first event."`
	Count int `query:"count" default:"100" minimum:"0" maximum:"400" doc:"The most that are given."`
	FilterInput
}

type cachedInput struct {
	DeviceInput
	From    int `query:"from" minimum:"0" doc:"A point."`
	To      int `query:"to" doc:"The point after the last; not above from: the whole trace."`
	Columns int `query:"columns" default:"1000" minimum:"1" maximum:"2400" doc:"The most that the window is divided into."`
}

type nextInput struct {
	DeviceInput
	Action string `query:"action" required:"true" doc:"As alloc, segment_alloc or oom."`
	After  int    `query:"after" default:"-1" doc:"Number of an event."`
	Back   bool   `query:"back" doc:"The last one before it."`
}

// NextEvent is an event that was looked for.
type NextEvent struct {
	Event int `json:"event" doc:"The number of the event; -1: there is none."`
}

func (s *Server) snapshots(api huma.API) {
	get(api, "/snapshots", "Allocator snapshots that are open",
		func(ctx context.Context, in *snapshotsInput) (*SnapshotList, error) {
			if in.Run == "" {
				return &SnapshotList{s.opened.List()}, nil
			}
			all, err := s.opened.OfRun(ctx, in.Run)
			return &SnapshotList{all}, err
		})
	get(api, "/snapshots/{id}", "One of them, read", func(ctx context.Context,
		in *SnapshotInput) (*engine.OpenedSnapshot, error) {
		if _, err := s.opened.Snapshot(ctx, in.ID); err != nil {
			return nil, err
		}
		info, err := s.opened.Info(ctx, in.ID)
		return &info, err
	})
	change(api, http.MethodDelete, "/snapshots/{id}", "Close a snapshot; one that was uploaded is deleted",
		func(ctx context.Context, in *SnapshotInput) (*Deleted, error) {
			return &Deleted{[]string{in.ID}}, s.opened.Close(ctx, in.ID)
		})
	get(api, "/snapshots/{id}/report", "What is to be said of it",
		func(ctx context.Context, in *reportInput) (*report.Report, error) {
			r, err := s.opened.Report(ctx, in.ID)
			if err != nil || !in.Page {
				return r, err
			}
			return r.ForPage(), nil
		})
	savedPage(api, "/snapshots/{id}/report.html", "The same as a page that needs nothing else", "snapshot.html",
		func(ctx context.Context, in *SnapshotInput) (htmlWriter, error) {
			return s.opened.Report(ctx, in.ID)
		})
	get(api, "/snapshots/{id}/blocks", "Its blocks in a window, stacked", s.blocks)
	get(api, "/snapshots/{id}/moment", "What lay where at a point", s.moment)
	get(api, "/snapshots/{id}/events", "Events of the trace, one after the other",
		func(ctx context.Context, in *eventsInput) (*explore.Events, error) {
			x, filter, err := s.filtered(ctx, in.DeviceInput, &in.FilterInput)
			if err != nil {
				return nil, err
			}
			l, err := x.List(in.From, in.Count, filter)
			return &l, err
		})
	get(api, "/snapshots/{id}/cached", "What was in use, cached and reserved over a window",
		func(ctx context.Context, in *cachedInput) (*explore.Cached, error) {
			x, err := s.opened.Explorer(ctx, in.ID, in.Device)
			if err != nil {
				return nil, err
			}
			c := x.Cached(in.From, in.To, in.Columns)
			return &c, nil
		})
	get(api, "/snapshots/{id}/next", "The next event of a kind",
		func(ctx context.Context, in *nextInput) (*NextEvent, error) {
			x, err := s.opened.Explorer(ctx, in.ID, in.Device)
			if err != nil {
				return nil, err
			}
			event, err := x.Next(in.Action, in.After, in.Back)
			return &NextEvent{event}, err
		})
	get(api, "/snapshots/{id}/block", "One block", s.block)
	get(api, "/snapshots/{id}/search", "Blocks that match a pattern", s.search)
	get(api, "/snapshots/{id}/flame", "What lived at a point or was allocated in a range, by call stack", s.flame)
	get(api, "/snapshots/{id}/source", "The source around a frame, where it is readable",
		func(ctx context.Context, in *sourceInput) (*engine.Lines, error) {
			return s.opened.Source(ctx, in.ID, in.Place)
		})
}

func (s *Server) moment(ctx context.Context, in *momentInput) (*MomentAnswer, error) {
	x, filter, err := s.filtered(ctx, in.DeviceInput, &FilterInput{in.Search, in.By, in.Only, in.SelectedInput})
	if err != nil {
		return nil, err
	}
	if in.Only == "" {
		filter.By = ""
	}
	m, err := x.Moment(in.At, in.Width, explore.By(in.By), filter)
	return &MomentAnswer{m, x.LabelsFrom(in.Sites, in.Categories, in.Modules)}, err
}

// snapshotIdle is how long a snapshot that nobody looks at is held. A large one takes seconds to be read again, and a
// reader may think for a while before the next click.
const snapshotIdle = 3 * time.Minute

// rest gives memory back once nobody looks at a snapshot, until the context ends.
func (s *Server) rest(ctx context.Context, idle time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(idle / 6):
		}
		if s.opened.Rest(time.Now().Add(-idle)) {
			s.tried.dropUnheld(s.opened.Holds)
			s.engine.Runtime.TuneTo(launch.Forgetting)()
		}
	}
}

// parsed is a snapshot's file, the same value as long as it is kept.
func (s *Server) parsed(ctx context.Context, id string) (*mem.AllocatorSnapshot, error) {
	return s.opened.Snapshot(ctx, id)
}

// pattern compiles a search; nil: there is none.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	compiled, err := regexp.Compile("(?i)" + text)
	if err != nil {
		return nil, fail.Usage("RE2 has no look-around and no back references",
			"the search is not a regular expression: %w", err)
	}
	return compiled, nil
}

// filter is which blocks are wanted.
func (in *FilterInput) filter() (explore.Filter, error) {
	p, err := pattern(in.Search)
	return explore.Filter{Pattern: p, Site: in.Line, Category: in.Category, Module: in.Module, By: explore.By(in.By),
		Value: in.Only}, err
}

// filtered is a device of a snapshot, and which of its blocks are wanted.
func (s *Server) filtered(ctx context.Context, of DeviceInput, wanted *FilterInput) (x *explore.Explorer,
	filter explore.Filter, err error) {
	if x, err = s.opened.Explorer(ctx, of.ID, of.Device); err == nil {
		filter, err = wanted.filter()
	}
	return x, filter, err
}

func (s *Server) blocks(ctx context.Context, in *blocksInput) (*Blocks, error) {
	x, filter, err := s.filtered(ctx, in.DeviceInput, &in.FilterInput)
	if err != nil {
		return nil, err
	}
	first, err := x.Wants(filter)
	if err != nil {
		return nil, err
	}
	tile := x.Tile(explore.Window{From: in.From, To: in.To, Low: mem.Bytes(in.Low), High: mem.Bytes(in.High),
		Width: in.Width, Height: in.Height, Most: in.Most, First: first})
	return &Blocks{tile, x.LabelsFrom(in.Sites, in.Categories, in.Modules)}, nil
}

func (s *Server) block(ctx context.Context, in *blockInput) (*explore.Block, error) {
	x, err := s.opened.Explorer(ctx, in.ID, in.Device)
	if err != nil {
		return nil, err
	}
	n, at := in.N, min(in.At, x.Points()-1)
	if n < 0 {
		found := false
		if at >= 0 && in.Offset >= 0 {
			n, found = x.Find(at, mem.Bytes(in.Offset))
		}
		if !found {
			return nil, fail.Input("choose a point and an offset below what was allocated then", "no block lies there")
		}
	}
	if !x.Has(n) {
		return nil, fail.Input("they are numbered from 0", "there is no block %d", n)
	}
	b := x.BlockAt(n, at)
	return &b, nil
}

func (s *Server) search(ctx context.Context, in *searchInput) (*explore.Found, error) {
	x, filter, err := s.filtered(ctx, in.DeviceInput, &in.FilterInput)
	if err != nil {
		return nil, err
	}
	found, err := x.Search(filter)
	return &found, err
}

func (s *Server) flame(ctx context.Context, in *flameInput) (*explore.Flame, error) {
	x, filter, err := s.filtered(ctx, in.DeviceInput, &in.FilterInput)
	if err != nil {
		return nil, err
	}
	var flame explore.Flame
	if in.At >= 0 {
		flame, err = x.FlameAt(in.At, filter)
	} else {
		flame, err = x.FlameIn(in.From, in.To, explore.Of(in.Of), filter)
	}
	return &flame, err
}
