// Package options says once what a user can set of a use case, for all doors to it.
//
//	engine.ImagineOptions.Settings() ──▶ List ──▶ flags of the command            (cmd/hightide/flags.go)
//	fit.Options.Settings()                   ├──▶ options of a job, with OpenAPI  (internal/server/settings.go)
//	bench.Options.Settings()                 ├──▶ input of a tool, with its schema (internal/mcp/settings.go)
//	engine.RunOptions.Settings()             └──▶ fields of the web form, Python keywords (cmd/hightide/doors_test.go)
//
// A Setting is bound to the field that it sets, so that a list is made of a value of options, and reading one changes
// that value. To add a setting: one entry in the list of its use case. It is then a flag, an option of a job, a
// parameter of a tool, a field of the form and a keyword, or it says why a door does not take it.
package options

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Door is a way to a use case; several are a sum.
type Door int

// The doors.
const (
	Command Door = 1 << iota // flags
	HTTP                     // options of a job
	MCP                      // parameters of a tool
	Form                     // of the web page
	Python                   // keywords

	All         = Command | HTTP | MCP | Form | Python
	CommandOnly = All &^ Command // as Setting.Not
)

// Setting is one thing that a user can set.
type Setting struct {
	Name string // of the flag, as alloc-conf; JSON and Python call it alloc_conf
	Help string // as a flag has it: the name of its value stands in backquotes
	To   any    // *string, *bool, *int, *uint64, *float64, *mem.Bytes, *time.Duration, *[]string, or a Value

	More string // help besides, for doors where nobody has the page of the command

	Default string             // in place of a zero value, as Set takes it; what is not said here stands in Help
	Among   []string           // the words that a text may be, or a list should have; nil: any
	Least   int64              // of a number that is given: count, or ns
	Check   func(string) error // of a text
	Once    string             // of a text that means one: what to do instead of giving it twice
	Commas  bool               // a list may be given as one text, its parts separated by commas

	Label   string // of the form's field
	Hint    string // below it, in place of Help: a sentence
	Example string // of a value
	First   bool   // among the form's fields that are seen without a click
	Part    string // of the list, as model: what a command says itself
	Keyword string // of the Python package, where that has had another name since it was made
	Older   string // an earlier name in JSON
	Short   string // the flag's letter

	Required bool // where a door has it at all

	Not Door   // doors that do not take it
	Why string // they do not
}

// Value is what a Setting of a kind of its own sets.
type Value interface {
	Set(string) error
	String() string // "" where nothing is set
}

// Many is a Value that may be set several times.
type Many interface{ SetMany() }

// Kind is what a value is in JSON: string, boolean, integer, number, array (of strings) or object (of strings).
func (s *Setting) Kind() string {
	switch s.To.(type) {
	case *bool, Off:
		return "boolean"
	case *int, *uint64:
		return "integer"
	case *float64:
		return "number"
	case Tags:
		return "object"
	case *[]string, Many:
		return "array"
	}
	return "string"
}

// Key is the setting's name in JSON.
func (s *Setting) Key() string { return strings.ReplaceAll(s.Name, "-", "_") }

// flagName is one of ours in a text; those of a whole command stay as they are.
var flagName = regexp.MustCompile(`\bhightide [a-z]+ [^;,()]*|--([a-z][a-z-]*)`)

// About is the help for doors that have no flags.
func (s *Setting) About() string {
	text := strings.ReplaceAll(s.Help, "`", "")
	text = flagName.ReplaceAllStringFunc(text, func(found string) string {
		if name, is := strings.CutPrefix(found, "--"); is {
			return strings.ReplaceAll(name, "-", "_")
		}
		return found
	})
	if s.More != "" {
		text += "; " + s.More
	}
	if usual := s.usual(); usual != "" {
		text += " (default " + usual + ")"
	}
	return text
}

// usual is what a setting is that nobody sets; "": that is said elsewhere, or plain.
func (s *Setting) usual() string {
	if _, off := s.To.(Off); off {
		return "true"
	}
	return s.Default
}

// List is what can be set of one use case, in the order in which a form shows it.
type List []Setting

// Of are the settings that a door takes.
func (l List) Of(door Door) List {
	return slices.DeleteFunc(slices.Clone(l), func(s Setting) bool { return s.Not&door != 0 })
}

// Without takes doors from all settings of a list.
func (l List) Without(doors Door, why string) List {
	l = slices.Clone(l)
	for i := range l {
		if l[i].Not |= doors; l[i].Why == "" {
			l[i].Why = why
		}
	}
	return l
}

// Find is a setting by the name of its flag; nil: there is none.
func (l List) Find(name string) *Setting {
	for i := range l {
		if l[i].Name == name {
			return &l[i]
		}
	}
	return nil
}

