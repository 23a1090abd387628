package wire

import (
	"encoding/json"
	"fmt"
	"reflect"

	"hightide/internal/mem"
)

// kind is a frame's number in the file. Numbers are never reused. Those below 64 are JSON, the
// others binary; the ones that later parts of hightide will need are reserved.
type kind uint64

const (
	kindSamples    kind = 64
	kindSpans      kind = 65
	kindSteps      kind = 66
	kindPhaseStats kind = 67
	kindStackDef   kind = 68
	kindHeapUse    kind = 69
	kindSnapshot   kind = 70
	// 71 allocator events, 72 device samples by kernel: reserved
)

// jsonFrames lists the frames that are written as JSON. Add yours here.
var jsonFrames = []jsonFrame{
	asJSON[mem.RunInfo](1),
	asJSON[mem.Process](2),
	asJSON[mem.SeriesDef](3),
	asJSON[mem.StepTotal](4),
	asJSON[mem.Holder](5),
	asJSON[mem.Module](6),
	asJSON[mem.ModelUse](7),
	asJSON[mem.Event](8),
	asJSON[mem.Drop](9),
	asJSON[mem.End](10),
	asJSON[mem.Found](11),
	// 12 logs: reserved
	asJSON[mem.ImaginedDevice](13),
	asJSON[mem.ImaginedSetup](14),
	asJSON[mem.DeviceUse](15),
	asJSON[mem.LibraryCall](16),
	asJSON[mem.ReadBack](17),
	asJSON[mem.DevicePeak](18),
	asJSON[mem.PeakParts](19),
	asJSON[mem.DataSize](20),
	asJSON[mem.Unreached](21),
	asJSON[mem.FakeWeights](22),
	asJSON[mem.Redirected](23),
	asJSON[mem.Switch](24),
	asJSON[mem.Condition](25),
	asJSON[mem.Trial](26),
	asJSON[mem.HeapAges](27),
	asJSON[mem.Cell](28),
	asJSON[mem.Serving](29),
}

// jsonFrame is a type of frame that is written as JSON, with its number.
type jsonFrame struct {
	kind   kind
	frame  reflect.Type
	decode codec
}

func asJSON[F mem.Frame](k kind) jsonFrame { return jsonFrame{k, reflect.TypeFor[F](), fromJSON[F]} }

// codec turns the payload of one kind into a frame.
type codec func(*decoder) (mem.Frame, error)

// decoders has every kind that this version reads; jsonKinds those that are written as JSON.
var decoders, jsonKinds = tables()

func tables() (map[kind]codec, map[reflect.Type]kind) {
	decoders := map[kind]codec{
		kindSamples:    decodeSamples,
		kindSpans:      decodeSpans,
		kindSteps:      decodeSteps,
		kindPhaseStats: decodePhaseStats,
		kindStackDef:   decodeStackDef,
		kindHeapUse:    decodeHeapUse,
		kindSnapshot:   decodeSnapshot,
	}
	kinds := map[reflect.Type]kind{}
	for _, f := range jsonFrames {
		decoders[f.kind], kinds[f.frame] = f.decode, f.kind
	}
	return decoders, kinds
}

func fromJSON[F mem.Frame](d *decoder) (mem.Frame, error) {
	var f F
	if err := json.Unmarshal(d.rest, &f); err != nil {
		return nil, err
	}
	return f, nil
}

// appendPayload appends the payload of a frame to dst and returns its kind.
func appendPayload(dst []byte, f mem.Frame) (kind, []byte, error) {
	switch f := f.(type) {
	case mem.Samples:
		if len(f.Times) != len(f.Values) {
			return 0, dst, fmt.Errorf("series %d: %d times but %d values", f.Series, len(f.Times), len(f.Values))
		}
		return kindSamples, appendSamples(dst, f), nil
	case mem.Spans:
		return kindSpans, appendSpans(dst, f), nil
	case mem.Steps:
		return kindSteps, appendSteps(dst, f), nil
	case mem.PhaseStats:
		return kindPhaseStats, appendPhaseStats(dst, f), nil
	case mem.StackDef:
		return kindStackDef, appendStackDef(dst, f), nil
	case mem.HeapUse:
		return kindHeapUse, appendHeapUse(dst, f), nil
	case mem.Snapshot:
		return kindSnapshot, appendSnapshot(dst, f), nil
	}
	k, ok := jsonKinds[reflect.TypeOf(f)]
	if !ok {
		return 0, dst, fmt.Errorf("frame of unknown type %T", f)
	}
	text, err := json.Marshal(f)
	return k, append(dst, text...), err
}
