package observe

import (
	"bytes"
	"encoding/json"
	"slices"

	"hightide/internal/mem"
)

// imaginedTypes are the messages of an imagined process that become events as they are
// (docs/formats/imagined.md). Package analyze puts them together: of those with one key the last one counts.
var imaginedTypes = []string{"peak", "categories", "policy", "readback", "not_reached", "fake", "redirected", "switch", "condition"}

// ImaginedKind is the kind of the event that a message of an imagined process becomes.
func ImaginedKind(messageType string) string { return "imagine." + messageType }

// imagined takes in such a message, and says whether it was one.
func (r *Recorder) imagined(p *process, data []byte, m *message, at int64) bool {
	if r.opts.Label != mem.Imagined || !slices.Contains(imaginedTypes, m.Type) {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // a size is to stay an integer
	var all map[string]any
	if decoder.Decode(&all) != nil {
		r.drop(p, "message", 1)
		return true
	}
	event := mem.Event{Time: at, Process: p.ID, Kind: ImaginedKind(m.Type), Text: mem.MaskText(m.Text), Facts: map[string]string{}}
	if m.File != "" {
		event.Where = &mem.Location{File: m.File, Line: m.Line, Function: m.Function}
	}
	for key, value := range all {
		switch key {
		case "type", "file", "line", "function", "text":
		default:
			if written := text(value); written != "" && len(event.Facts) < 32 {
				event.Facts[key] = mem.MaskText(written)
			}
		}
	}
	r.emit(event)
	return true
}
