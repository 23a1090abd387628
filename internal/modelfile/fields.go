package modelfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// fields is a JSON object whose values are read as they are asked for. What cannot be read is absent.
type fields map[string]json.RawMessage

func decodeFields(text []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(finite(text), &f); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Error{Offset: syntax.Offset, Err: fmt.Errorf("no JSON: %w", err)}
		}
		return nil, &Error{Offset: -1, Err: errors.New("no JSON object")}
	}
	if f == nil {
		return nil, &Error{Offset: -1, Err: errors.New("no JSON object")}
	}
	return f, nil
}

// finite is a text of JSON with null for NaN and Infinity, which Python writes and JSON does not have.
func finite(text []byte) []byte {
	if !bytes.Contains(text, []byte("Infinity")) && !bytes.Contains(text, []byte("NaN")) {
		return text
	}
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case quoted && text[i] == '\\' && len(rest) > 1:
			out = append(out, text[i], text[i+1])
			i++
			continue
		case text[i] == '"':
			quoted = !quoted
		case !quoted:
			if word := unreal(rest); word > 0 {
				out = append(out, "null"...)
				i += word - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// unreal is the length of a word of Python's that a text begins with, for a number that JSON does not have; 0: of none.
func unreal(text []byte) int {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// most is the largest number that a configuration may have for a size: no model is near it, and products of three stay
// within 64 bits.
const most = 1 << 20

// int is the first of some fields that is a whole number of 1 or more; 0: none is.
func (f fields) int(names ...string) int {
	for _, name := range names {
		var n float64
		if json.Unmarshal(f[name], &n) == nil && n >= 1 && n <= most*64 && n == math.Trunc(n) {
			return int(n)
		}
	}
	return 0
}

// list is a field that is a list; nil: it is none.
func list[T any](f fields, name string) []T {
	var all []T
	if json.Unmarshal(f[name], &all) != nil || len(all) > most {
		return nil
	}
	return all
}

func (f fields) text(name string) string {
	var text string
	_ = json.Unmarshal(f[name], &text)
	return text
}

func (f fields) float(name string) float64 {
	var n float64
	_ = json.Unmarshal(f[name], &n)
	return n
}

// bool is a field, or what it is where it is not given.
func (f fields) bool(name string, usual bool) bool {
	var b *bool
	if json.Unmarshal(f[name], &b) != nil || b == nil {
		return usual
	}
	return *b
}

// object is a field that is one; nil: it is none.
func (f fields) object(name string) fields {
	var o fields
	_ = json.Unmarshal(f[name], &o)
	return o
}

// choosesExperts says whether a layer of Nemotron-H has experts, where it has neither states nor attention.
func (f fields) choosesExperts(i int) bool {
	for _, name := range blockLists {
		if named := list[string](f, name); i < len(named) {
			return named[i] == "moe"
		}
	}
	pattern := f.text("hybrid_override_pattern")
	return i < len(pattern) && pattern[i] == 'E'
}

// blocks is how many layers a configuration lists that does not say it otherwise, as those of Nemotron-H.
func (f fields) blocks() int {
	for _, name := range blockLists {
		if n := len(list[string](f, name)); n > 0 {
			return n
		}
	}
	return len(f.text("hybrid_override_pattern"))
}

// blockLists are fields with what each layer is.
var blockLists = []string{"layers_block_type", "layer_types"}
