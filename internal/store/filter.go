package store

import "strings"

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
