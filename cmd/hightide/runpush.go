package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/remote"
	"hightide/internal/store"
)

// run --push: others see the run while it is recorded.
//
//	engine.Begun ──▶ remote.Live, beside the recording ──▶ the server        at the end: the whole run (sendAtEnd)

// liveEnd is how long the end of a run waits for what was not sent of it yet: all of it goes afterwards.
const liveEnd = 5 * time.Second

// pushing sends a run while it is recorded.
type pushing struct {
	app    *app
	to     placed
	say    func(string) // nil: the terminal is another's
	cancel context.CancelFunc
	done   sync.WaitGroup
	note   string
}

// watching has a sink start the sending once the run has its id.
func (p *pushing) watching(ctx context.Context, tell event.Sink) event.Sink {
	return func(e event.Event) {
		if begun, ok := e.(engine.Begun); ok && begun.Elsewhere == "" {
			own, cancel := context.WithCancel(ctx)
			p.cancel = cancel
			p.done.Go(func() { p.run(own, begun.RunID) }) // the program does not wait for it
		}
		tell.Tell(e)
	}
}

func (p *pushing) run(ctx context.Context, id string) {
	err := p.send(ctx, id)
	if err != nil && ctx.Err() == nil {
		p.note = fmt.Sprintf("others did not see all of the run while it was recorded: %v", err)
		if hint := fail.Hint(err); hint != "" {
			p.note += " (" + hint + ")"
		}
	}
}

func (p *pushing) send(ctx context.Context, id string) error {
	client, err := p.to.client()
	if err != nil {
		return err
	}
	dir, err := p.app.engine().Keep("push")
	if err != nil {
		return err
	}
	own := store.OpenFiles(p.app.engine().Dir())
	defer own.Close()
	live := remote.Live{Client: client, Project: p.to.Project, Rules: p.to.rules, Folder: dir}
	if p.say != nil {
		live.Shown = func(run string) { p.say("shown while it runs: " + p.to.Server + "/runs/" + run) }
	}
	return live.Run(ctx, own, id)
}

// end waits for what was not sent yet, not for long, and gives what there is to say.
func (p *pushing) end() []string {
	if p.cancel == nil {
		return nil
	}
	late := time.AfterFunc(liveEnd, p.cancel)
	p.done.Wait()
	late.Stop()
	p.cancel()
	if p.note == "" {
		return nil
	}
	return []string{p.note}
}
