package store

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// What changes runs, in every kind of store.

// Tag sets tags and removes those named; a name other than nil replaces the run's name. It is
// written into the recording, so that it travels with the file.
func Tag(s Store, id string, set map[string]string, remove []string, name *string) error {
	w, err := s.Reopen(id)
	if err != nil {
		return err
	}
	info := w.Info()
	info.ID = id
	info.Tags = retag(info.Tags, set, remove)
	if name != nil {
		info.Name = *name
	}
	if err := errors.Join(w.Write(info), w.Close()); err != nil {
		return err
	}
	if lost := w.Lost(); lost.Err != nil {
		return &Error{Kind: ErrPlace, Text: "cannot write the tags of run " + id, Err: cause(lost.Err),
			Hint: "make room on the disk"}
	}
	return nil
}

func retag(old, set map[string]string, remove []string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, old)
	for _, key := range remove {
		delete(tags, key)
	}
	maps.Copy(tags, set)
	if len(tags) == 0 {
		return nil
	}
	return tags
}

// Prune removes what the limits no longer cover, oldest first, and returns it.
func Prune(s Store, limits Limits) ([]Run, error) {
	filter := Filter{}
	if limits.Project != "" {
		filter.Projects = []string{limits.Project}
	}
	runs, err := s.List(filter)
	if err != nil {
		return nil, err
	}
	if of, has := s.(interface{ clock() (time.Time, error) }); has { // of two clocks, one that is ahead would delete the young
		now, err := of.clock()
		if err != nil {
			return nil, err
		}
		if now.Before(limits.Now) {
			limits.Now = now
		}
	}
	out := limits.exceeded(runs)
	if limits.Preview {
		return out, nil
	}
	for i, r := range out {
		if err := s.Remove(r.ID); err != nil {
			return out[:i], err
		}
	}
	return out, nil
}

// exceeded returns those of the runs, newest first, that the limits do not cover; oldest first.
func (l Limits) exceeded(runs []Run) []Run {
	var out []Run
	var kept int64
	for _, r := range runs {
		_, keep := r.Tags[KeepTag]
		kept += r.Size
		if keep || r.State == Running {
			continue
		}
		old := l.Age > 0 && l.Now.UnixNano()-r.Start > int64(l.Age)
		if old || l.Bytes > 0 && kept > int64(l.Bytes) {
			kept -= r.Size
			out = append(out, r)
		}
	}
	slices.Reverse(out)
	return out
}
