package main

import (
	"context"
	"os/exec"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/remote"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// trendSource has the runs of a trend: this machine's, or those of a team's server.
type trendSource struct {
	filter store.Filter
	of     trend.Measure
	engine *engine.Engine
	client *remote.Client // nil: this machine's
	server string
}

// trendOf is where the runs of a trend are: on this machine, or on the server of that address.
func (a *app) trendOf(filter store.Filter, of trend.Measure, server string) (*trendSource, error) {
	from := &trendSource{filter: filter, of: of, engine: a.engine(), server: server}
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

func (f *trendSource) trend(ctx context.Context) (t trend.Trend, err error) {
	if f.client != nil {
		return t, f.client.Read(ctx, "/trend?"+trend.Asked(f.filter, f.of).Encode(), &t)
	}
	return f.engine.Trend(ctx, f.filter, f.of)
}

// comment is what a pull request is told of a commit or a run, held against another.
func (f *trendSource) comment(ctx context.Context, now, base string) (c *trend.PullComment, err error) {
	if f.client != nil {
		asked := trend.Asked(f.filter, f.of)
		asked.Set("commit", now)
		asked.Set("base", base)
		if err := f.client.Read(ctx, "/trend/comment?"+asked.Encode(), &c); err != nil {
			return nil, err
		}
		c.Server = f.server // by which the links were asked for
		c.Text = c.Markdown()
		return c, nil
	}
	return f.engine.PullComment(ctx, f.filter, f.of, now, base, f.engine.Resolve)
}

// hashOf is the commit that git calls so in this folder, as a branch; else the text itself, which may be a run.
func hashOf(ctx context.Context, ref string) string {
	if ref == "" || strings.HasPrefix(ref, "-") {
		return ref
	}
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--quiet", "--end-of-options",
		ref+"^{commit}").Output()
	if hash := strings.TrimSpace(string(out)); err == nil && wholeHash.MatchString(hash) {
		return hash
	}
	return ref
}
