package engine

import (
	"hightide/internal/observe"
	"hightide/internal/store"
)

// recover brings what dead engines left in shared memory into their recordings, where those are in
// this store. Best effort: what fails is tried again by the next command.
func (e *Engine) recover(s store.Store) {
	observe.Leftovers(e.Runtime.SharedDir(), func(left observe.Leftover) {
		run, recording, err := store.Load(s, left.ID)
		if err != nil || run.ID != left.ID || run.State == store.Running {
			return // of another data directory
		}
		writer, err := s.Reopen(left.ID)
		if err != nil {
			return
		}
		_ = observe.Recover(left, recording, e.scratch(left.ID), writer)
		_ = writer.Close()
		_ = e.keep(s, left.ID)
	})
	e.keepAbandoned(s)
}
