package server

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/mem"
	"hightide/internal/plan"
)

// schemas names the types of the API's description. Two packages may have a type of one name: the second one is then
// called with its package's name before it, as is a result.
func schemas() huma.Registry {
	taken := map[string]reflect.Type{"Cell": nil} // that of a table: see completed
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if of, ok := taken[name]; ok && of != t || name == "Result" {
			packaged := path.Base(t.PkgPath())
			name = strings.ToUpper(packaged[:min(1, len(packaged))]) + packaged[min(1, len(packaged)):] + name
		}
		taken[name] = t
		return name
	})
	registry.RegisterTypeAlias(reflect.TypeFor[mem.Optional](), reflect.TypeFor[*int64]())
	registry.RegisterTypeAlias(reflect.TypeFor[mem.Label](), reflect.TypeFor[labelSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[mem.Unit](), reflect.TypeFor[unitSchema]())
	return registry
}

type (
	labelSchema string // of mem.Label
	unitSchema  string // of mem.Unit
)

func (labelSchema) Schema(r huma.Registry) *huma.Schema {
	return words(r, "Label", "Where a figure comes from; empty: there is none.",
		mem.Measured, mem.Sampled, mem.Imagined, mem.Replayed, mem.Estimated, plan.Exact,
		plan.Computed, "")
}

func (unitSchema) Schema(r huma.Registry) *huma.Schema {
	return words(r, "Unit", "What a number counts; milli is thousandths of one whole; empty: it is a text.",
		mem.UnitBytes, mem.UnitNanoseconds, mem.UnitCount, mem.UnitMilli, mem.UnitCelsius, mem.UnitMilliwatts,
		mem.UnitEvents, "")
}

// words describes a type that has a few values, under a name of its own.
func words[T ~string](r huma.Registry, name, about string, values ...T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: about}
	for _, value := range values {
		s.Enum = append(s.Enum, string(value))
	}
	r.Map()[name] = s
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// A list may be empty and is not null, but where the tag of its field says so: the library takes each for null.
func init() { huma.DefaultArrayNullable = false }

// completed says of answers what Go's types do not: what may be absent is never null, and a cell of a table is a text,
// an integer or null.
func completed(all map[string]*huma.Schema) {
	for name, s := range all {
		if strings.HasSuffix(name, "InputBody") { // of a request, which may have null for absent
			continue
		}
		for field, of := range s.Properties {
			if !slices.Contains(s.Required, field) {
				of.Nullable = false
			}
		}
	}
	cell := &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}, {Type: "null"}}}
	all["Cell"] = cell
	all["Table"].Properties["rows"].Items.Items = &huma.Schema{Ref: "#/components/schemas/Cell"}
}
