package wire

import (
	"encoding/json"
	"fmt"

	"hightide/internal/mem"
)

// kind is a frame's number in the file. Numbers are never reused. Those below 64 are JSON, the
// others binary; the ones that later parts of hightide will need are reserved.
type kind uint64

const (
	kindRunInfo   kind = 1
	kindProcess   kind = 2
	kindSeriesDef kind = 3
	kindStepTotal kind = 4
	kindHolder    kind = 5
	kindModule    kind = 6
	kindModelUse  kind = 7
	kindEvent     kind = 8
	kindDrop      kind = 9
	kindEnd       kind = 10
	// 11 findings, 12 logs, 13 device books: reserved

	kindSamples    kind = 64
	kindSpans      kind = 65
	kindSteps      kind = 66
	kindPhaseStats kind = 67
	kindStackDef   kind = 68
	kindHeapUse    kind = 69
	kindSnapshot   kind = 70
	// 71 allocator events, 72 device samples by kernel: reserved
)

// codec turns the payload of one kind into a frame.
type codec func(*decoder) (mem.Frame, error)

// decoders lists every kind that this version reads.
var decoders = map[kind]codec{
	kindRunInfo:   fromJSON[mem.RunInfo],
	kindProcess:   fromJSON[mem.Process],
	kindSeriesDef: fromJSON[mem.SeriesDef],
	kindStepTotal: fromJSON[mem.StepTotal],
	kindHolder:    fromJSON[mem.Holder],
	kindModule:    fromJSON[mem.Module],
	kindModelUse:  fromJSON[mem.ModelUse],
	kindEvent:     fromJSON[mem.Event],
	kindDrop:      fromJSON[mem.Drop],
	kindEnd:       fromJSON[mem.End],

	kindSamples:    decodeSamples,
	kindSpans:      decodeSpans,
	kindSteps:      decodeSteps,
	kindPhaseStats: decodePhaseStats,
	kindStackDef:   decodeStackDef,
	kindHeapUse:    decodeHeapUse,
	kindSnapshot:   decodeSnapshot,
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
	k := jsonKind(f)
	if k == 0 {
		return 0, dst, fmt.Errorf("frame of unknown type %T", f)
	}
	text, err := json.Marshal(f)
	return k, append(dst, text...), err
}

func jsonKind(f mem.Frame) kind {
	switch f.(type) {
	case mem.RunInfo:
		return kindRunInfo
	case mem.Process:
		return kindProcess
	case mem.SeriesDef:
		return kindSeriesDef
	case mem.StepTotal:
		return kindStepTotal
	case mem.Holder:
		return kindHolder
	case mem.Module:
		return kindModule
	case mem.ModelUse:
		return kindModelUse
	case mem.Event:
		return kindEvent
	case mem.Drop:
		return kindDrop
	case mem.End:
		return kindEnd
	}
	return 0
}
