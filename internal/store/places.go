package store

import (
	"bytes"
	"compress/flate"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"

	"hightide/internal/mem"
)

// What runs are searched for by beside their rows: findings of their reports, and lines that held their memory. They
// stand in the recording (mem.Found), so any index of them can be made anew.

// placesKept bounds what is searched of one run: a recording may be a stranger's.
const placesKept = 1000

// keepPlaces has a row found by these.
func (r *Run) keepPlaces(all []mem.Place) {
	all = all[:min(len(all), placesKept)]
	r.found = make([]mem.Place, len(all))
	for i, p := range all {
		p.Kind, p.Severity, p.Function = clipped(p.Kind), clipped(p.Severity), clipped(p.Function)
		p.File = strings.ToValidUTF8(p.File[max(len(p.File)-placeText, 0):], "") // its end tells it
		r.found[i] = p
	}
	r.Places = mem.Some(int64(len(all)))
}

func clipped(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), placeText)], "")
}

// PlaceText says for people what of findings and lines is asked for; "": nothing.
func (f Filter) PlaceText() string {
	at := ""
	if f.Line != (Spot{}) {
		at = " at " + f.Line.String()
	}
	switch {
	case f.Finding != "":
		return "with a finding " + f.Finding + at
	case at != "":
		return "with a finding or held memory" + at
	}
	return ""
}

// MostUnsearched is up to how many runs are counted that cannot be searched for by findings and lines.
const MostUnsearched = 1000

// Unsearched is the filter of those runs: of which nothing is known that this one could ask for.
func (f Filter) Unsearched() Filter {
	f = f.seen()
	f.Unasked, f.Before, f.Limit = true, "", MostUnsearched
	return f
}

// UnsearchedText says for people that so many runs could not be asked; "": all were.
func UnsearchedText(runs int) string {
	text, verb := fmt.Sprintf("%d runs", runs), "are"
	switch {
	case runs == 0:
		return ""
	case runs == 1:
		text, verb = "1 run", "is"
	case runs >= MostUnsearched:
		text = fmt.Sprintf("%d runs or more", runs)
	}
	return text + " " + verb + " not searched: without a report yet, or of a hightide that kept no findings and lines. " +
		"Add them: hightide reindex --findings"
}

func (f Filter) searchesPlaces() bool { return f.Finding != "" || f.Line != Spot{} }

// seen is the filter of runs that were let through by their places already.
func (f Filter) seen() Filter {
	f.Finding, f.Line = "", Spot{}
	return f
}

// isPlace says whether a place is what is asked for.
func (f Filter) isPlace(p mem.Place) bool {
	return (f.Finding == "" || p.Kind == f.Finding) && f.Line.has(p)
}

// has says whether a place lies at the spot.
func (s Spot) has(p mem.Place) bool {
	return (s.Line == 0 || p.Line == s.Line) &&
		(s.Function == "" || strings.HasSuffix("."+p.Function, "."+s.Function)) &&
		(s.File == "" || strings.HasSuffix("/"+strings.ReplaceAll(p.File, `\`, "/"), "/"+s.File))
}

// In the index of one person's recordings places are a compressed column of the run, through which a search looks by a
// function of SQLite: a table of them would be many times as large as the rest.

// hasPlace is the name of that function.
const hasPlace = "has_place"

var hasPlaceFault = sqlite.RegisterDeterministicScalarFunction(hasPlace, 5,
	func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		data, _ := args[0].([]byte)
		kind, _ := args[1].(string)
		file, _ := args[2].(string)
		line, _ := args[3].(int64)
		function, _ := args[4].(string)
		filter := Filter{Finding: kind, Line: Spot{File: file, Line: int(line), Function: function}}
		all, err := unpack(data)
		return slices.ContainsFunc(all, filter.isPlace), err
	})

// packed is a column of places.
type packed struct{ of *[]mem.Place }

func (p packed) Scan(src any) (err error) {
	data, _ := src.([]byte)
	*p.of, err = unpack(data)
	return err
}

func (p packed) Value() (driver.Value, error) {
	if len(*p.of) == 0 {
		return []byte{}, nil
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		err = json.NewEncoder(w).Encode(*p.of)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

func unpack(data []byte) (all []mem.Place, err error) {
	if len(data) > 0 {
		err = json.NewDecoder(flate.NewReader(bytes.NewReader(data))).Decode(&all)
	}
	return all, err
}

// placesSQL is what it is asked for of a place.
func (f Filter) placesSQL() (where string, args []any) {
	var all []string
	add := func(condition string, values ...any) { all, args = append(all, condition), append(args, values...) }
	if f.Finding != "" {
		add("kind <> '' AND kind = ?", f.Finding)
	}
	at, more := f.Line.sql()
	if at != "" {
		add(at, more...)
	}
	return strings.Join(all, " AND "), args
}

// sql is the condition that a place lies at the spot; "": any does.
func (s Spot) sql() (where string, args []any) {
	var all []string
	add := func(condition string, values ...any) { all, args = append(all, condition), append(args, values...) }
	if s.File != "" {
		add("base = ?", base(s.File))
		if strings.Contains(s.File, "/") {
			end := "/" + s.File // and a file may begin with its last folder
			add(`substr('/' || replace(file, '\', '/'), length(file) + 2 - CAST(? AS INTEGER)) = ?`,
				utf8.RuneCountInString(end), end)
		}
	}
	if s.Line > 0 {
		add("line = ?", s.Line)
	}
	if s.Function != "" {
		end := "." + s.Function
		add("substr('.' || function, length(function) + 2 - CAST(? AS INTEGER)) = ?", utf8.RuneCountInString(end), end)
	}
	return strings.Join(all, " AND "), args
}
