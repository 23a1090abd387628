// Package export turns a Run into what other tools read.
//
//	mem.Run ──▶ [Redact] ──▶ Table (rows, one at a time) ──▶ csv.go, parquet.go ──▶ io.Writer
//	                    └──▶ the whole run                ──▶ json.go, recording
//
// Everything here is a pure function that never changes the Run. Units are in the names of columns
// (…_bytes, …_ns) or, where rows differ, in a column "unit"; what was not observed is empty, never
// zero. To add a format: one file and one line in formats.go. Start reading at Table in tables.go.
package export

import (
	"io"

	"hightide/internal/mem"
)

// Format is a way to write a run.
type Format struct {
	Name      string
	Extension string
	Short     string // what it is, for help
	Tables    bool   // writes one table at a time
	Binary    bool   // not for a terminal

	// Write writes a run, or one table of it where Tables is set.
	Write func(w io.Writer, run *mem.Run, table *Table) error
}

// Find returns the format or table of that name, or nil.
func Find(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i]
		}
	}
	return nil
}

// FindTable returns the table of that name, or nil.
func FindTable(name string) *Table {
	for i := range Tables {
		if Tables[i].Name == name {
			return &Tables[i]
		}
	}
	return nil
}
