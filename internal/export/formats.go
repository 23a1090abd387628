package export

import (
	"io"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// Formats lists the formats. Add yours here.
var Formats = []Format{
	{Name: "csv", Extension: ".csv", Short: "a table as comma-separated values", Tables: true, Write: writeCSV},
	{Name: "json", Extension: ".json", Short: "the whole run as one JSON object", Write: writeJSON},
	{Name: "parquet", Extension: ".parquet", Short: "a table as Apache Parquet", Tables: true, Binary: true, Write: writeParquet},
	{Name: "recording", Extension: ".hightide", Short: "a recording, without its damage and, with --redact, without what is private", Binary: true,
		Write: func(w io.Writer, run *mem.Run, _ *Table) error { return wire.Save(w, run) }},
}
