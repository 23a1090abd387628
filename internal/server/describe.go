package server

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
	"hightide/internal/matrix"
	"hightide/internal/options"
	"hightide/internal/plan"
	"hightide/internal/replay"
	"hightide/internal/report"
)

// about is what the description of the API begins with.
const about = "What hightide ui serves: runs, live while they are recorded, snapshots of allocators, what other " +
	"settings would have done, and jobs. " +
	"Bytes and nanoseconds are integers. Times are in ns since the run began, unless they are said to be since 1970. " +
	"What was not observed is absent, never 0. " +
	"Streams of server-sent events are described in docs/formats/api.md."

// groups are what the API has, by the first part of a path after /api/v1, in the order in which people read it.
var groups = []*huma.Tag{
	{Name: "runs", Description: "What was recorded: curves, spans, events, findings, output and files."},
	{Name: "snapshots",
		Description: "Traces of allocators, block by block, and what other settings would have made of them."},
	{Name: "jobs", Description: "What takes longer than a request: imagined GPUs, searches, matrices."},
	{Name: "matrices", Description: "Programs measured in every combination of their settings."},
	{Name: "projects", Description: "Whose runs there are, and how runs are sent to a team's server."},
	{Name: "fleet", Description: "What the machines of a team hold."},
	{Name: "people", Description: "What a team's store has of a person."},
	{Name: "diff", Description: "Why two peaks differ."},
	{Name: "server", Description: "What this server is, and what it knows."},
}

// describe completes what huma makes of the handlers' types, for readers and for programs that write clients of it:
// each operation has a name of its own and a group, and the token is told of.
func describe(d *huma.OpenAPI) {
	d.Info.Description = about
	d.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	d.Tags = groups
	results := resultsOf(d.Components.Schemas)
	completed(d.Components.Schemas.Map())
	d.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer",
			Description: "What programs send. It is in the file that hightide ui names as it starts."},
		"session": {Type: "apiKey", In: "cookie", Name: "hightide-session-7333",
			Description: "What a browser has once POST /api/v1/session took a code. The name ends with the port."},
		"page": {Type: "apiKey", In: "header", Name: pageHeader,
			Description: "What POST /api/v1/session answered: a session is worth nothing without it."},
	}
	describeJobs(d.Components.Schemas.Map())
	d.Components.Schemas.Map()["PlanOptions"] = planSchema(d.Components.Schemas)
	d.Paths["/api/v1/plan"].Post.RequestBody.Content["application/json"].Schema = &huma.Schema{Ref: "#/components/schemas/PlanOptions"}
	for _, job := range []string{"Job", "JobEnd"} {
		d.Components.Schemas.Map()[job].Properties["result"].OneOf = results
	}
	d.Security = []map[string][]string{{"token": {}}, {"session": {}, "page": {}}}
	for path, item := range d.Paths {
		for method, o := range map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete, http.MethodPut: item.Put} {
			if o != nil {
				o.OperationID, o.Tags = operationName(method, path), []string{groupOf(path)}
			}
		}
	}
}

// resultsOf adds what jobs end with, which commands print with --json, and what run, bench and plan print.
func resultsOf(all huma.Registry) (results []*huma.Schema) {
	all.Schema(reflect.TypeFor[engine.Summary](), true, "")
	for _, t := range []reflect.Type{reflect.TypeFor[imagineOutcome](), reflect.TypeFor[fitOutcome](),
		reflect.TypeFor[tuneOutcome](), reflect.TypeFor[benchSummary](), reflect.TypeFor[replay.Result](),
		reflect.TypeFor[report.Report]()} {
		results = append(results, all.Schema(t, true, ""))
	}
	all.Schema(reflect.TypeFor[matrix.Compared](), true, "")
	all.Schema(reflect.TypeFor[plan.Result](), true, "")
	all.Map()["ImagineOutcome"].Required = all.Map()["Summary"].Required // a run may have no verdict
	return results
}

// describeJobs adds what the options of each kind of job are. They are read, and refused, by package options: what
// stands here is for readers, so it is no part of the schema that requests are held against.
func describeJobs(all map[string]*huma.Schema) {
	var kinds []any
	for _, kind := range jobKinds {
		name := strings.ToUpper(kind.name[:1]) + kind.name[1:] + "Options"
		all[name] = optionsSchema(kind)
		kinds = append(kinds, map[string]string{"$ref": "#/components/schemas/" + name})
	}
	all["NewJobInputBody"].Properties["options"].Extensions = map[string]any{"oneOf": kinds}
}

func optionsSchema(kind jobKind) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{},
		Description: "Options of the kind " + kind.name + ": " + kind.short + "."}
	for _, s := range kind.takes.Of(options.HTTP) {
		one := &huma.Schema{Type: s.Kind(), Description: s.About()}
		if s.Least > 0 && one.Type == huma.TypeInteger {
			least := float64(s.Least)
			one.Minimum = &least
		}
		text := &huma.Schema{Type: huma.TypeString, Enum: anyOf(s.Among)}
		switch one.Type {
		case huma.TypeArray:
			one.Items = text
		case huma.TypeObject:
			one.AdditionalProperties = text
		case huma.TypeString:
			one.Enum = text.Enum
		}
		schema.Properties[s.Key()] = one
	}
	return schema
}

// anyOf are words of an enumeration.
func anyOf(all []string) (words []any) {
	for _, word := range all {
		words = append(words, word)
	}
	return words
}

// operationName is how a client calls an operation: get-runs, get-run, get-run-series, get-run-artifact, delete-run.
func operationName(method, path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/api/v1/"), "/")
	name := []string{strings.ToLower(method)}
	for i, part := range parts {
		switch {
		case strings.HasPrefix(part, "{"):
		case i+1 < len(parts) && strings.HasPrefix(parts[i+1], "{"):
			name = append(name, one(part))
		default:
			name = append(name, strings.ReplaceAll(part, ".", "-"))
		}
	}
	return strings.Join(name, "-")
}

// one is the singular of what a path lists.
func one(many string) string {
	switch many {
	case "matrices":
		return "matrix"
	case "people":
		return "person"
	}
	return strings.TrimSuffix(many, "s")
}

// groupOf is the group of a path.
func groupOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	for _, g := range groups {
		if g.Name == first {
			return first
		}
	}
	if first == "live" || first == "sparks" {
		return "runs"
	}
	return "server"
}
