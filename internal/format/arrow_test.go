package format

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"hightide/internal/testkit"
)

// readArrow prints what pyarrow makes of files: numbers as text, so that nothing rounds them.
const readArrow = `
import json, sys, pyarrow.ipc
def text(value):
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
for name in sys.argv[1:]:
    with pyarrow.ipc.open_stream(name) as stream:
        table, batches = stream.schema.empty_table(), []
        for batch in stream:
            batch.validate(full=True)
            batches.append(batch)
    table = pyarrow.Table.from_batches(batches, stream.schema)
    word = lambda pairs: {k.decode(): v.decode() for k, v in (pairs or {}).items()}
    print(json.dumps({
        "fields": [{"name": f.name, "type": str(f.type), "nullable": f.nullable, "metadata": word(f.metadata)} for f in table.schema],
        "metadata": word(table.schema.metadata),
        "rows": [[text(v) for v in row.values()] for row in table.to_pylist()],
        "batches": [batch.num_rows for batch in batches],
    }))
`

type arrowRead struct {
	Fields []struct {
		Name, Type string
		Nullable   bool
		Metadata   map[string]string
	}
	Metadata map[string]string
	Rows     [][]any
	Batches  []int
}

// readByArrow has pyarrow read files that functions write.
func readByArrow(t *testing.T, writes ...func(io.Writer) error) []arrowRead {
	t.Helper()
	args := []string{"-c", readArrow}
	for i, write := range writes {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		if err := os.WriteFile(args[len(args)-1], out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(testkit.Arrow(t), args...)
	c.Stderr = os.Stderr
	printed, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []arrowRead
	for lines := json.NewDecoder(bytes.NewReader(printed)); lines.More(); {
		var one arrowRead
		if err := lines.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) != len(writes) {
		t.Fatalf("%d of %d files were read", len(all), len(writes))
	}
	return all
}

// asArrow is a cell as readArrow prints it.
func asArrow(cell any) any {
	switch cell := cell.(type) {
	case int64:
		return strconv.FormatInt(cell, 10)
	case float64:
		return strconv.FormatFloat(cell, 'f', -1, 64)
	}
	return cell
}

// TestArrow has pyarrow read every table: its types, units, integers, and what is absent.
func TestArrow(t *testing.T) {
	run := example(t)
	var writes []func(io.Writer) error
	for _, table := range TablesOf(Runs) {
		writes = append(writes, func(w io.Writer) error { return writeArrow(w, Source{Run: run}, table) })
	}
	for n, got := range readByArrow(t, writes...) {
		table := TablesOf(Runs)[n]
		for i, c := range table.Columns {
			field := got.Fields[i]
			if kind := []string{"string", "int64", "bool", "double"}[c.Kind]; field.Name != c.Name || field.Type != kind || !field.Nullable {
				t.Errorf("%s: field %+v, want an optional %s %s", table.Name, field, kind, c.Name)
			}
		}
		at := 0
		_ = table.Rows(Source{Run: run}, func(cells []any) error {
			for i, c := range cells {
				if want := asArrow(c); at >= len(got.Rows) || got.Rows[at][i] != want {
					t.Errorf("%s, row %d, %s: want %v of %v", table.Name, at, table.Columns[i].Name, want, got.Rows)
				}
			}
			at++
			return nil
		})
		if at != len(got.Rows) || at == 0 {
			t.Errorf("%s: %d rows, want %d", table.Name, len(got.Rows), at)
		}
		var info map[string]any
		if err := json.Unmarshal([]byte(got.Metadata["hightide.run"]), &info); err != nil || info["name"] != "baseline" {
			t.Errorf("%s: metadata %v", table.Name, got.Metadata)
		}
	}
}

// TestArrowCells has cells of every kind, at their limits and absent, in more rows than one batch holds.
func TestArrowCells(t *testing.T) {
	columns := []Column{{"name", Text}, {"size_bytes", Integer}, {"used", Boolean}, {"mean_ns", Real}, {"value", Integer}}
	cells := [][]any{
		{"", int64(0), false, 0.0, int64(math.MinInt64)},
		{nil, nil, nil, nil, nil},
		{"größe", int64(math.MaxInt64), true, -1.5, int64(1<<53 + 1)},
		{"a\xffb", int64(-1), nil, nil, nil},
	}
	const rows = rowGroup + 3
	got := readByArrow(t,
		func(w io.Writer) error {
			return WriteArrowRows(w, columns, "about", map[string]int{"n": 1}, func(add func([]any) error) error {
				for n := range rows {
					if err := add(cells[n%len(cells)]); err != nil {
						return err
					}
				}
				return nil
			})
		},
		func(w io.Writer) error {
			return WriteArrowRows(w, columns, "about", nil, func(func([]any) error) error { return nil })
		})
	if whole := got[0]; !reflect.DeepEqual(whole.Batches, []int{rowGroup, 3}) || len(whole.Rows) != rows {
		t.Errorf("%d rows in batches %v", len(whole.Rows), whole.Batches)
	}
	want := [][]any{
		{"", "0", false, "0.0", "-9223372036854775808"},
		{nil, nil, nil, nil, nil},
		{"größe", "9223372036854775807", true, "-1.5", "9007199254740993"},
		{"a�b", "-1", nil, nil, nil},
	}
	for n, row := range got[0].Rows {
		if !reflect.DeepEqual(row, want[n%len(want)]) {
			t.Fatalf("row %d: %v, want %v", n, row, want[n%len(want)])
		}
	}
	for i, unit := range []string{"", "bytes", "", "ns", ""} {
		if f := got[0].Fields[i]; f.Metadata["unit"] != unit {
			t.Errorf("%s: metadata %v, want unit %q", f.Name, f.Metadata, unit)
		}
	}
	if got[0].Metadata["about"] != `{"n":1}` {
		t.Errorf("metadata %v", got[0].Metadata)
	}
	if len(got[1].Rows) != 0 || len(got[1].Fields) != len(columns) {
		t.Errorf("no rows: %+v", got[1])
	}
	err := WriteArrowRows(io.Discard, columns, "about", nil,
		func(add func([]any) error) error { return add([]any{1, nil, nil, nil, nil}) })
	if err == nil {
		t.Error("an int as a text was written")
	}
}
