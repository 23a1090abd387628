package watch

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"hightide/internal/fleet"
	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/store"
	"hightide/internal/system"
	"hightide/internal/usage"
)

// runs are those that hightide records on this machine. A recording is read again now and then: to read it whole takes
// a while.
type runs struct {
	root  string
	all   map[string]*run
	round int
}

type run struct {
	read    time.Time
	took    time.Duration
	round   int
	project string
	lines   map[int64]*fleet.Line // by pid
}

const (
	readEvery = 10 * time.Second
	readShare = 50       // of the time, one part goes into reading
	largest   = 64 << 20 // bytes of a recording that is read for its lines
)

// aRun is how runs are named; a folder is made of it.
var aRun = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (r *runs) begin() { r.round++ }

// forget drops what no process is of any longer.
func (r *runs) forget() {
	for id, one := range r.all {
		if one.round != r.round {
			delete(r.all, id)
		}
	}
}

// see says of the run of a process to which project it belongs, and which line holds most of the process's heap now. out
// is where the run keeps what is passing: it lies in the data directory. The environment is the process's word, so a
// recording counts only where it is a file of the process's own user.
func (r *runs) see(ctx context.Context, id, out string, s *sampler.Seen) (project string, line *fleet.Line) {
	one := r.all[id]
	if one == nil {
		one = &run{}
		r.all[id] = one
	}
	one.round = r.round
	if time.Since(one.read) >= max(readEvery, readShare*one.took) && aRun.MatchString(id) && filepath.IsAbs(out) {
		began := time.Now()
		r.load(ctx, one, id, filepath.Dir(filepath.Dir(filepath.Clean(out))), s.User)
		one.read, one.took = time.Now(), time.Since(began)
	}
	return one.project, one.lines[int64(s.PID)]
}

// load reads a recording.
func (r *runs) load(ctx context.Context, one *run, id, data string, uid uint32) {
	for _, folder := range []string{data, filepath.Join(data, "outbox")} {
		path := filepath.Join(r.root, folder, "runs", id, store.Recording)
		if size, ok := sizeOwned(path, uid); !ok || size > largest || ctx.Err() != nil {
			continue
		}
		_, recorded, err := store.Load(new(store.Memory), path)
		if err != nil {
			continue
		}
		one.project, one.lines = recorded.Info.Tags[store.ProjectTag], map[int64]*fleet.Line{}
		for i := range recorded.Processes {
			if p := recorded.Processes[i]; p != nil {
				one.lines[int64(p.PID)] = lineOf(recorded, p.ID)
			}
		}
		return
	}
}

// lineOf is the line that holds most of a process's sampled heap at the end of what is recorded; nil: not known.
func lineOf(recorded *mem.Run, process uint32) *fleet.Line {
	h := usage.FromHeap(recorded, process)
	if h == nil {
		return nil
	}
	type sum struct{ bytes, variance float64 }
	names, sums := usage.NewNames(&recorded.Stacks), map[string]sum{}
	most, best := 0.0, ""
	for _, u := range h.Held(h.MomentAt(math.MaxInt64)) {
		site := names.Of(u.Stack)
		if site == nil || site.Native || site.Line == 0 {
			continue
		}
		s := sums[site.Name]
		s.bytes, s.variance = s.bytes+float64(u.Bytes), s.variance+u.Variance
		if sums[site.Name] = s; s.bytes > most {
			most, best = s.bytes, site.Name
		}
	}
	if best == "" {
		return nil
	}
	return &fleet.Line{Place: best, Bytes: int64(most),
		Error: int64(usage.Half95(sums[best].variance, mem.Bytes(most)))}
}

// sizeOwned is the size of a regular file that is a user's own, and no link.
func sizeOwned(path string, uid uint32) (size int64, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	owner, ok := sampler.Owner(path)
	return info.Size(), ok && owner == uid
}

func now() (wall, mono int64) { return time.Now().UnixNano(), system.Monotonic() }
