package format

import (
	"bufio"
	"encoding/json"
	"io"

	"hightide/internal/mem"
)

// jsonVersion grows when a field of the export changes meaning.
const jsonVersion = 1

// jsonSeries is a series in columns; times are nanoseconds since the run began.
type jsonSeries struct {
	mem.SeriesDef
	Times  []int64 `json:"time_ns"`
	Values []int64 `json:"value"`
}

// jsonStack is a stack with its number.
type jsonStack struct {
	ID        uint32         `json:"id"`
	Locations []mem.Location `json:"locations"`
}

// jsonOut writes one object, a value at a time, and remembers the first error.
type jsonOut struct {
	w   *bufio.Writer
	err error
}

func (o *jsonOut) raw(s string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(s)
	}
}

func (o *jsonOut) value(v any) {
	text, err := json.Marshal(v)
	if o.err == nil {
		o.err = err
	}
	o.raw(string(text))
}

func (o *jsonOut) field(name string, v any) {
	o.raw(",\n" + `"` + name + `":`)
	o.value(v)
}

// list writes an array whose items are made one at a time.
func (o *jsonOut) list(name string, each func(item func(any))) {
	o.raw(",\n" + `"` + name + `":[`)
	separator := "\n"
	each(func(v any) {
		o.raw(separator)
		o.value(v)
		separator = ",\n"
	})
	o.raw("]")
}

// writeJSON writes everything: series in columns, everything else as in the tables.
func writeJSON(w io.Writer, from Source, _ *Table) error {
	o := &jsonOut{w: bufio.NewWriterSize(w, 64<<10)}
	o.raw(`{"version":`)
	o.value(jsonVersion)
	o.field(from.name(), from.about())
	if from.Run != nil {
		o.run(from)
	} else {
		for _, t := range TablesOf(Snapshots) {
			o.table(from, t)
		}
	}
	o.raw("}\n")
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}

func (o *jsonOut) run(from Source) {
	run := from.Run
	o.field("end", run.End)
	o.field("damage", append([]mem.Damage{}, run.Damage...))
	o.list("series", func(item func(any)) {
		for _, s := range run.Series {
			times := make([]int64, len(s.Times))
			for i, t := range s.Times {
				times[i] = t - run.Start()
			}
			item(jsonSeries{s.SeriesDef, times, append([]int64{}, s.Values...)})
		}
	})
	for _, t := range TablesOf(Runs) {
		if t.Name != "samples" {
			o.table(from, t)
		}
	}
	o.list("stacks", func(item func(any)) {
		for id, stack := range run.Stacks.Each {
			item(jsonStack{id, stack})
		}
	})
	o.field("holders", append([]mem.Holder{}, run.Holders...))
	o.field("modules", append([]mem.Module{}, run.Modules...))
	o.field("models", append([]mem.ModelUse{}, run.Models...))
	o.field("drops", append([]mem.Drop{}, run.Drops...))
	if run.Info.Verb == "imagine" {
		o.field("imagined", run.Imagined)
	}
}

// table writes a table as a list of objects without their absent cells.
func (o *jsonOut) table(from Source, t *Table) {
	o.raw(",\n" + `"` + t.Name + `":[`)
	separator := "\n"
	err := t.Rows(from, func(cells []any) error {
		o.raw(separator)
		separator = ",\n"
		next := "{"
		for i, c := range cells {
			if c != nil {
				o.raw(next + `"` + t.Columns[i].Name + `":`)
				o.value(c)
				next = ","
			}
		}
		o.raw("}")
		return o.err
	})
	if o.err == nil {
		o.err = err
	}
	o.raw("]")
}
