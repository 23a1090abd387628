package store

import (
	"fmt"
	"slices"
	"strings"
)

// What the stores have in common: choosing among runs, newest first.

// apply returns the runs that the filter lets through.
func (f Filter) apply(runs []Run) []Run {
	kept := runs[:0:0]
	for _, r := range runs {
		if f.Limit > 0 && len(kept) == f.Limit {
			break
		}
		if f.matches(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

func (f Filter) matches(r Run) bool {
	for key, want := range f.Tags {
		if value, ok := r.Tags[key]; !ok || want != "" && value != want {
			return false
		}
	}
	text := strings.ToLower(r.ID + "\x00" + r.Name + "\x00" + strings.Join(r.Command, " "))
	return (f.Name == "" || f.Name == r.Name) && (f.State == "" || f.State == r.State) &&
		strings.Contains(text, strings.ToLower(f.Text))
}

// pick finds the run that a reference means.
func pick(runs []Run, ref string) (Run, error) {
	if len(runs) == 0 && !isPath(ref) {
		return Run{}, &Error{Kind: ErrNotFound, Text: "there is no run yet", Hint: "hightide run -- python train.py records one"}
	}
	if ref == "last" { // and there is one
		return runs[0], nil
	}
	for _, r := range runs {
		if r.ID == ref {
			return r, nil
		}
	}
	for _, r := range runs {
		if r.Name == ref && ref != "" {
			return r, nil
		}
	}
	var found []Run
	for _, r := range runs {
		if ref != "" && strings.HasPrefix(r.ID, strings.ToLower(ref)) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return Run{}, notFound(ref)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, r := range found[:min(len(found), 5)] {
		names = append(names, r.ID)
	}
	if len(found) > len(names) {
		names = append(names, fmt.Sprintf("and %d more", len(found)-len(names)))
	}
	return Run{}, &Error{Kind: ErrAmbiguous, Text: fmt.Sprintf("%q could be %d runs", ref, len(found)), Hint: "write more of it: " + strings.Join(names, ", ")}
}

// prune removes what the limits no longer cover, oldest first.
func prune(runs []Run, limits Limits, remove func(id string) error) ([]Run, error) {
	var out []Run
	var kept int64
	for _, r := range runs { // newest first
		_, keep := r.Tags[KeepTag]
		kept += r.Size
		if keep || r.State == Running {
			continue
		}
		old := limits.Age > 0 && limits.Now.UnixNano()-r.Start > int64(limits.Age)
		if old || limits.Bytes > 0 && kept > limits.Bytes {
			kept -= r.Size
			out = append(out, r)
		}
	}
	slices.Reverse(out)
	if limits.Preview {
		return out, nil
	}
	for i, r := range out {
		if err := remove(r.ID); err != nil {
			return out[:i], err
		}
	}
	return out, nil
}
