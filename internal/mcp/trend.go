package mcp

import (
	"context"
	"fmt"
	"strings"

	"hightide/internal/event"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// trended chooses the runs of a trend.
type trended struct {
	Search string            `json:"search,omitempty" jsonschema:"only runs with this in id, name or command"`
	Of     string            `json:"of,omitempty" jsonschema:"the figure: peak, allocated, reserved, growth, fragmentation, FILE:LINE or FILE:FUNCTION; default peak"`
	Tags   map[string]string `json:"tags,omitempty" jsonschema:"only runs with all of these; an empty value: any"`
}

func (in *trended) filter() store.Filter {
	return store.Filter{Text: in.Search, Tags: in.Tags}
}

type trendInput struct {
	trended
	Limit int `json:"limit,omitempty" jsonschema:"at most this many commits, the newest; default 20"`
}

type trendAnswer struct {
	trend.Trend
	Earlier int `json:"earlier_commits,omitempty" jsonschema:"before those listed; a higher limit lists them"`
}

const defaultCommits = 20

var showTrend = tool[trendInput, trendAnswer]{
	name: "trend", title: "Peaks from commit to commit",
	about: "How the peak, or another figure, of runs changed from commit to commit, oldest first, and where " +
		"by more than the noise.",
	answer: func(ctx context.Context, d *door, in trendInput, _ event.Sink) (out trendAnswer, text string, err error) {
		limit, err := atMost("limit", in.Limit, defaultCommits)
		if err != nil {
			return out, "", err
		}
		of, err := trend.ParseMeasure(in.Of)
		if err != nil {
			return out, "", err
		}
		out.Trend, err = d.engine.Trend(ctx, in.filter(), of)
		out.Earlier = max(0, len(out.Commits)-limit)
		out.Commits = out.Commits[out.Earlier:]
		return out, trendText(&out), err
	},
}

func trendText(out *trendAnswer) string {
	var lines []string
	if len(out.Commits) == 0 {
		lines = append(lines, "No run can be compared.")
	} else {
		lines = append(lines, fmt.Sprintf("Means of %s, %s, oldest first:", out.Measure.Of(out.What), out.Label))
	}
	for i := range out.Commits {
		c := &out.Commits[i]
		line := fmt.Sprintf("%s  %s of %d", c.Short(), c.Text(c.Mean), c.Runs)
		if change, ok := c.Change.Get(); ok {
			line += fmt.Sprintf(", %s, %s", trend.Signed(change), c.Verdict)
		}
		if c.Verdict == trend.Changed {
			line += fmt.Sprintf("; why: diff of %s and %s", c.Before, c.First)
		}
		if said := c.Checked(); said != "" {
			line += "; checks: " + said
		}
		lines = append(lines, line)
	}
	if out.Earlier > 0 {
		lines = append(lines, fmt.Sprintf("%d earlier ones: a higher limit lists them.", out.Earlier))
	}
	if out.Note != "" {
		lines = append(lines, out.Note)
	}
	if out.Unknown != "" {
		lines = append(lines, "The noise is not known: "+out.Unknown+".")
	}
	if len(out.Left) > 0 {
		lines = append(lines, "Left out: "+strings.Join(out.Left, ", ")+".")
	}
	return strings.Join(lines, "\n")
}

type commentInput struct {
	trended
	Commit string `json:"commit,omitempty" jsonschema:"a hash, 4 digits of it or more, or a run; absent: the last"`
	Base   string `json:"base,omitempty" jsonschema:"what that is held against; absent: the commit before"`
}

var pullComment = tool[commentInput, trend.PullComment]{
	name: "comment", title: "What a pull request is told",
	about: "What a pull request is told of a commit's peak, as Markdown: the change, its noise, what held more, " +
		"the curve. It posts nothing.",
	answer: func(ctx context.Context, d *door, in commentInput, _ event.Sink) (out trend.PullComment, text string,
		err error) {
		of, err := trend.ParseMeasure(in.Of)
		if err != nil {
			return out, "", err
		}
		c, err := d.engine.PullComment(ctx, in.filter(), of, in.Commit, in.Base, d.engine.Find)
		if err != nil {
			return out, "", err
		}
		return *c, c.Text, nil
	},
}
