package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one question that an assistant can ask. In and Out become the schemas of its input and of its answer.
type tool[In, Out any] struct {
	name, title, about string

	starts bool // programs, and recordings of them; else it only reads

	takes options.List // its input, where In is the text of it; nil: In says it

	// answer is the typed answer and the text that a person reads.
	answer func(context.Context, *door, In, event.Sink) (Out, string, error)
}

// add puts the tool into a server.
func (t tool[In, Out]) add(server *sdk.Server, d *door) {
	anything := t.starts // what a command does is its own affair
	names, input := ofSettings(t.takes)
	if t.takes == nil {
		names, input = parametersOf[In](), schema[In]()
	}
	d.inputs[t.name] = names
	sdk.AddTool(server, &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: input, OutputSchema: schema[Out](),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: !t.starts, DestructiveHint: &anything, OpenWorldHint: &anything,
			IdempotentHint: !t.starts},
	}, func(ctx context.Context, request *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		out, text, err := t.answer(ctx, d, in, progress(ctx, request))
		if err != nil {
			return nil, out, oneLine(err, names)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, out, nil
	})
}

// schema is that of a type. It panics for a type that has none, which is a mistake in this package.
func schema[T any]() *jsonschema.Schema {
	absent := &jsonschema.Schema{Types: []string{"null", "integer"}}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[mem.Optional](): absent}})
	if err != nil {
		panic(err)
	}
	return s
}

// oneLine is an error as an assistant reads it: what happened, and what to do about it, in the names of a tool's
// parameters.
func oneLine(err error, names parameters) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("cancelled")
	}
	text, hint := names.inWords(err)
	said := strings.Join(strings.Fields(report.Clean(text)), " ")
	if hint != "" {
		said += " (" + hint + ")"
	}
	return errors.New(said)
}

// plain is how tables are written: no colours, and as wide as what stands in them. An assistant reads no window, and
// settings that are cut cannot be set.
var plain = report.TextOptions{Width: 1 << 16}

// mayStart refuses to run what an assistant names where that is not allowed.
func (d *door) mayStart(what string) error {
	if d.AllowExec {
		return nil
	}
	return fail.Usage("the user allows it by starting the server as: hightide mcp --allow-exec", "%s is not allowed", what)
}

// oneOf refuses a word that is none of the choices; "" is the default.
func oneOf(field, word string, choices []string) error {
	for _, choice := range choices {
		if word == "" || word == choice {
			return nil
		}
	}
	return fail.Choice(field, word, choices)
}

// atMost is how many are wanted: 0 is the default, and fewer than none is a mistake.
func atMost(field string, n, usual int) (int, error) {
	if n < 0 {
		return 0, fail.Usage("leave it out for the usual number", "%s: %d is not a number of rows", field, n)
	}
	return cmp.Or(n, usual), nil
}

// checkNames answers a call with arguments that a tool does not have by those that it has.
func (d *door) checkNames(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		call, ok := request.(*sdk.CallToolRequest)
		if !ok {
			return next(ctx, method, request)
		}
		var given map[string]json.RawMessage
		names, known := d.inputs[call.Params.Name]
		if !known || json.Unmarshal(call.Params.Arguments, &given) != nil {
			return next(ctx, method, request)
		}
		all := slices.Sorted(maps.Keys(names))
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !names[name] {
				result := new(sdk.CallToolResult)
				result.SetError(oneLine(fail.Choice("the argument", name, all), nil))
				return result, nil
			}
		}
		return next(ctx, method, request)
	}
}

// parameters are the names of a tool's inputs.
type parameters map[string]bool

func parametersOf[In any]() parameters {
	names := parameters{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		if field.Anonymous { // its own fields are there too
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// flag is one of the command line; in a whole command, which an assistant may pass on, it stays as it is.
var flag = regexp.MustCompile(`\bhightide [a-z]+ [^;,()]*|--([a-z][a-z-]*)`)

// ofSettings are the inputs of a tool of a use case, and their schema. Package options reads them, and says what is wrong
// with one.
func ofSettings(l options.List) (parameters, *jsonschema.Schema) {
	names, s := parameters{}, &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, one := range l.Of(options.MCP) {
		property := &jsonschema.Schema{Type: one.Kind(), Description: one.About()}
		switch text := (&jsonschema.Schema{Type: "string"}); property.Type {
		case "array":
			property.Items = text
		case "object":
			property.AdditionalProperties = text
		}
		s.Properties[one.Key()], names[one.Key()] = property, true
		if one.Required {
			s.Required = append(s.Required, one.Key())
		}
		if one.Older != "" {
			names[one.Older] = true
		}
	}
	return names, s
}

// inWords is an error's text and hint with the tool's parameters in place of the flags of the same name. A flag that
// is no parameter is said to be of the command line. Only the text of an error of usage is known to be ours, and not
// the program's.
func (p parameters) inWords(err error) (text, hint string) {
	text, hint = err.Error(), fail.Hint(err)
	if fail.Code(err) == fail.ExitUsage {
		text = flag.ReplaceAllStringFunc(text, p.word)
	}
	return text, flag.ReplaceAllStringFunc(hint, p.word)
}

func (p parameters) word(found string) string {
	name, is := strings.CutPrefix(found, "--")
	if !is {
		return found
	}
	if name = strings.ReplaceAll(name, "-", "_"); p[name] {
		return name
	}
	return found + " of the command line"
}
