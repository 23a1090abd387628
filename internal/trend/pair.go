package trend

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Sources are where a comment finds what the rows of a trend do not have.
type Sources struct {
	Run    func(ref string) (store.Run, error)      // what people call a run
	Runs   func(store.Filter) ([]store.Run, error)  // a list of them
	Report func(run string) (*report.Report, error) // of a run
	Of     store.Filter                             // what the trend is of
	Server string                                   // the address of the pages; empty: there is none
}

// Comment is what a pull request is told of a commit, or of a run, held against a base. Each is the hash of a commit, its
// beginning, or what people call a run. now "": the last commit of the trend; base "": the commit before.
func (t *Trend) Comment(now, base string, from Sources) (*PullComment, error) {
	b, err := t.side(now, from)
	if err != nil {
		return nil, err
	}
	c := &PullComment{Version: 1, Measure: t.Measure, What: b.of.what, Label: b.of.label, Now: *b.held,
		NowRun: b.run, Named: base != "", Commits: len(t.Commits), Held: []CommentLine{}, HeldWas: []CommentLine{}, Left: t.Left,
		Of:     Asked(from.Of, t.Measure).Encode(),
		Server: from.Server, Curve: t.curve()}
	a, err := t.base(base, b, from)
	if err == nil && a != nil {
		c.Base, c.BaseRun, c.Unknown = a.held, a.run, t.hold(&c.Now, a.held, b.of)
	}
	if err == nil && c.tellsLines() {
		if c.HeldWas, err = linesOf(from, c.Now.Before); err == nil {
			c.Held, err = linesOf(from, c.Now.First)
		}
	}
	if err != nil {
		return nil, err
	}
	c.Text = c.Markdown()
	return c, nil
}

// side is one of two that are held against each other.
type side struct {
	held *Commit
	run  string // that was named; empty: all runs of the commit count
	of   kind
}

// plain is what a message calls it.
func (s *side) plain() string { return report.Clean(cmp.Or(s.run, s.held.Short())) }

// hashLike is what may be the beginning of a hash.
var hashLike = regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`)

// side finds what was named: a commit of the trend first, then a run.
func (t *Trend) side(ref string, from Sources) (*side, error) {
	c, err := t.find(ref)
	if c != nil || err != nil {
		return &side{held: c, of: t.of}, err
	}
	if ref == "" {
		return nil, fail.Input("hightide trend lists which runs are left out, and why", "no run can be compared")
	}
	run, err := from.Run(ref)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fail.Input("hightide trend lists the commits, and which runs are left out",
			"no run of commit %s can be compared, and no run is called so", report.Clean(ref))
	case err != nil:
		return nil, err
	}
	if t.Measure.ofLines() {
		runs, err := from.Runs(t.Measure.Filter(store.Filter{IDs: []string{run.ID}}))
		if err != nil {
			return nil, err
		}
		for i := range runs {
			run.Held = runs[i].Held
		}
	}
	switch {
	case !ends(&run):
		return nil, fail.Input("name another run", "run %s failed, or did not end by itself", run.ID)
	case !t.Measure.figure(&run).Known():
		return nil, fail.Input("name another run", "run %s is without %s", run.ID, t.Measure.lacking())
	}
	held := commitOf(state{run.GitCommit, run.GitDirty}, []*store.Run{&run}, t.Measure)
	for i := range t.Commits { // what was said of the commit is said of the run
		if same := &t.Commits[i]; same.Commit == held.Commit && same.Dirty == held.Dirty {
			held.Statuses = same.Statuses
		}
	}
	return &side{&held, run.ID, kindOf(t.Measure.figure(&run))}, nil
}

// find is the commit of a hash or of its beginning; the last one where there is none. nil: no run of it can be compared.
// Of a commit with changed files and without, it is the one without.
func (t *Trend) find(ref string) (found *Commit, err error) {
	if ref == "" {
		if n := len(t.Commits); n > 0 {
			return &t.Commits[n-1], nil
		}
		return nil, nil
	}
	if !hashLike.MatchString(ref) {
		return nil, nil
	}
	for i := range t.Commits {
		c := &t.Commits[i]
		switch {
		case !strings.HasPrefix(c.Commit, strings.ToLower(ref)):
		case found != nil && found.Commit != c.Commit:
			return nil, fail.Input("write more of it", "%s could be commit %s or %s", ref, report.Clean(found.Commit),
				report.Clean(c.Commit))
		case found == nil || found.Dirty:
			found = c
		}
	}
	return found, nil
}

// base is what b is held against; nil: it is the first commit.
func (t *Trend) base(ref string, b *side, from Sources) (*side, error) {
	if ref == "" {
		at := slices.IndexFunc(t.Commits, func(c Commit) bool { return b.run == "" && c.First == b.held.First })
		switch {
		case at > 0:
			return &side{held: &t.Commits[at-1], of: t.of}, nil
		case at < 0:
			return nil, fail.Usage("name a commit or a run: --base REF", "what run %s is held against is not said", b.run)
		}
		return nil, nil
	}
	a, err := t.side(ref, from)
	switch {
	case err != nil:
		return nil, err
	case a.run == b.run && a.held.First == b.held.First:
		return nil, fail.Usage("name another base", "%s is held against itself", report.Clean(ref))
	case a.of != b.of:
		return nil, fail.Input("name two of one kind", "%s and %s are known by different kinds of figure: %s, %s and %s, %s",
			a.plain(), b.plain(), a.of.what, a.of.label, b.of.what, b.of.label)
	}
	return a, nil
}

// linesOf are those that held most of the heap of a run.
func linesOf(from Sources, run string) ([]CommentLine, error) {
	lines := []CommentLine{}
	r, err := from.Report(run)
	if err != nil || r.Lines == nil {
		return lines, err
	}
	for _, l := range r.Lines.Lines {
		lines = append(lines, CommentLine{Name: l.Name, Function: l.Function, Bytes: l.Bytes})
	}
	return lines, nil
}

// mostSparks are the commits of the curve in a comment.
const mostSparks = 60

func (t *Trend) curve() string {
	means := make([]int64, len(t.Commits))
	for i := range t.Commits {
		means[i] = t.Commits[i].Mean
	}
	return report.Sparkline(means, mostSparks)
}

// Asked is what runs are chosen by, as the page of their trend has it in its address.
func Asked(of store.Filter, what Measure) url.Values {
	asked := url.Values{}
	if what != "" && what != Peak {
		asked.Set("of", string(what))
	}
	for name, value := range map[string]string{"search": of.Text, "name": of.Name} {
		if value != "" {
			asked.Set(name, value)
		}
	}
	for key, value := range of.Tags {
		tag := key
		if value != "" {
			tag += "=" + value
		}
		asked.Add("tag", tag)
	}
	slices.Sort(asked["tag"])
	return asked
}
