// Package redact takes out of a recording what a project does not want to leave a machine.
//
//	wire.Reader ──▶ Redaction.Frame ──▶ wire.Writer        counts say what was replaced, and what was left out
package redact

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Rules say what is taken out. The zero value takes out nothing.
type Rules struct {
	Env   []string `toml:"env" json:"env,omitempty" doc:"Names of variables of the environment whose values are taken out; * stands for any letters."`
	Hosts bool     `toml:"hosts" json:"hosts,omitempty" doc:"Whether names of machines are."`
	Paths []string `toml:"paths" json:"paths,omitempty" doc:"Folders whose paths are; ~ is the home of who sends."`
	Text  []string `toml:"text" json:"text,omitempty" doc:"Regular expressions; what they match is."`
}

// With are the rules of both.
func (r Rules) With(other Rules) Rules {
	return Rules{slices.Concat(r.Env, other.Env), r.Hosts || other.Hosts, slices.Concat(r.Paths, other.Paths),
		slices.Concat(r.Text, other.Text)}
}

// None says whether nothing is taken out.
func (r Rules) None() bool { return len(r.Env)+len(r.Paths)+len(r.Text) == 0 && !r.Hosts }

// What stands where something was taken out.
const (
	gone     = "***"
	someHost = "HOST"
	somePath = "PATH"
)

// shortest is how long a value has to be to be looked for in other texts too: a shorter one is part of many words.
const shortest = 6

// Redaction goes through one recording. Counts says how often each kind was replaced.
type Redaction struct {
	Counts map[string]int
	Left   []string // what was left out, as nothing can be taken out of it

	rules    Rules
	env      []*regexp.Regexp
	replaced []replaced
}

// replaced is a pattern of text, and what stands in its place.
type replaced struct {
	kind string
	what *regexp.Regexp
	by   string
}

// New makes one. home is the folder that ~ stands for.
func New(rules Rules, home string) (*Redaction, error) {
	r := &Redaction{Counts: map[string]int{}, rules: rules}
	for _, name := range rules.Env {
		r.env = append(r.env, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*")+"$"))
	}
	for _, folder := range rules.Paths {
		by := somePath
		if rest, ok := strings.CutPrefix(folder, "~"); ok {
			if folder, by = home+rest, "~"+rest; home == "" {
				continue
			}
		}
		r.add("paths", regexp.QuoteMeta(strings.TrimRight(folder, "/"))+`(?:$|\b)`, by)
	}
	for _, text := range rules.Text {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("the rule text = %q: %w", text, err)
		}
		r.replaced = append(r.replaced, replaced{"text", pattern, gone})
	}
	return r, nil
}

func (r *Redaction) add(kind, pattern, by string) {
	r.replaced = append(r.replaced, replaced{kind, regexp.MustCompile(pattern), strings.ReplaceAll(by, "$", "$$")})
}

// Frame is a frame without what the rules take out; false: it is left out, as it holds bytes of a format of another
// program.
func (r *Redaction) Frame(f mem.Frame) (mem.Frame, bool) {
	if r.rules.None() {
		return f, true
	}
	if info, is := f.(mem.RunInfo); is {
		f = r.runInfo(info)
	}
	if name, opaque := opaqueName(f); opaque {
		if !slices.Contains(r.Left, name) {
			r.Left = append(r.Left, name)
		}
		return nil, false
	}
	v := reflect.New(reflect.TypeOf(f)).Elem()
	v.Set(reflect.ValueOf(f))
	return r.clean(v).Interface().(mem.Frame), true
}

// opaqueName is what people call a frame into which nothing here can look.
func opaqueName(f mem.Frame) (name string, opaque bool) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Struct {
		return "", false
	}
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Slice && v.Field(i).Type().Elem().Kind() == reflect.Uint8 {
			opaque = true
		}
	}
	name = strings.ToLower(v.Type().Name())
	if called := v.FieldByName("Name"); opaque && called.IsValid() && called.Kind() == reflect.String {
		name += " " + called.String()
	}
	return name, opaque
}

// runInfo takes out values of the environment, and has them and the machine's name looked for in every text that
// follows.
func (r *Redaction) runInfo(info mem.RunInfo) mem.RunInfo {
	info.Env = maps.Clone(info.Env)
	for name, value := range info.Env {
		if !slices.ContainsFunc(r.env, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			continue
		}
		if info.Env[name] = gone; value != gone {
			r.Counts["env"]++
		}
		if len(value) >= shortest {
			r.addOnce("env", regexp.QuoteMeta(value), gone)
		}
	}
	if name := info.Host.Name; r.rules.Hosts && name != "" {
		r.addOnce("hosts", `\b`+regexp.QuoteMeta(name)+`\b`, someHost)
	}
	return info
}

func (r *Redaction) addOnce(kind, pattern, by string) {
	if !slices.ContainsFunc(r.replaced, func(p replaced) bool { return p.what.String() == pattern }) {
		r.add(kind, pattern, by)
	}
}

// clean is a value without what is taken out of its texts. Words of hightide's own, as phases, have types of their own
// and stay.
func (r *Redaction) clean(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			out.SetString(r.Text(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.clean(v.Field(i)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(r.clean(v.Elem()))
		}
	case reflect.Slice:
		if v.Len() > 0 && holdsText(v.Type().Elem()) {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(r.clean(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, key := range v.MapKeys() {
				out.SetMapIndex(r.clean(key), r.clean(v.MapIndex(key)))
			}
		}
	}
	return out
}

// holdsText says whether a value of a type can hold a text.
func holdsText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	}
	return false
}

// Text is a text without what is taken out.
func (r *Redaction) Text(text string) string {
	for _, p := range r.replaced {
		if n := len(p.what.FindAllStringIndex(text, -1)); n > 0 {
			r.Counts[p.kind] += n
			text = p.what.ReplaceAllString(text, p.by)
		}
	}
	return text
}

// String says what was taken out, and left out.
func (r *Redaction) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
		parts = append(parts, fmt.Sprintf("%s in %d places", kind, r.Counts[kind]))
	}
	if len(r.Left) > 0 {
		parts = append(parts, "left out "+strings.Join(r.Left, ", "))
	}
	return strings.Join(parts, "; ")
}