// Fill sets what is zero to its default.
func (l List) Fill() {
	for i := range l {
		if s := &l[i]; s.Default != "" && s.unset() {
			if err := s.Set(s.Default); err != nil {
				panic(err) // a mistake in a list: each test that makes one finds it
			}
		}
	}
}

// unset says whether it has its zero value. Of a text "0" is a value, as of steps: all of them.
func (s *Setting) unset() bool {
	if text, ok := s.To.(*string); ok {
		return *text == ""
	}
	return slices.Contains([]string{"", "0", "false"}, s.String())
}

// Verify refuses words that a setting does not take, in options that no door has read.
func (l List) Verify() error {
	for i := range l {
		s := &l[i]
		if text, ok := s.To.(*string); ok && *text != s.Default {
			if err := s.verify(*text); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify says what is wrong with a text.
func (s *Setting) verify(text string) error {
	if s.Among != nil && !slices.Contains(s.Among, text) {
		return fail.Choice("--"+s.Name, text, s.Among)
	}
	if s.Check != nil {
		return s.Check(text)
	}
	return nil
}

// String is the value as Set takes it; of what can be given several times "".
func (s *Setting) String() string {
	switch to := s.To.(type) {
	case *string:
		return *to
	case *bool:
		return strconv.FormatBool(*to)
	case *int:
		return strconv.Itoa(*to)
	case *uint64:
		return strconv.FormatUint(*to, 10)
	case *float64:
		return strconv.FormatFloat(*to, 'g', -1, 64)
	case *time.Duration:
		if *to != 0 {
			return to.String()
		}
	case Value:
		return to.String()
	}
	return ""
}

// Set reads a value. Errors that package fail made say all; others are to be said of the setting.
func (s *Setting) Set(text string) (err error) {
	switch to := s.To.(type) {
	case *string:
		if s.Once != "" && *to != "" && *to != text {
			return fail.Usage(s.Once, "--%s is given twice: %s and %s", s.Name, *to, text)
		}
		if err = s.verify(text); err == nil {
			*to = text
		}
	case *bool:
		*to, err = strconv.ParseBool(text)
	case *int:
		var n int64
		if n, err = strconv.ParseInt(text, 0, strconv.IntSize); err == nil && s.Least > 0 && n < s.Least {
			return fail.Usage(fmt.Sprintf("it takes a whole number of %d or more", s.Least), "--%s %d is less than %d", s.Name,
				n, s.Least)
		}
		*to = int(n)
	case *uint64:
		*to, err = strconv.ParseUint(text, 0, 64)
	case *float64:
		*to, err = strconv.ParseFloat(text, 64)
	case *mem.Bytes:
		*to, err = s.size(text)
	case *time.Duration:
		*to, err = s.span(text)
	case *[]string:
		if s.Commas {
			*to = append(*to, strings.Split(text, ",")...)
		} else {
			*to = append(*to, text)
		}
	case Value:
		err = to.Set(text)
	default:
		panic(fmt.Sprintf("setting %s is of a %T", s.Name, s.To))
	}
	return err
}

// size is a number of bytes as people write it.
func (s *Setting) size(text string) (mem.Bytes, error) {
	bytes, err := mem.ParseBytes(text)
	if err == nil && bytes < 1 {
		err = fmt.Errorf("%q is not a size", text)
	}
	if err != nil {
		return 0, fail.Usage("write it as --"+s.Name+" "+s.Example, "%w", err)
	}
	return bytes, nil
}

// span is a time with its unit.
func (s *Setting) span(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || text == "0" || strings.HasPrefix(text, "+"):
		return 0, fail.Usage("write it as 90s, 100ms or 2h", "%q is not a time", text)
	case d < time.Duration(s.Least):
		return 0, fail.Usage("write it as 90s, 100ms or 2h", "%s is too short: %v is the least", text, time.Duration(s.Least))
	}
	return d, nil
}

// Tags is a Value of key=value, and where bare keys will do, of key.
type Tags struct {
	To   *map[string]string
	Bare bool
}

// SetMany implements Many.
func (t Tags) SetMany() {}

func (t Tags) String() string { return "" }

// Set implements Value.
func (t Tags) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if strings.ContainsFunc(text, unicode.IsControl) {
		return fail.Usage("write it as model=bert", "a tag has no line breaks or other control characters: %q", text)
	}
	if key == "" || !ok && !t.Bare {
		return fail.Usage("write it as model=bert", "tag %q is not of the form key=value", text)
	}
	if *t.To == nil {
		*t.To = map[string]string{}
	}
	(*t.To)[key] = value
	return nil
}

// RunName is what is wrong with a name for a run, by which other commands find it.
func RunName(name string) error {
	const hint = "choose another name"
	switch {
	case name == "last":
		return fail.Usage(hint, "last means the newest run, whatever it is called")
	case name == "" || strings.TrimSpace(name) != name:
		return fail.Usage(hint, "a name is not empty, and neither begins nor ends with a space: %q", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fail.Usage(hint, "a name has no line breaks or other control characters: %q", name)
	}
	return nil
}

// Read sets what a JSON object has, after the defaults. What is empty was not set: null, "", and 0 where a setting
// takes none. A name that is not known is refused, as a setting that is not heard of would not be missed.
func (l List) Read(door Door, text []byte) error {
	l.Fill()
	var given map[string]json.RawMessage
	if len(text) > 0 {
		if err := json.Unmarshal(text, &given); err != nil {
			return fail.Usage("an object, as {\"gpu\": \"a10\"}", "the options are no JSON object: %s",
				strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	known := l.Of(door)
	for _, key := range sortedKeys(given) {
		at := slices.IndexFunc(known, func(s Setting) bool { return s.Key() == key || s.Older == key && key != "" })
		if at < 0 {
			return l.unknown(door, key)
		}
		if err := known[at].readJSON(given[key]); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(of map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// unknown says that a door does not take a name, and why, where another one does.
func (l List) unknown(door Door, key string) error {
	var names []string
	for i := range l {
		if l[i].Key() == key {
			return fail.Usage("leave it out", "options: %s is of another door: %s", key, l[i].Why)
		}
		if l[i].Not&door == 0 {
			names = append(names, l[i].Key())
		}
	}
	return fail.Choice("options:", key, names)
}

// readJSON sets a value of JSON.
func (s *Setting) readJSON(raw json.RawMessage) (err error) {
	var all []string
	switch s.Kind() {
	case "boolean":
		var v bool
		if err = json.Unmarshal(raw, &v); err == nil && string(raw) != "null" {
			all = []string{strconv.FormatBool(v)}
		}
	case "integer":
		var n int64
		if err = json.Unmarshal(raw, &n); n != 0 || s.Least < 1 && string(raw) != "null" {
			all = []string{strconv.FormatInt(n, 10)}
		}
	case "number":
		var n float64
		err = json.Unmarshal(raw, &n)
		all = []string{strconv.FormatFloat(n, 'g', -1, 64)}
	case "array":
		if to, ok := s.To.(*[]string); ok && !s.Commas {
			return s.wrong(json.Unmarshal(raw, to)) // also a text that is empty, as a word of a command is
		}
		err = json.Unmarshal(raw, &all)
	case "object":
		pairs := map[string]string{}
		err = json.Unmarshal(raw, &pairs)
		for key, value := range pairs {
			all = append(all, key+"="+value)
		}
	default:
		var text string
		if err = json.Unmarshal(raw, &text); text != "" {
			all = []string{text}
		}
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = s.Set(all[i])
	}
	return s.wrong(err)
}

// Off is a Value that is true where a switch that turns something off is false. Nothing that is on turns it off again:
// of several places that say so, one is enough.
type Off struct{ To *bool }

func (o Off) String() string { return strconv.FormatBool(!*o.To) }

// Set implements Value.
func (o Off) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*o.To = *o.To || !on && err == nil
	return err
}

// Catalogue is the setting of files with more GPUs.
func Catalogue(to *[]string) Setting {
	return Setting{Name: "catalogue", Help: "a `file` with more GPUs, TOML or CSV; may be given several times", To: to,
		Not: HTTP | MCP | Form, Why: "it names a file of this machine"}
}

// Words is the setting of a command, a word each.
func Words(to *[]string, help, example string) Setting {
	return Setting{Name: "command", Help: help, To: to, More: "a list, a word each", Label: "Command",
		Example: example, First: true,
		Not: Command | Python, Why: "it is what stands after the flags, or the function"}
}

// wrong says what is wrong with a value of JSON, in the words of people.
func (s *Setting) wrong(err error) error {
	var kind *json.UnmarshalTypeError
	var said *fail.Error
	switch {
	case err == nil || errors.As(err, &said) && strings.Contains(" "+said.Error(), " --"+s.Name+" "):
		return err
	case said != nil:
		return fail.Usage(said.Hint, "%s: %w", s.Key(), said.Err)
	case !errors.As(err, &kind):
		return fail.Usage("hightide about api lists them", "options: %s: %w", s.Key(), err)
	}
	takes := map[string]string{"integer": "a whole number", "number": "a number", "boolean": "true or false",
		"array": "a list of words", "object": "names with their texts", "string": "a text"}[s.Kind()]
	return fail.Usage("hightide about api lists them", "options: %s is a %s, not %s", s.Key(), kind.Value, takes)
}
