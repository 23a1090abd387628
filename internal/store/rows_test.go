package store

import (
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"hightide/internal/mem"
)

// TestRowsComeBack: whatever List shows is in the index, but for where the run lies. A field of Run without a
// column fails here.
func TestRowsComeBack(t *testing.T) {
	var want Run
	fields := reflect.ValueOf(&want).Elem()
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() {
			continue
		}
		switch f := fields.Field(i); f.Interface().(type) {
		case string, mem.Label, State:
			f.SetString("it's \"" + fields.Type().Field(i).Name)
		case int, int64:
			f.SetInt(int64(i) - 3)
		case uint64:
			f.SetUint(math.MaxInt64 - uint64(i))
		case bool:
			f.SetBool(true)
		case mem.Figure:
			f.Set(reflect.ValueOf(mem.Figure{Bytes: 3, Error: 1, What: "PSS", Source: mem.SeriesTreePSS, Label: mem.Estimated,
				AtLeast: true}))
		case mem.Ending:
			f.Set(reflect.ValueOf(mem.Ending{Kind: mem.EndFailed, Text: "exit 1, IndexError"}))
		case mem.Optional:
			f.Set(reflect.ValueOf(mem.Some(int64(i))))
		case map[string]mem.Figure:
			f.Set(reflect.ValueOf(map[string]mem.Figure{"growth": {Bytes: 4, What: "a \"step'"}}))
		case []string:
			f.Set(reflect.ValueOf([]string{"a b", "", "ü'"}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"k'": "v\"", "": ""}))
		default:
			t.Fatalf("the test does not know %T", f.Interface())
		}
	}
	want.Dir, want.File, want.From, want.Held, want.Namesakes = "", "", "", mem.Figure{}, 0 // not of the index
	plain := Run{ID: "plain", Dropped: math.MaxUint64}
	x := newIndex(filepath.Join(t.TempDir(), "index.sqlite"))
	defer x.close()
	must(t, x.putRuns(entry{want, "1", "2"}, entry{run: plain}))
	plain.Dropped = math.MaxInt64
	got, err := x.list(Filter{})
	must(t, err)
	if len(got) != 2 || !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[1], plain) {
		t.Errorf("got %+v\nwant %+v\n and %+v", got, want, plain)
	}
	again := want
	again.Tags, again.Findings = nil, mem.Optional{}
	must(t, x.putRuns(entry{again, "1", "2"}))
	if got, err = x.list(Filter{Ref: want.ID}); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], again) {
		t.Errorf("replaced: %v %+v\nwant %+v", err, got, again)
	}
	must(t, x.remove(want.ID))
	if states, err := x.states(nil); err != nil || len(states) != 1 {
		t.Errorf("after the removal %v %v", states, err)
	}
}
