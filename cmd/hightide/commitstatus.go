package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// commitStatus is where the result of check goes as the status of a commit.
type commitStatus struct {
	target
	file, commit, context string
}

// AddFlags adds them.
func (o *commitStatus) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "status", "", "write the status of the commit into this `file`, as GitHub takes it")
	flags.StringVar(&o.server, "server", "",
		"keep the status at the team's server at this `address`, as https://runs.example.org")
	flags.StringVar(&o.project, "project", "", "with --server: the `project` of it")
	flags.StringVar(&o.commit, "commit", "", "with --server: the `hash` of the commit; without: that of the run")
	flags.StringVar(&o.context, "context", trend.StatusContext, "what the status is `called`")
}

// sentStatus is a status as GitHub takes it.
type sentStatus struct {
	State       string `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description"`
	URL         string `json:"target_url,omitempty"`
}

// wholeHash is the hash of a commit, not the beginning of one.
var wholeHash = regexp.MustCompile(`^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$`)

// telling says what was found, and what kept it from being found.
type telling func(ctx context.Context, checked []report.Checked, broken error) error

// teller says the status where it was asked for. What is missing is told before anything is checked.
func (o *commitStatus) teller(ctx context.Context, a *app, ref string) (telling, error) {
	if o.server == "" {
		if o.commit != "" || o.project != "" {
			return nil, fail.Usage("hightide check … --server URL --project NAME", "--commit and --project go with --server")
		}
		return func(_ context.Context, checked []report.Checked, err error) error {
			return o.write(a, o.status(checked, err, ""))
		}, nil
	}
	to, err := a.targetOf(o.target)
	if err != nil {
		return nil, err
	}
	if to.Project == "" {
		return nil, fail.Usage("--project NAME", "no project of the server is named")
	}
	client, err := to.client()
	if err != nil {
		return nil, err
	}
	commit, err := o.hash(ctx, a, ref)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, checked []report.Checked, err error) error {
		more := to.Server + "/trend?" + url.Values{"tag": {store.ProjectTag + "=" + to.Project}}.Encode()
		status := o.status(checked, err, more)
		return errors.Join(o.write(a, status), client.SetStatus(ctx, to.Project, commit, status))
	}, nil
}

// hash is that of the commit which is checked.
func (o *commitStatus) hash(ctx context.Context, a *app, ref string) (string, error) {
	commit, hint := o.commit, "write its whole hash, as git rev-parse HEAD prints it"
	if commit == "" {
		row, err := a.engine().Find(ctx, ref)
		switch {
		case err != nil:
			return "", fail.Usage("name it: --commit \"$(git rev-parse HEAD)\"", "no commit is known of %s", report.Clean(ref))
		case row.GitDirty:
			return "", fail.Usage("name it all the same: --commit HASH", "files differed from the commit of %s",
				report.Clean(ref))
		}
		commit, hint = row.GitCommit, "name it: --commit \"$(git rev-parse HEAD)\""
	}
	if !wholeHash.MatchString(commit) {
		return "", fail.Usage(hint, "%q is no hash of a commit", commit)
	}
	return strings.ToLower(commit), nil
}

// status is what a commit is told: what is over, else what came nearest to its budget.
func (o *commitStatus) status(checked []report.Checked, broken error, more string) sentStatus {
	status := sentStatus{State: store.StatusSuccess, Context: cmp.Or(o.context, trend.StatusContext), URL: more}
	var over, said []string
	for _, c := range checked {
		said = append(said, c.Sentence())
		if c.Over {
			over = append(over, c.Sentence())
		}
	}
	switch {
	case len(over) > 0:
		status.State, said = store.StatusFailure, over
	case broken != nil:
		status.State, said = store.StatusError, []string{broken.Error()}
	}
	text := strings.Join(strings.Fields(strings.Join(said[:min(len(said), 1)], "")), " ")
	if len(said) > 1 {
		text = fmt.Sprintf("%s; %d more", text, len(said)-1)
	}
	status.Description = short(text, longestDescription)
	return status
}

// longestDescription is as long as GitHub lets one be.
const longestDescription = 140

// short is the beginning of a text, of so many letters at most.
func short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func (o *commitStatus) write(a *app, status sentStatus) error {
	if o.file == "" {
		return nil
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return a.output(o.file, append(text, '\n'))
}
