package redact

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"hightide/internal/mem"
)

var secretive = Rules{Env: []string{"API_*", "TOKEN"}, Hosts: true, Paths: []string{"~/work", "/data/clients/"},
	Text: []string{`cust-\d+`}}

// info has each kind of secret where it begins, and where it is repeated.
var info = mem.RunInfo{ID: "1", Command: []string{"python", "/home/anna/work/train.py", "--url", "https://api.internal"},
	Cwd: "/home/anna/work", Env: map[string]string{"API_URL": "https://api.internal", "HOME": "/home/anna", "TOKEN": "t"},
	Host: mem.Host{Name: "gpu-7", Memory: mem.Some(5), GPUs: []mem.GPU{{Name: "A10 of gpu-7"}}},
	Git:  &mem.Git{Branch: "cust-17"}, StartWall: 7}

// TestTakenOut: each kind goes, wherever it stands, and nothing else of a frame changes.
func TestTakenOut(t *testing.T) {
	r, err := New(secretive, "/home/anna")
	if err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(info)
	var all strings.Builder
	for _, f := range []mem.Frame{info, mem.Process{ID: 1, Command: []string{"x", "/data/clients/cust-4/a.py"},
		Facts: map[string]string{"at gpu-7": "gpu-70"}},
		mem.StackDef{ID: 3, Locations: []mem.Location{{File: "/home/anna/work/train.py", Line: 9},
			{File: "/home/anna/worked/x.py"}}}} {
		clean, kept := r.Frame(f)
		if !kept || reflect.TypeOf(clean) != reflect.TypeOf(f) {
			t.Fatalf("%T became %T, %v", f, clean, kept)
		}
		text, _ := json.Marshal(clean)
		all.Write(text)
	}
	for _, secret := range []string{"api.internal", "anna/work/", "gpu-7\"", "at gpu-7", "cust-", "clients", `"t"`} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%q is still there: %s", secret, &all)
		}
	}
	for _, kept := range []string{`"HOME":"/home/anna"`, `"~/work/train.py"`, "/home/anna/worked/x.py", "gpu-70", `"line":9`,
		`"memory_bytes":5`, "A10 of HOST", `"start_wall_ns":7`, `"at HOST"`} {
		if !strings.Contains(all.String(), kept) {
			t.Errorf("%q is gone: %s", kept, &all)
		}
	}
	if after, _ := json.Marshal(info); string(after) != string(before) {
		t.Error("what was given has changed")
	}
	if got := r.String(); !strings.Contains(got, "env in 3 places") || !strings.Contains(got, "hosts in 3") {
		t.Errorf("said as %q", got)
	}
}

// TestLeftOut: what is of another program's format is left out and named, once; without rules everything stays.
func TestLeftOut(t *testing.T) {
	piece := mem.Snapshot{Name: "a.pickle", Piece: []byte("gpu-7")}
	r, err := New(secretive, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if f, kept := r.Frame(piece); kept {
			t.Errorf("kept %+v", f)
		}
	}
	if got := r.String(); got != "left out snapshot a.pickle" {
		t.Errorf("said as %q", got)
	}
	all, err := New(Rules{}, "/home/anna")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []mem.Frame{info, piece} {
		if got, kept := all.Frame(f); !kept || !reflect.DeepEqual(got, f) || all.String() != "" {
			t.Errorf("without rules %+v became %+v", f, got)
		}
	}
}

// TestEveryFrame: a frame of each type goes through, with nothing but its texts changed.
func TestEveryFrame(t *testing.T) {
	r, err := New(Rules{Text: []string{"secret"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []mem.Frame{mem.Samples{Series: 1, Times: []int64{1}, Values: []int64{2}},
		mem.Spans{{Process: 1, Name: "secret", Phase: "secret", RSSStart: mem.Some(3)}}, mem.Steps{{Number: 4}},
		mem.HeapUse{Process: 1, Sites: []mem.SiteUse{{Stack: 1, Live: 5}}}, mem.End{Reason: "secret"},
		mem.Holder{Name: "secret", Others: []mem.Location{{File: "secret"}}, Saved: mem.Some(6)}} {
		before, _ := json.Marshal(f)
		got, kept := r.Frame(f)
		after, _ := json.Marshal(got)
		want := strings.ReplaceAll(string(before), `secret"`, `***"`)
		want = strings.ReplaceAll(want, `"phase":"***"`, `"phase":"secret"`)
		if !kept || string(after) != want {
			t.Errorf("%s became %s", before, after)
		}
	}
	if _, err := New(Rules{Text: []string{"("}}, ""); err == nil || !strings.Contains(err.Error(), `"("`) {
		t.Errorf("a wrong expression: %v", err)
	}
}
