package format

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Source is what is exported; exactly one of its fields is set.
type Source struct {
	Run      *mem.Run
	Snapshot *mem.AllocatorSnapshot
	Profile  *mem.Profile

	// Measure is what graphs by stack are drawn of, by the name of a kind of the profile; "": bytes at the peak.
	Measure string
}

// Kinds of Source, as a set.
type Kinds uint8

// The kinds.
const (
	Runs Kinds = 1 << iota
	Snapshots
	Profiles
)

// Kind is the one kind that a Source is of.
func (s Source) Kind() Kinds {
	switch {
	case s.Run != nil:
		return Runs
	case s.Snapshot != nil:
		return Snapshots
	}
	return Profiles
}

// String names a kind for people.
func (k Kinds) String() string {
	return map[Kinds]string{Runs: "a recording", Snapshots: "an allocator snapshot", Profiles: "a profile"}[k]
}

// measures are how people call some kinds of profiles.
var measures = map[string]string{"bytes": "space", "blocks": "objects"}

// profile is a Source by stack, with the measure wanted shown first.
func (s Source) profile() (*mem.Profile, error) {
	var p mem.Profile
	switch {
	case s.Run != nil:
		p = *HeapAtPeak(s.Run)
	case s.Snapshot != nil:
		p = *OfSnapshot(s.Snapshot)
	default:
		p = *s.Profile
	}
	var err error
	p.Default, err = s.kind(p.Kinds, p.Default)
	return &p, err
}

// CheckMeasure says what is wrong with the measure wanted, before anything is read or written for it.
func (s Source) CheckMeasure() error {
	kinds := spaceKinds()
	switch {
	case s.Snapshot != nil:
		kinds = usage.Kinds
	case s.Profile != nil:
		kinds = s.Profile.Kinds
	}
	_, err := s.kind(kinds, 0)
	return err
}

func (s Source) kind(kinds []mem.ProfileKind, otherwise int) (int, error) {
	if s.Measure == "" {
		return otherwise, nil
	}
	var known []string
	for i, kind := range kinds {
		if kind.Name == s.Measure || kind.Name == measures[s.Measure] {
			return i, nil
		}
		for called, name := range measures {
			if name == kind.Name {
				kind.Name = called
			}
		}
		known = append(known, kind.Name)
	}
	return 0, fmt.Errorf("%s has no measure %q, but %s", s.Kind(), s.Measure, strings.Join(known, ", "))
}

// ofProfile is the Write of a format that wants nothing but a profile.
func ofProfile(write func(io.Writer, *mem.Profile) error) func(io.Writer, Source, *Table) error {
	return func(w io.Writer, from Source, _ *Table) error {
		p, err := from.profile()
		if err != nil {
			return err
		}
		return write(w, p)
	}
}

// Written lists the formats that can be written.
func Written() []Format {
	return slices.DeleteFunc(slices.Clone(Formats), func(f Format) bool { return f.Write == nil })
}

// Find returns the format of that name that can be written, or nil.
func Find(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name && Formats[i].Write != nil {
			return &Formats[i]
		}
	}
	return nil
}

// TablesOf lists the tables that a kind of Source has.
func TablesOf(kind Kinds) []*Table {
	var tables []*Table
	for i := range Tables {
		if Tables[i].of == kind {
			tables = append(tables, &Tables[i])
		}
	}
	return tables
}

// FindTable returns the table of that name of a kind of Source, or nil.
func FindTable(kind Kinds, name string) *Table {
	for _, t := range TablesOf(kind) {
		if t.Name == name {
			return t
		}
	}
	return nil
}
