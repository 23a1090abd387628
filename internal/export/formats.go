package export

import (
	"io"

	"hightide/internal/wire"
)

// Formats lists the formats. Add yours here.
var Formats = []Format{
	{Name: "csv", Extension: ".csv", Short: "a table as comma-separated values", Tables: true, Takes: Runs | Snapshots, Write: writeCSV},
	{Name: "json", Extension: ".json", Short: "everything as one JSON object", Takes: Runs | Snapshots, Write: writeJSON},
	{Name: "parquet", Extension: ".parquet", Short: "a table as Apache Parquet", Tables: true, Binary: true, Takes: Runs | Snapshots, Write: writeParquet},
	{Name: "pprof", Extension: ".pb.gz", Short: "memory by call stack, for go tool pprof", Binary: true, Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(writePprof)},
	{Name: "speedscope", Extension: ".speedscope.json", Short: "the same for speedscope", Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(writeSpeedscope)},
	{Name: "folded", Extension: ".folded", Short: "the same as folded stacks, for flamegraph.pl", Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(writeFolded)},
	{Name: "dot", Extension: ".dot", Short: "the same as a call graph for Graphviz", Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(writeDot)},
	{Name: "perfetto", Extension: ".perfetto.json", Short: "curves and spans over time, for ui.perfetto.dev", Takes: Runs | Snapshots, Write: writePerfetto},
	{Name: "torch-pickle", Extension: ".pickle", Short: "a snapshot that PyTorch's memory_viz opens", Binary: true, Takes: Snapshots, Write: writeTorch},
	{Name: "recording", Extension: ".hightide", Short: "a recording, without its damage and, with --redact, without what is private", Binary: true, Takes: Runs,
		Write: func(w io.Writer, from Source, _ *Table) error { return wire.Save(w, from.Run) }},
}
