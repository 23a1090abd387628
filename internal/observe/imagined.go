package observe

import (
	"bytes"
	"encoding/json"

	"hightide/internal/mem"
)

// imaginedFrames are the messages of an imagined process (docs/formats/imagined.md) with the frames that they
// become. Their keys are those of the frames.
var imaginedFrames = map[string]func([]byte) (mem.Frame, error){
	"peak":        frameOf[mem.DevicePeak],
	"categories":  frameOf[mem.PeakParts],
	"policy":      frameOf[mem.DataSize],
	"readback":    frameOf[mem.ReadBack],
	"not_reached": frameOf[mem.Unreached],
	"fake":        frameOf[mem.FakeWeights],
	"redirected":  frameOf[mem.Redirected],
	"switch":      frameOf[mem.Switch],
	"condition":   frameOf[mem.Condition],
	"serving":     frameOf[mem.Serving],
}

func frameOf[F mem.Frame](data []byte) (mem.Frame, error) {
	var f F
	err := json.Unmarshal(data, &f)
	return f, err
}

// imagined takes in such a message, and says whether it was one.
func (r *Recorder) imagined(p *process, data []byte, m *message, at int64) bool {
	frame := imaginedFrames[m.Type]
	if r.opts.Label != mem.Imagined || frame == nil {
		return false
	}
	f, err := frame(masked(data, map[string]any{"process": p.ID, "time_ns": at, "agent": true}))
	if err != nil {
		r.drop(p, "message", 1)
		return true
	}
	r.emit(f)
	return true
}

// masked is a JSON object with what looks like a secret masked in its texts, and with the keys that are ours.
func masked(data []byte, ours map[string]any) []byte {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // a size is to stay an integer
	var all map[string]any
	if decoder.Decode(&all) != nil {
		return nil
	}
	for key, value := range all {
		if text, ok := value.(string); ok {
			all[key] = mem.MaskText(text)
		}
	}
	for key, value := range ours {
		if _, told := all[key]; !told || key != "time_ns" { // a peak tells when it was
			all[key] = value
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return out
}
