package store

import (
	"slices"
	"strings"
)

// apply returns those of the runs, newest first, that the filter lets through.
func (f Filter) apply(runs []Run) []Run {
	kept := runs[:0:0]
	passed := f.Before == ""
	for _, r := range runs {
		if f.Limit > 0 && len(kept) == f.Limit {
			break
		}
		if !passed {
			passed = r.ID == f.Before
			continue
		}
		if f.matches(&r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// matches is what Filter.sql says to the index.
func (f Filter) matches(r *Run) bool {
	for key, want := range f.Tags {
		if value, ok := r.Tags[key]; !ok || want != "" && value != want {
			return false
		}
	}
	return (f.IDs == nil || slices.Contains(f.IDs, r.ID)) && (f.Name == "" || f.Name == r.Name) && (f.State == "" || f.State == r.State) && (f.Verb == "" || f.Verb == r.Verb) &&
		(f.Ref == "" || f.Ref == r.ID || f.Ref == r.Name || strings.HasPrefix(r.ID, strings.ToLower(f.Ref))) &&
		strings.Contains(searched(r), strings.ToLower(f.Text))
}

// searched is what Filter.Text looks in.
func searched(r *Run) string {
	return strings.ToLower(r.ID + "\n" + r.Name + "\n" + strings.Join(r.Command, " "))
}
