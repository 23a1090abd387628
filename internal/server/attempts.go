package server

import (
	"sync"
	"time"

	"hightide/internal/oidc"
)

const attemptsKept = 1000

// attempts are the browsers that are at the provider.
type attempts struct {
	mu  sync.Mutex
	all map[string]attempt // by their states
}

type attempt struct {
	oidc.Attempt
	browser digest
	until   time.Time
}

func (a *attempts) add(one attempt, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string]attempt{}
	}
	for state, old := range a.all {
		if now.After(old.until) || len(a.all) >= attemptsKept {
			delete(a.all, state)
		}
	}
	a.all[one.State] = one
}

// take gives one of a browser, once.
func (a *attempts) take(state, browser string, now time.Time) (one attempt, good bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, good = a.all[state]
	if !good || !one.browser.is(browser) {
		return attempt{}, false
	}
	delete(a.all, state)
	return one, now.Before(one.until)
}
