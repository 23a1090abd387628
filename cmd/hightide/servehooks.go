package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hightide/internal/engine"
	"hightide/internal/hooks"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/team"
)

// hooksEvery is how often runs and messages are looked for.
const hooksEvery = time.Second

// sendersAtOnce is how many messages are sent at once: a receiver that does not answer holds up one.
const sendersAtOnce = 4

// teller sends what was found in runs to the hooks of their projects.
type teller struct {
	team   *store.Team
	engine *engine.Engine
	file   *roleFile

	watched map[string]*engine.Watched // runs that go on, as far as they were looked at
	waiting atomic.Int64               // how many loops cannot go on now
}

// run tells until the context ends. The database has what is to be sent, so nothing is lost with this process.
func (t *teller) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { t.repeat(ctx, t.make) })
	group.Go(func() { t.repeat(ctx, t.listen) })
	for range sendersAtOnce {
		group.Go(func() { t.repeat(ctx, t.send) })
	}
	group.Wait()
}

// repeat does something as long as there is more of it, and looks again after a while.
func (t *teller) repeat(ctx context.Context, once func(context.Context) (more bool, err error)) {
	again := time.NewTicker(hooksEvery)
	defer again.Stop()
	waits := false
	for {
		more, err := once(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !waits: // the text of an error may differ each time
			if waits = true; t.waiting.Add(1) == 1 {
				t.file.warn("messages wait: " + err.Error())
			}
		case err == nil && waits:
			if waits = false; t.waiting.Add(-1) == 0 {
				t.file.warn("messages go on")
			}
		}
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// make keeps the messages of runs that have ended.
func (t *teller) make(ctx context.Context) (more bool, err error) {
	runs, err := t.team.Untold(ctx, 20)
	if err != nil {
		return false, err
	}
	all := t.hooks()
	for _, run := range runs {
		told, err := t.team.ToldAlerts(ctx, run.ID)
		if err != nil {
			return false, err
		}
		bodies := map[string]string{}
		for _, h := range all {
			if h.Project != run.Tags[store.ProjectTag] || h.Project == "" {
				continue
			}
			r, _, err := t.engine.Report(ctx, run.ID)
			if err != nil { // of a recording that cannot be read there is nothing to tell
				break
			}
			if body := h.Body(run, r, told, t.file.newest().Base()); body != "" {
				bodies[h.Name()] = body
			}
		}
		if err := t.team.Tell(ctx, run.ID, bodies); err != nil {
			return false, err
		}
	}
	return len(runs) == 20, nil
}

// listen keeps the messages of alerts of runs that go on, as far as their recordings came here: each alert's first.
func (t *teller) listen(ctx context.Context) (more bool, err error) {
	all := t.hooks()
	projects := []string{}
	for _, h := range all {
		projects = append(projects, h.Project)
	}
	going := map[string]*engine.Watched{}
	if len(projects) > 0 {
		runs, err := t.team.List(store.Filter{State: store.Running, Projects: projects})
		if err != nil {
			return false, err
		}
		for _, run := range runs {
			w := t.watched[run.ID]
			if w == nil {
				w = &engine.Watched{}
			}
			if t.engine.Look(ctx, run.ID, w) != nil { // its machine sends it at its end, or what came cannot be read
				continue
			}
			going[run.ID] = w
			if err := t.tellAlerts(ctx, run, w, all); err != nil {
				return false, err
			}
		}
	}
	t.watched = going
	return false, nil
}

// tellAlerts keeps messages of the alerts of a run. What was told stays out of the next look.
func (t *teller) tellAlerts(ctx context.Context, run store.Run, w *engine.Watched, all []hooks.Hook) error {
	for _, e := range w.Events {
		if e.Kind != "alert" {
			continue
		}
		title, bodies := report.FirstLine(e.Text, report.TitleLength), map[string]string{}
		for _, h := range all {
			if h.Project != run.Tags[store.ProjectTag] {
				continue
			}
			if body := h.Alert(run, title, t.file.newest().Base()); body != "" {
				bodies[h.Name()] = body
			}
		}
		if len(bodies) == 0 {
			continue
		}
		if err := t.team.TellAlert(ctx, run.ID, cmp.Or(e.Facts["alert"], e.Text), title, bodies); err != nil {
			return err
		}
	}
	w.Events = nil
	return nil
}

// send sends one message whose time has come.
func (t *teller) send(ctx context.Context) (more bool, err error) {
	d, there, err := t.team.NextDelivery(ctx)
	if err != nil || !there {
		return false, err
	}
	for _, h := range t.hooks() {
		if h.Name() != d.Hook {
			continue
		}
		failed := h.Send(ctx, d.ID, d.Body, time.Now())
		if failed == nil {
			return true, t.team.Delivered(ctx, d)
		}
		if ctx.Err() != nil {
			return false, nil // it is tried again by who is started next
		}
		over, err := t.team.Undelivered(ctx, d, hooks.Again(d.Tries), failed.Error())
		if over {
			t.file.warn(fmt.Sprintf("%s was not told of run %s: %v", &h, d.Run, failed))
		}
		return true, err
	}
	return true, t.team.Delivered(ctx, d) // the file has no such hook any more
}

// hooks are those of the newest file. One whose secret cannot be read is left out, and told of.
func (t *teller) hooks() (all []hooks.Hook) {
	for project, p := range t.file.newest().Projects {
		for _, h := range p.Hooks {
			one := hooks.Hook{Project: project, URL: h.URL, As: h.As, On: h.On}
			var err error
			if h.URLFile != "" {
				one.URL, err = t.secret(h.URLFile)
			}
			if h.SecretFile != "" && err == nil {
				one.Secret, err = t.secret(h.SecretFile)
			}
			if err == nil {
				err = team.ValidHook(one.URL)
			}
			if err != nil {
				t.file.once(fmt.Sprintf("a hook of project %q is not told anything: %v", project, err))
				continue
			}
			all = append(all, one)
		}
	}
	return all
}

// secret is what a file beside the team's file has.
func (t *teller) secret(path string) (string, error) {
	text, err := os.ReadFile(beside(filepath.Dir(t.file.path), path))
	return strings.TrimSpace(string(text)), err
}
