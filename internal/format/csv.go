package format

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// writeCSV writes a table as RFC 4180 says, with a header, numbers plain and absent cells empty.
func writeCSV(w io.Writer, from Source, table *Table) error {
	return WriteCSVRows(w, table.Columns, func(add func([]any) error) error { return table.Rows(from, add) })
}

// WriteCSVRows writes rows, which have a cell for each column, as comma-separated values.
func WriteCSVRows(w io.Writer, columns []Column, rows func(add func(cells []any) error) error) error {
	out := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.Name
	}
	if err := out.Write(record); err != nil {
		return err
	}
	err := rows(func(cells []any) error {
		for i, c := range cells {
			record[i] = csvCell(c)
		}
		return out.Write(record)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

func csvCell(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return ""
	case string:
		return cell
	case int64:
		return strconv.FormatInt(cell, 10)
	case bool:
		return strconv.FormatBool(cell)
	}
	return fmt.Sprint(cell)
}
