package format

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// rowGroup bounds the rows that wait in memory.
const rowGroup = 64 << 10

// writeParquet writes a table with every column optional. What the run or snapshot
// says of itself is in the file's metadata under hightide.run or hightide.snapshot, as JSON.
func writeParquet(w io.Writer, from Source, table *Table) error {
	return WriteRows(w, table.Name, table.Columns, "hightide."+from.name(), from.about(),
		func(add func([]any) error) error {
			return table.Rows(from, add)
		})
}

// WriteRows writes rows, which have a cell for each column, as Apache Parquet. Every column is optional; what the
// file is about is in its metadata under a key, as JSON.
func WriteRows(w io.Writer, name string, columns []Column, key string, about any,
	rows func(add func(cells []any) error) error) error {
	info, err := json.Marshal(about)
	if err != nil {
		return err
	}
	schema := schemaOf(name, columns)
	out := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.KeyValueMetadata(key, string(info)), parquet.CreatedBy("hightide", "1", ""))
	place := make([]int, len(columns)) // Parquet has the columns by name
	for i, path := range schema.Columns() {
		place[slices.IndexFunc(columns, func(c Column) bool { return c.Name == path[0] })] = i
	}
	row := make(parquet.Row, len(columns))
	err = rows(func(cells []any) error {
		for i, c := range cells {
			value, err := parquetValue(c)
			if err != nil {
				return fmt.Errorf("column %s: %w", columns[i].Name, err)
			}
			defined := 1
			if c == nil {
				defined = 0
			}
			row[place[i]] = value.Level(0, defined, place[i])
		}
		_, err := out.WriteRows([]parquet.Row{row})
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func schemaOf(name string, columns []Column) *parquet.Schema {
	group := parquet.Group{}
	for _, c := range columns {
		var node parquet.Node
		switch c.Kind {
		case Text:
			node = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case Boolean:
			node = parquet.Leaf(parquet.BooleanType)
		case Real:
			node = parquet.Leaf(parquet.DoubleType)
		default:
			node = parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
		}
		group[c.Name] = parquet.Optional(node)
	}
	return parquet.NewSchema(name, group)
}

func parquetValue(cell any) (parquet.Value, error) {
	switch cell := cell.(type) {
	case nil:
		return parquet.NullValue(), nil
	case string:
		return parquet.ByteArrayValue([]byte(cell)), nil
	case int64:
		return parquet.Int64Value(cell), nil
	case bool:
		return parquet.BooleanValue(cell), nil
	case float64:
		return parquet.DoubleValue(cell), nil
	}
	return parquet.Value{}, fmt.Errorf("no Parquet form of %T", cell)
}
