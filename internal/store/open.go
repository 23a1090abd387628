package store

import "strings"

// kinds lists the kinds of stores by how their locations begin. The first that fits is taken: a folder
// fits everything. Add yours above it.
var kinds = []struct {
	prefix string
	open   func(rest string) (Store, error)
}{
	{"memory:", func(string) (Store, error) { return &Memory{}, nil }},
	{"", func(dir string) (Store, error) { return OpenFiles(dir), nil }},
}

// IsFolder says whether a location is a folder, which can hold other things too.
func IsFolder(location string) bool { return !strings.HasPrefix(location, "memory:") }

// Open is the store at a location: a folder, or "memory:" for one that is empty and ends with the
// process. Nothing is made before a run is.
func Open(location string) (Store, error) {
	for _, kind := range kinds {
		if rest, ok := strings.CutPrefix(location, kind.prefix); ok {
			return kind.open(rest)
		}
	}
	panic("unreachable: a folder fits everything")
}
