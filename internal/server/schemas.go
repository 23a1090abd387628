package server

import (
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// schemas names the types of the API's description. Two packages may have a type of one name: the second one is then
// called with its package's name before it.
func schemas() huma.Registry {
	taken := map[string]reflect.Type{}
	return huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if of, ok := taken[name]; ok && of != t {
			packaged := path.Base(t.PkgPath())
			name = strings.ToUpper(packaged[:min(1, len(packaged))]) + packaged[min(1, len(packaged)):] + name
		}
		taken[name] = t
		return name
	})
}
