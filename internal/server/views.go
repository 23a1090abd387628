package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hightide/internal/store"
)

// Who does not see every run is served by a view: a server over a store that has the runs of some projects and no
// others. So no route has to ask what may be seen, and what one sends, opens or starts is its view's alone.
//
//	guard ──▶ viewed ──▶ the server itself, for who sees everything
//	                └──▶ a view, shared by all who see the same projects
type views struct {
	mu  sync.Mutex
	all map[string]*view // by their scopes
}

type view struct {
	*Server
	handler http.Handler
	users   int // requests under way
	used    time.Time
}

// viewIdle is how long a view is kept that nobody uses.
const viewIdle = time.Hour

// viewed serves each caller what it sees.
func (s *Server) viewed(everything http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, known := r.Context().Value(askingKey{}).(asking)
		if !known || by.who == "" || by.scope.All {
			everything.ServeHTTP(w, r)
			return
		}
		v, release := s.openView(by.scope)
		defer release()
		v.handler.ServeHTTP(w, r)
	})
}

// openView gives the view of a scope. Release it after use.
func (s *Server) openView(scope store.Scope) (v *view, release func()) {
	name := scopeName(scope)
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	if v = s.views.all[name]; v == nil {
		s.views.dropIdle(time.Now())
		v = s.makeView(scope, name)
		if s.views.all == nil {
			s.views.all = map[string]*view{}
		}
		s.views.all[name] = v
	}
	v.users++
	return v, func() {
		s.views.mu.Lock()
		defer s.views.mu.Unlock()
		v.users, v.used = v.users-1, time.Now()
	}
}

// makeView makes one, which keeps what passes through it in a folder of its own.
func (s *Server) makeView(scope store.Scope, name string) *view {
	own := *s.engine
	own.Store, own.Visitors, own.Seen = store.Scoped(s.engine.Store, scope), nil, nil
	sum := sha256.Sum256([]byte(name))
	own.DataDir = filepath.Join(s.engine.Folder(), "views", hex.EncodeToString(sum[:8]))
	o := s.options
	o.Files, o.AllowExec, o.Acts = nil, false, nil // programs read what their account may
	v := &view{Server: serverOf(&own, o, s.door), used: time.Now()}
	v.own, v.outside = s.own, scope.Run != ""
	v.handler = compressed(v.mux)
	return v
}

// scopeName is the same for who sees the same.
func scopeName(scope store.Scope) string {
	if scope.Run != "" {
		return fmt.Sprintf("run %q", scope.Run)
	}
	name := ""
	for _, project := range slices.Sorted(maps.Keys(scope.Roles)) {
		name += fmt.Sprintf("%q %d\n", project, scope.Roles[project])
	}
	return name
}

// dropIdle closes views that nobody has used for long.
func (v *views) dropIdle(now time.Time) {
	for name, one := range v.all {
		if one.users == 0 && now.Sub(one.used) > viewIdle && !one.work.busy() {
			delete(v.all, name)
			go one.Server.Close()
		}
	}
}

func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		one.Server.Close()
	}
	v.all = nil
}
