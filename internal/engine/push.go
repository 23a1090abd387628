package engine

import (
	"context"
	"errors"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// Pushed says what became of a run that was to be sent to a team.
type Pushed struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	There bool   `json:"there_already"` // the team had it before
}

// Push sends runs of the data directory to the team's store, and what waits to be sent. Those that went are returned
// with an error too.
func (e *Engine) Push(ctx context.Context, refs []string) (all []Pushed, err error) {
	if e.Shared() == "" {
		return nil, fail.Usage("--store postgres://USER@HOST/DATABASE, or $HIGHTIDE_STORE", "no team's store is named")
	}
	shared, err := e.ownStore()
	if err != nil {
		return nil, advised(err)
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	team, ok := shared.(*store.Team)
	if !ok {
		return nil, fail.Usage("name a PostgreSQL: --store postgres://USER@HOST/DATABASE", "%s is no store of a team", e.Place())
	}
	sent, err := team.SendLeft(ctx)
	for _, id := range sent {
		all = append(all, Pushed{ID: id})
	}
	if err != nil {
		return all, advised(err)
	}
	own, err := store.Open(store.Place{Store: e.Dir()})
	if err != nil {
		return all, advised(err)
	}
	defer own.Close()
	for _, ref := range refs {
		run, err := store.Find(own, ref)
		if err != nil {
			return all, advised(err)
		}
		there, err := team.Push(ctx, own, run)
		if err != nil {
			return all, advised(err)
		}
		all = append(all, Pushed{run.ID, run.Name, there})
	}
	return all, nil
}
