package store

import (
	"path/filepath"
	"strings"
)

// Place says where a store is.
type Place struct {
	Store   string // a folder, or an address of one of kinds
	Objects string // where a store that keeps rows alone has its files
	Folder  string // on this machine, for what waits to be sent
}

// kinds lists the kinds of stores by how their locations begin. The first that fits is taken: a folder
// fits everything. Add yours above it.
var kinds = []struct {
	prefix string
	open   func(Place) (Store, error)
}{
	{"memory:", func(Place) (Store, error) { return &Memory{}, nil }},
	{"postgres://", openTeam},
	{"postgresql://", openTeam},
	{"", func(p Place) (Store, error) { return OpenFiles(p.Store), nil }},
}

func openTeam(p Place) (Store, error) {
	t, err := OpenTeam(p.Store, p.Objects, filepath.Join(p.Folder, "outbox"))
	if err != nil {
		return nil, err
	}
	return t, nil
}

// IsFolder says whether a location is a folder, which can hold other things too.
func IsFolder(location string) bool {
	for _, kind := range kinds {
		if strings.HasPrefix(location, kind.prefix) {
			return kind.prefix == ""
		}
	}
	return true
}

// Open is the store at a place: a folder, PostgreSQL with an object store, or "memory:" for one that is empty and ends
// with the process. Nothing is made before a run is.
func Open(place Place) (Store, error) {
	for _, kind := range kinds {
		if strings.HasPrefix(place.Store, kind.prefix) {
			return kind.open(place)
		}
	}
	panic("unreachable: a folder fits everything")
}
