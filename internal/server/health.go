package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// What a supervisor asks, of which it learns no more than whether: it has no key.
const (
	healthPath = "/healthz" // does the process answer
	readyPath  = "/readyz"  // would it answer who asks for runs
)

// readyWithin is how long what the server needs has to answer.
const readyWithin = 5 * time.Second

func isHealth(r *http.Request) bool {
	return reads(r) && (r.URL.Path == healthPath || r.URL.Path == readyPath)
}

// addHealth adds them. ready says whether what the server needs can be used; nil: it needs nothing.
func addHealth(mux *routes, ready func(context.Context) error) {
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, r *http.Request) {
		ctx, done := context.WithTimeout(r.Context(), readyWithin)
		defer done()
		if ready != nil && ready(ctx) != nil {
			http.Error(w, "the store cannot be used now", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
