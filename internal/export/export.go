// Package export turns what hightide holds into what other tools read.
//
//	mem.Run, AllocatorSnapshot ──▶ [Redact] ──▶ Table (rows, one at a time) ──▶ csv.go, parquet.go ──▶ io.Writer
//	          │              │            └──▶ the whole        ──▶ json.go, perfetto.go, torch.go, recording
//	          └─▶ mem.Profile (held at the peak, by stack)      ──▶ pprof.go, speedscope.go, folded.go, dot.go
//
// Everything here is a pure function that never changes its Source. Units are in the names of columns
// (…_bytes, …_ns) or, where rows differ, in a column "unit"; what was not observed is empty, never
// zero. To add a format: one file and one line in formats.go. Start reading at Source, then Table in
// tables.go.
package export

import (
	"io"

	"hightide/internal/mem"
)

// Source is what is exported; exactly one of its fields is set.
type Source struct {
	Run      *mem.Run
	Snapshot *mem.AllocatorSnapshot
	Profile  *mem.Profile
}

// Format is a way to write a Source.
type Format struct {
	Name      string
	Extension string
	Short     string // what it is, for help
	Tables    bool   // writes one table at a time
	Binary    bool   // not for a terminal

	// Takes says which kinds of Source it can write.
	Takes Kinds
	// Write writes a Source of such a kind, or one table of it where Tables is set.
	Write func(w io.Writer, from Source, table *Table) error
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

// profile is a Source by stack: what it holds at its peak.
func (s Source) profile() *mem.Profile {
	switch {
	case s.Run != nil:
		return HeapAtPeak(s.Run)
	case s.Snapshot != nil:
		return AtPeak(s.Snapshot)
	}
	return s.Profile
}

// ofProfile is the Write of a format that wants nothing but a profile.
func ofProfile(write func(io.Writer, *mem.Profile) error) func(io.Writer, Source, *Table) error {
	return func(w io.Writer, from Source, _ *Table) error { return write(w, from.profile()) }
}

// Find returns the format of that name, or nil.
func Find(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name {
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
