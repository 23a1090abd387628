package main

import (
	"context"
	"slices"

	"hightide/internal/fleet"
	"hightide/internal/store"
)

// teamFleet is what a team's server knows of machines: from its store, as the team's file says now.
type teamFleet struct {
	*store.Team
	file *roleFile
}

func (t teamFleet) Sees(account string) bool {
	return slices.Contains(t.file.newest().Fleet.Viewers, account)
}

func (t teamFleet) Reports(account string) bool {
	return slices.Contains(t.file.newest().Fleet.Machines, account)
}

// Overview implements server.Fleet.
func (t teamFleet) Overview(ctx context.Context) (*fleet.Overview, error) {
	machines, used, now, err := t.Machines(ctx)
	if err != nil {
		return nil, err
	}
	return fleet.Of(machines, used, now, t.file.newest().Fleet.Settings()), nil
}
