package modelfile

import (
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"sync"
)

// kind is the kind of model that a configuration says.
func (f fields) kind() (string, error) {
	for _, part := range append([]fields{f}, f.decoder()) {
		if kind := part.text("model_type"); kind != "" {
			return kind, nil
		}
	}
	return "", &Error{Offset: -1, Err: errors.New(`no configuration of a model: it has no "model_type"`)}
}

// decoder is the part of a configuration that is of its decoder of texts; nil: it has none of its own.
func (f fields) decoder() fields {
	for _, part := range []string{"text_config", "llm_config", "language_config"} {
		if inner := f.object(part); inner != nil {
			return inner
		}
	}
	return nil
}

// usual.json has the fields of parts of a configuration that transformers leaves out where they are as its classes have
// them: testdata/truth.py writes it.
//
//go:embed usual.json
var usualText []byte

var usualFields = sync.OnceValue(func() (all map[string]fields) {
	if err := json.Unmarshal(usualText, &all); err != nil {
		panic(err) // embedded, and a test reads it
	}
	return all
})

// filled are the fields of a part of a configuration, with the usual ones of its kind where it does not have them.
func (f fields) filled(kind string) fields {
	all := maps.Clone(usualFields()[kind])
	if all == nil {
		return f
	}
	maps.Copy(all, f)
	return all
}

// encoder says what of a model has a part besides the decoder, as "images"; "": it has none.
func (f fields) encoder() string {
	switch {
	case f.object("vision_config") != nil:
		return "images"
	case f.object("audio_config") != nil:
		return "sound"
	case f.decoder() != nil:
		return "its other inputs"
	}
	return ""
}
