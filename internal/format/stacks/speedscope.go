package stacks

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"hightide/internal/mem"
)

// SpeedscopeFile is https://www.speedscope.app/file-format-schema.json, as far as it is used.
type SpeedscopeFile struct {
	Schema   string              `json:"$schema"`
	Name     string              `json:"name"`
	Exporter string              `json:"exporter"`
	Active   int                 `json:"activeProfileIndex"`
	Shared   speedscopeShared    `json:"shared"`
	Profiles []speedscopeProfile `json:"profiles"`
}

type speedscopeShared struct {
	Frames []speedscopeFrame `json:"frames"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

type speedscopeProfile struct {
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Unit    string     `json:"unit"`
	Start   int64      `json:"startValue"`
	End     int64      `json:"endValue"`
	Samples [][]uint32 `json:"samples"` // outermost first
	Weights []int64    `json:"weights"`
}

// WriteSpeedscope writes one profile for each kind of value; the width of a frame is its bytes.
func WriteSpeedscope(out io.Writer, p *mem.Profile) error {
	file := SpeedscopeFile{Schema: "https://www.speedscope.app/file-format-schema.json", Name: "memory by call stack",
		Exporter: "hightide",
		Active:   p.Default, Shared: speedscopeShared{Frames: []speedscopeFrame{}}, Profiles: []speedscopeProfile{}}
	for _, l := range p.Stacks.Locations {
		file.Shared.Frames = append(file.Shared.Frames, speedscopeFrame{cmp.Or(l.Function, cmp.Or(l.File, "(unknown)")),
			l.File, l.Line})
	}
	none := uint32(len(file.Shared.Frames))
	file.Shared.Frames = append(file.Shared.Frames, speedscopeFrame{Name: "(no stack recorded)"})
	for k, kind := range p.Kinds {
		profile := speedscopeProfile{Type: "sampled", Name: kindTitle(kind.Name), Unit: "none", Samples: [][]uint32{},
			Weights: []int64{}}
		if kind.Unit == mem.UnitBytes {
			profile.Unit = "bytes"
		}
		for _, s := range p.Samples {
			stack := slices.Clone(p.Stacks.Numbers(s.Stack))
			slices.Reverse(stack)
			if len(stack) == 0 {
				stack = []uint32{none}
			}
			profile.Samples = append(profile.Samples, stack)
			profile.Weights = append(profile.Weights, s.Values[k])
			profile.End += s.Values[k]
		}
		file.Profiles = append(file.Profiles, profile)
	}
	w := bufio.NewWriter(out)
	if err := json.NewEncoder(w).Encode(file); err != nil {
		return err
	}
	return w.Flush()
}
