// Package watch looks at a machine for its team's server: hightide watch.
//
//	sampler.Machine ──▶ Looker: people, jobs, runs, lines ──▶ fleet.Watcher ──▶ Outbox ──▶ the server
//
// Only figures and names leave the machine: no argument that may be a secret, no environment. Read looker.go for what
// is looked at, outbox.go for what waits while the server is away.
package watch

import (
	"context"
	"fmt"
	"time"

	"hightide/internal/fleet"
)

// Options of Run.
type Options struct {
	Root    string        // where proc and sys are found; "": "/"
	Version string        // of hightide
	Look    time.Duration // between two looks
	Every   time.Duration // between two reports
	Folder  string        // of what waits to be sent

	Send func(context.Context, fleet.Report) error // to the server
	Lost func(error) bool                          // whether an error of Send will not go away by waiting
	Say  func(line string)                         // told when the server goes away and comes back
}

// Run looks and sends until the context ends, or the server refuses what is sent.
func Run(ctx context.Context, o Options) error {
	looker := Open(o.Root)
	defer looker.Close()
	out, err := OpenOutbox(o.Folder)
	if err != nil {
		return err
	}
	w := &fleet.Watcher{Version: o.Version, Every: o.Every}
	ticks := time.NewTicker(o.Look)
	defer ticks.Stop()
	sent, away := int64(0), false
	for {
		look := looker.Look(ctx)
		w.Take(look)
		if sent == 0 || look.Mono-sent >= int64(o.Every) {
			sent = look.Mono
			out.Add(w.State(), w.Spend())
			err := out.Send(ctx, o.Send)
			switch {
			case err != nil && ctx.Err() != nil:
			case err != nil && o.Lost(err):
				return err
			case (err != nil) != away:
				if away = err != nil; away {
					o.Say(fmt.Sprintf("%v; what was reserved meanwhile is kept and sent later", err))
				} else {
					o.Say("the server answers again")
				}
			}
			if err := out.Save(); err != nil {
				o.Say(err.Error())
			}
		}
		select {
		case <-ctx.Done():
			out.Add(w.State(), w.Spend())
			return out.Save()
		case <-ticks.C:
		}
	}
}

// Once gives one picture: of two looks, as processor time takes two.
func Once(ctx context.Context, o Options) (fleet.State, error) {
	looker := Open(o.Root)
	defer looker.Close()
	w := &fleet.Watcher{Version: o.Version, Every: o.Every}
	w.Take(looker.Look(ctx))
	select {
	case <-ctx.Done():
		return fleet.State{}, ctx.Err()
	case <-time.After(min(o.Look, time.Second)):
	}
	w.Take(looker.Look(ctx))
	return w.State(), nil
}
