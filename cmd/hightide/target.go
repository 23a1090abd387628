package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/redact"
	"hightide/internal/remote"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Where runs are sent, and what is taken out of them: by flags, the environment, the user's settings, and the file of a
// project, which may come from a stranger. So the server of such a file counts once the person has confirmed it, and
// again when it changes.

// target are flags that say where to.
type target struct{ server, project string }

func (t *target) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.server, "server", "", "send to the team's server at this `address`, as https://runs.example.org")
	flags.StringVar(&t.project, "project", "", "send into this `project` of it")
}

// placed is where runs go, with what is taken out of them.
type placed struct {
	remote.Target
	rules redact.Rules
}

// settings are what a file says of it.
type targetSettings struct {
	Server  string       `toml:"server"`
	Project string       `toml:"project"`
	Redact  redact.Rules `toml:"redact"`
}

func readTarget(path string) (s targetSettings, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, nil // as of other settings: readSettings tells what cannot be read
	}
	if err := toml.Unmarshal(text, &s); err != nil {
		return s, fail.Input("write server = \"https://…\", project = \"NAME\", [redact]", "%s: %w", path, err)
	}
	return s, nil
}

func userSettings() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hightide", "config.toml")
}

// serversFile is where a person's keys are.
func serversFile() string { return filepath.Join(filepath.Dir(userSettings()), "servers.json") }

// targetOf says where runs go: flags before the environment, that before the project's file, that before the user's.
// Rules of all files add up.
func (a *app) targetOf(flags target) (to placed, err error) {
	user, err := readTarget(userSettings())
	if err != nil {
		return to, err
	}
	path := findProjectFile()
	project, err := readTarget(path)
	if err != nil {
		return to, err
	}
	to.Server, to.Project = cmp.Or(flags.server, os.Getenv("HIGHTIDE_SERVER")), cmp.Or(flags.project,
		os.Getenv("HIGHTIDE_PROJECT"), project.Project, user.Project)
	to.rules = user.Redact.With(project.Redact)
	if to.Server == "" && project.Server != "" {
		if err := allowed(path, project); err != nil {
			return to, err
		}
		to.Server = project.Server
	}
	if to.Server = cmp.Or(to.Server, user.Server); to.Server != "" {
		to.Server, err = remote.Address(to.Server)
	}
	return to, err
}

// allowed says whether the person has confirmed the server of a project's file.
func allowed(path string, project targetSettings) error {
	servers, err := remote.LoadServers(serversFile())
	if err == nil && !servers.Allows(path, remote.Target{Server: project.Server, Project: project.Project}) {
		err = fail.Usage("is it yours? hightide allow confirms it",
			"%s names the server %s, which you have not confirmed", path, report.Clean(project.Server))
	}
	return err
}

func noTarget() error {
	return fail.Usage("--server https://… --project NAME, or server and project in .hightide.toml; hightide push --help",
		"no server and project of a team are named, and no team's store is")
}

// client is one of the server, with the person's key.
func (to placed) client() (*remote.Client, error) {
	key := os.Getenv("HIGHTIDE_KEY")
	if key == "" {
		servers, err := remote.LoadServers(serversFile())
		if err != nil {
			return nil, err
		}
		if key = servers.Keys[to.Server]; key == "" {
			return nil, fail.Usage("hightide login "+to.Server+", or $HIGHTIDE_KEY", "you have no key of %s", to.Server)
		}
	}
	return remote.NewClient(to.Server, key)
}

// sender sends runs of this machine.
type sender struct {
	own   store.Store
	queue remote.Queue
	dir   string
}

func (a *app) sender() (*sender, error) {
	e := a.engine()
	dir, err := e.Keep("push")
	if err != nil {
		return nil, err
	}
	own, err := store.Open(store.Place{Store: e.Dir()})
	if err != nil {
		return nil, e.Advised(err)
	}
	return &sender{own, remote.Queue{Folder: dir}, dir}, nil
}

// send sends one run, which waits until it is there.
func (s *sender) send(ctx context.Context, run store.Run, to placed, preview bool) (sent remote.Sent, err error) {
	client, err := to.client()
	if err != nil {
		return sent, err
	}
	send := remote.Send{Client: client, Project: to.Project, Rules: to.rules, Preview: preview, Folder: s.dir}
	sent, err = send.Run(ctx, s.own, run)
	if err == nil && !preview {
		err = s.queue.Done(run.ID)
	}
	return sent, err
}

// sendWaiting sends what waits for a server. What was deleted since waits no more.
func (s *sender) sendWaiting(ctx context.Context, rules redact.Rules, except string) (all []remote.Sent, err error) {
	waiting, err := s.queue.Waiting()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		if id == except {
			continue
		}
		run, err := store.Find(s.own, id)
		if errors.Is(err, store.ErrNotFound) {
			_ = s.queue.Done(id)
			continue
		}
		var sent remote.Sent
		if err == nil {
			sent, err = s.send(ctx, run, placed{waiting[id], rules}, false)
		}
		if err != nil {
			return all, fmt.Errorf("run %s: %w", id, err)
		}
		all = append(all, sent)
	}
	return all, nil
}

// sendAtEnd sends a run that was recorded just now, and what waited. It returns notes for the person; what the program
// did is not changed by it.
func (a *app) sendAtEnd(ctx context.Context, id string, to placed) (notes []string) {
	waits := func(err error) []string {
		note := fmt.Sprintf("the run was not sent: %v", err)
		if hint := fail.Hint(err); hint != "" {
			note += " (" + hint + ")"
		}
		return append(notes, note+". It is kept here, and goes with the next hightide push")
	}
	s, err := a.sender()
	if err != nil {
		return waits(err)
	}
	defer s.own.Close()
	if err := s.queue.Add(id, to.Target); err != nil {
		return waits(err)
	}
	run, err := store.Find(s.own, id)
	if err != nil {
		return waits(err)
	}
	sent, err := s.send(ctx, run, to, false)
	if err != nil {
		return waits(err)
	}
	notes = append(notes, "sent: "+to.Server+"/runs/"+sent.Run)
	if sent.Redact != "" {
		notes = append(notes, "taken out before: "+sent.Redact)
	}
	_, _ = s.sendWaiting(ctx, to.rules, id) // best effort: they go on waiting
	return notes
}
