package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hightide/internal/bench"
	"hightide/internal/engine"
	"hightide/internal/fit"
	"hightide/internal/options"
	"hightide/internal/plan"
	"hightide/internal/tune"

	"github.com/spf13/pflag"
)

// uses are the use cases whose settings have several doors.
var uses = []use{
	{name: "imagine", List: new(engine.ImagineOptions).Settings()},
	{name: "fit", List: new(fit.Options).Settings()},
	{name: "bench", List: new(bench.Options).Settings()},
	{name: "run", List: new(engine.RunOptions).Settings()},
	{name: "plan", List: new(plan.Options).Settings()},
	{name: "tune", List: new(tune.Options).Settings()},
}

// ofCommands are flags that say what a command shows or leaves, and set nothing of its use case.
var ofCommands = []string{"json", "quiet", "open", "help", "out", // an earlier name of output
	"live", "ui", "push", "server", "project", // run
	"serve", "imagined", // fit: the protocol of the Python package
	"dry-run", "resume", "html", "markdown", "reports", "csv", "parquet", "junit", "github", "baseline", "fail-over", "strict", "seed-csv",
	"seed-results"} // bench: what is made of the result

// TestDoors: each setting is a flag of its command, and each flag is a setting; a door that leaves one out says why.
// What is described or written for the other doors is what the lists say.
func TestDoors(t *testing.T) {
	root := (&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root()
	for _, use := range uses {
		c, _, err := root.Find([]string{use.name})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range use.List {
			if has := c.Flags().Lookup(s.Name) != nil; has != (s.Not&options.Command == 0) {
				t.Errorf("%s: that --%s is a flag is %v", use.name, s.Name, has)
			}
			if s.Not != 0 && s.Why == "" {
				t.Errorf("%s: %s does not say why a door leaves it out", use.name, s.Name)
			}
			if s.Not&options.Form == 0 && s.Label == "" {
				t.Errorf("%s: %s has no label in the form", use.name, s.Name)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if use.Find(f.Name) == nil && !slices.Contains(ofCommands, f.Name) && c.InheritedFlags().Lookup(f.Name) == nil {
				t.Errorf("%s --%s is a setting of no list: other doors do not know it", use.name, f.Name)
			}
		})
	}
	described(t)
	written(t, "../../web/src/app/settings.json", formFields([]use{uses[0], uses[1], uses[2], uses[4], uses[5]}))
	written(t, "../../agent/python/src/hightide/_settings.py", keywords([]use{uses[0], uses[1], uses[3]}))
}

// update writes the files that are made of the lists.
var update = flag.Bool("update", false, "write the generated files anew")

// written holds a generated file against the lists.
func written(t *testing.T, path string, want []byte) {
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the settings say, %v: go test ./cmd/hightide -run Doors -update writes it", path, err)
	}
}

// described holds the description of the API, and its page, against the lists.
func described(t *testing.T) {
	text, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/formats/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range []use{uses[0], uses[1], uses[2], uses[4], uses[5]} {
		schema := api.Components.Schemas[strings.ToUpper(use.name[:1])+use.name[1:]+"Options"].Properties
		row := regexp.MustCompile("(?m)^(\\| `" + use.name + "` .*$|\\*\\*`POST /" + use.name + "`(.+\n)+)").Find(page)
		taken := use.Of(options.HTTP)
		for _, s := range taken {
			if schema[s.Key()].Description != s.About() {
				t.Errorf("docs/openapi.json: %s of %s: %q; scripts/openapi.py writes it", s.Key(), use.name,
					schema[s.Key()].Description)
			}
			if !strings.Contains(string(row), "`"+s.Key()+"`") {
				t.Errorf("docs/formats/api.md does not name %s of %s", s.Key(), use.name)
			}
		}
		for _, sent := range []string{"config", "files", "name"} { // a model that is sent, in place of one that is named
			if use.name == "plan" {
				delete(schema, sent)
			}
		}
		if len(schema) != len(taken) {
			t.Errorf("docs/openapi.json has %d settings of %s, want %d", len(schema), use.name, len(taken))
		}
	}
}
