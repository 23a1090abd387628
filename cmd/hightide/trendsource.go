package main

import (
	"context"
	"fmt"
	"net/url"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/remote"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// trendSource has the runs of a trend: this machine's, or those of a team's server.
type trendSource struct {
	filter store.Filter
	engine *engine.Engine
	client *remote.Client // nil: this machine's
	server string
}

// trendOf is where the runs of a trend are: on this machine, or on the server of that address.
func (a *app) trendOf(filter store.Filter, server string) (*trendSource, error) {
	from := &trendSource{filter: filter, engine: a.engine(), server: server}
	if server == "" {
		return from, nil
	}
	to, err := a.targetOf(target{server: server})
	if err != nil {
		return nil, err
	}
	from.server = to.Server
	from.client, err = to.client()
	return from, err
}

// asked is what the runs are chosen by, as the page of the trend has it in its address.
func (f *trendSource) asked() url.Values {
	asked := url.Values{}
	for name, value := range map[string]string{"search": f.filter.Text, "name": f.filter.Name} {
		if value != "" {
			asked.Set(name, value)
		}
	}
	for key, value := range f.filter.Tags {
		tag := key
		if value != "" {
			tag += "=" + value
		}
		asked.Add("tag", tag)
	}
	return asked
}

func (f *trendSource) trend(ctx context.Context) (t trend.Trend, err error) {
	if f.client != nil {
		return t, f.client.Read(ctx, "/trend?"+f.asked().Encode(), &t)
	}
	runs, err := f.engine.Runs(ctx, f.filter)
	if err != nil {
		return t, err
	}
	t = trend.Of(runs)
	if f.engine.Shared() == "" {
		return t, nil
	}
	team, err := f.engine.SharedStore()
	if err != nil { // a place of files alone, which keeps no checks
		return t, nil
	}
	defer team.Close()
	statuses, err := team.Statuses(ctx, store.Scope{All: true}, f.filter.Tags[store.ProjectTag])
	t.Tell(statuses)
	return t, err
}

// lines are those that held most of the heap of a run.
func (f *trendSource) lines(ctx context.Context, run string) (lines []trend.Line, err error) {
	r := &report.Report{}
	if f.client != nil {
		err = f.client.Read(ctx, "/runs/"+url.PathEscape(run)+"/report", r)
	} else {
		r, _, err = f.engine.Report(ctx, run)
	}
	if err != nil || r.Lines == nil {
		return nil, err
	}
	for _, l := range r.Lines.Lines {
		lines = append(lines, trend.Line{Name: l.Name, Function: l.Function, Bytes: l.Bytes})
	}
	return lines, nil
}

// printComment prints what a pull request is told of a commit.
func (a *app) printComment(ctx context.Context, from *trendSource, t *trend.Trend, of string) error {
	c := trend.Comment{Trend: t, Commit: t.Find(of), Of: from.asked(), Server: from.server}
	if c.Commit == nil {
		what := "no run can be compared"
		if of != "" {
			what = fmt.Sprintf("no run of commit %s can be compared", report.Clean(of))
		}
		return fail.Input("hightide trend lists the commits, and which runs are left out", "%s", what)
	}
	if c.Commit.Verdict == trend.Changed {
		var err error
		if c.Before, err = from.lines(ctx, c.Commit.Before); err != nil {
			return err
		}
		if c.After, err = from.lines(ctx, c.Commit.First); err != nil {
			return err
		}
	}
	means := make([]int64, len(t.Commits))
	for i := range t.Commits {
		means[i] = t.Commits[i].Mean
	}
	c.Spark = report.Sparkline(means, mostSparks)
	_, err := fmt.Fprint(a.stdout, c.Markdown())
	return err
}

// mostSparks are the commits of the curve in a comment.
const mostSparks = 60
