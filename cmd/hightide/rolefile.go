package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/server"
	"hightide/internal/store"
	"hightide/internal/team"
)

// roleFile is the team's file, read again when it changes.
type roleFile struct {
	path string
	warn func(string)

	mu     sync.Mutex
	said   map[string]bool
	looked time.Time
	stamp  string
	now    *team.Config
}

// prune deletes what projects do not keep any longer, now and every hour, and tells of each run. What nobody has is
// swept away with it.
func (f *roleFile) prune(ctx context.Context, e *engine.Engine, sweep func(context.Context) error, tell func(store.Act)) {
	again := time.NewTicker(pruneEvery)
	defer again.Stop()
	for ctx.Err() == nil {
		for name, project := range f.newest().Projects {
			limits := store.Limits{Project: name, Age: time.Duration(project.Keep.Age), Bytes: mem.Bytes(project.Keep.Size)}
			if limits.Age == 0 && limits.Bytes == 0 {
				continue
			}
			gone, err := e.Prune(ctx, limits)
			for _, run := range gone {
				tell(store.Act{Time: time.Now(), Who: "the server", From: "keep of its file",
					What: fmt.Sprintf("deleted run %s of project %q", run.ID, name)})
			}
			if err != nil && ctx.Err() == nil {
				f.warn(fmt.Sprintf("runs of project %q could not be deleted: %v", name, err))
			}
		}
		if err := sweep(ctx); err != nil && ctx.Err() == nil {
			f.warn(fmt.Sprintf("what no run has could not be deleted: %v", err))
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

// once warns, once with the same words.
func (f *roleFile) once(text string) {
	f.mu.Lock()
	before := f.said[text]
	if f.said == nil {
		f.said = map[string]bool{}
	}
	f.said[text] = true
	f.mu.Unlock()
	if !before {
		f.warn(text)
	}
}

// read reads the file.
func (f *roleFile) read() (*team.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fail.Unread("name a file that can be read", err)
	}
	config, err := team.Parse(text)
	if err != nil {
		return nil, fail.Input("hightide about team says what stands in it", "%s: %w", f.path, err)
	}
	f.now, f.stamp, f.looked = config, f.stampNow(), time.Now()
	return config, nil
}

func (f *roleFile) stampNow() string {
	info, err := os.Stat(f.path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// projects are those of the newest file.
func (f *roleFile) projects() (all []server.ProjectInfo) {
	config := f.newest()
	for _, name := range slices.Sorted(maps.Keys(config.Projects)) {
		all = append(all, server.ProjectInfo{Name: name, Redact: config.Projects[name].Redact})
	}
	return all
}

// newest is the file as it is now. One that is wrong changes nothing, and is told of.
func (f *roleFile) newest() *team.Config {
	f.mu.Lock()
	config, again := f.now, false
	if time.Since(f.looked) > rolesEvery {
		f.looked = time.Now()
		stamp := f.stampNow()
		again, f.stamp = stamp != f.stamp, stamp
	}
	f.mu.Unlock()
	if again {
		if newer, err := f.read(); err != nil {
			f.warn("the roles stay as they were: " + err.Error())
		} else {
			config = newer
		}
	}
	return config
}

// access is what an account may do.
func (f *roleFile) access(account string) server.Access {
	config := f.newest()
	may := server.MayRead
	if slices.Contains(config.Fleet.Machines, account) {
		may = server.MayReport
	}
	scope := config.Scope(account)
	for _, role := range scope.Roles {
		if role >= store.Member {
			may = server.MayChange
		}
	}
	if scope.All {
		may = server.MayAdmin
	}
	return server.Access{May: may, Scope: scope}
}

// beside is a path that stands in a file of a folder.
func beside(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// pruneEvery is how often the runs of projects are looked through.
const pruneEvery = time.Hour

// rolesEvery is how long a change of the file may go unseen.
const rolesEvery = time.Second
