package intake

import (
	"bytes"
	"io"

	"hightide/internal/wire"
	"hightide/internal/words"
)

// Formats lists what can be read, in the order of sniffing. Add yours here.
var Formats = []Format{
	{Name: "recording", Short: "a recording of hightide", Sniff: isRecording, Decode: decodeRecording},
	{Name: "torch-pickle", Short: "a memory snapshot of PyTorch", Sniff: isPickle, Decode: decodeTorch},
	{Name: "torch-json", Short: "the same as JSON", Sniff: isSnapshotJSON, Decode: decodeSnapshotJSON},
	{Name: "profiler-trace", Short: "a trace of PyTorch's profiler with memory events", Sniff: isProfilerTrace, Decode: decodeProfilerTrace},
	{Name: "pprof", Short: "a memory profile of pprof, as JAX saves them", Sniff: isProfile, Decode: decodeProfile},
	{Name: "memray", Short: "a capture of memray (where memray is installed)", Sniff: isMemray, Decode: refuseMemray},
	{Name: "memray-table", Short: "what memray transform csv makes of it", Sniff: isMemrayTable, Decode: decodeMemrayTable},
	{Name: "smaps", Short: "smaps of Linux (/proc/PID/smaps)", Sniff: isSmaps, Decode: decodeSmaps},
	{Name: "oom-message", Short: "a pasted out-of-memory message", Sniff: isMessage, Decode: decodeMessage},
}

func decodeTorch(r io.Reader, size int64) (*Document, error) {
	snapshot, err := torch(r, size, "torch-pickle")
	if err != nil {
		return nil, err
	}
	return &Document{Snapshot: snapshot, Notes: snapshot.Notes}, nil
}

func isRecording(head []byte) bool { return bytes.HasPrefix(head, []byte(wire.Magic)) }

func decodeRecording(r io.Reader, _ int64) (*Document, error) {
	run, err := wire.Load(r)
	if err != nil {
		return nil, err
	}
	return &Document{Recording: run}, nil
}

// oldPickle is how pickles of protocols 0 and 1 begin: a container, or an import (to be refused).
var oldPickle = words.Lazy(`^(?:\([dl](?:p\d|[(.])|\([SVIF][^\n]{1,200}\n|[}\]][q(.]|[ci][A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n)`)

// isPickle knows a pickle of protocol 2 and later by its first opcode and version, older ones by
// how they begin.
func isPickle(head []byte) bool {
	if len(head) >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] < 16 {
		return true
	}
	return oldPickle.Regexp().Match(head)
}
