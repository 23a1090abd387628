package server

import (
	"encoding/json"
	"strings"
	"testing"

	"hightide/internal/engine"
)

// TestDescription: programs that write clients of the API find a name for each operation, a group, and that there may
// be a token; readers find what each parameter and each field of an answer is.
func TestDescription(t *testing.T) {
	var text strings.Builder
	if err := Describe(&engine.Engine{DataDir: t.TempDir()}, &text); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]struct {
			OperationID, Summary string
			Tags                 []string
			Parameters           []struct {
				Name, In, Description string
				Schema                struct{ Type any }
			}
		}
		Tags       []struct{ Name string }
		Security   []map[string][]string
		Components struct {
			SecuritySchemes map[string]any
			Schemas         map[string]schemaText
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Security) != 2 || d.Components.SecuritySchemes["token"] == nil {
		t.Errorf("the token: %v, %v", d.Security, d.Components)
	}
	groups, names := map[string]bool{}, map[string]string{}
	for _, tag := range d.Tags {
		groups[tag.Name] = true
	}
	for path, operations := range d.Paths {
		for method, o := range operations {
			if other := names[o.OperationID]; o.OperationID == "" || other != "" {
				t.Errorf("%s %s is called %q, as %s", method, path, o.OperationID, other)
			}
			names[o.OperationID] = method + " " + path
			if len(o.Tags) != 1 || !groups[o.Tags[0]] || o.Summary == "" {
				t.Errorf("%s is of %v: %s", names[o.OperationID], o.Tags, o.Summary)
			}
			for _, p := range o.Parameters {
				if _, one := p.Schema.Type.(string); p.Description == "" || !one || p.Name == "Accept" {
					t.Errorf("%s: %s of the %s is %v: %s", names[o.OperationID], p.Name, p.In, p.Schema.Type, p.Description)
				}
			}
		}
	}
	fields := 0
	for name, schema := range d.Components.Schemas {
		fields += schema.check(t, name)
	}
	if fields < 900 {
		t.Errorf("%d fields of answers were looked at", fields)
	}
	for name, want := range map[string]string{"get-run-series": "get /api/v1/runs/{id}/series",
		"get-matrix": "get /api/v1/matrices/{name}", "get-run-artifact": "get /api/v1/runs/{id}/artifacts/{name}"} {
		if names[name] != want {
			t.Errorf("%s is %q", name, names[name])
		}
	}
}

// schemaText is what a schema says of its fields.
type schemaText struct {
	Description string
	Properties  map[string]schemaText
	Items       *schemaText
}

// check finds fields of which a reader is not told what they are, and counts all of them.
func (s *schemaText) check(t *testing.T, name string) (fields int) {
	for field, of := range s.Properties {
		path := name + "." + field
		if fields++; of.Description == "" {
			t.Errorf("%s is not described: give its Go field a sentence in a doc tag, with its unit", path)
		}
		fields += of.check(t, path)
	}
	if s.Items != nil {
		fields += s.Items.check(t, name+"[]")
	}
	return fields
}
