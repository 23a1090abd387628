package format

import (
	"bytes"
	"io"

	"hightide/internal/format/oomtext"
	"hightide/internal/format/profiler"
	"hightide/internal/format/smaps"
	"hightide/internal/format/stacks"
	"hightide/internal/format/telemetry"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/wire"
)

// Formats lists what can be read and written; those that are read stand in the order of sniffing. Add yours here.
var Formats = []Format{
	{Name: "arrow", Extension: ".arrows", Writes: "a table as a stream of Apache Arrow", Tables: true, Binary: true,
		Takes: Runs | Snapshots, Write: writeArrow},
	{Name: "csv", Extension: ".csv", Writes: "a table as comma-separated values", Tables: true, Takes: Runs | Snapshots,
		Write: writeCSV},
	{Name: "json", Extension: ".json", Writes: "everything as one JSON object", Takes: Runs | Snapshots, Write: writeJSON},
	{Name: "parquet", Extension: ".parquet", Writes: "a table as Apache Parquet", Tables: true, Binary: true,
		Takes: Runs | Snapshots, Write: writeParquet},
	{Name: "recording", Extension: ".hightide", Reads: "a recording of hightide", Sniff: isRecording,
		Decode: reads(wire.Load, asRecording),
		Writes: "the recording itself, without damaged parts; with --redact without private data", Binary: true,
		Takes: Runs, Write: ofRunAlone(wire.Save)},
	{Name: "torch-pickle", Extension: ".pickle", Reads: "a memory snapshot of PyTorch", Sniff: torch.IsPickle,
		Decode: decodeTorch,
		Writes: "a snapshot that PyTorch's memory_viz opens", Binary: true, Takes: Snapshots, Write: writeTorch},
	{Name: "telemetry", Extension: ".json",
		Reads: "readings of a memory tracker (Stormlog's gpumemprof and tfmemprof, JSON or CSV)", Sniff: telemetry.Is,
		Decode: reads(telemetry.Read, asRecording),
		Writes: "readings as events of a memory tracker, as JSON", Takes: Runs, Write: ofRunAlone(telemetry.WriteJSON)},
	{Name: "telemetry-csv", Extension: ".csv", Writes: "the same as CSV", Takes: Runs,
		Write: ofRunAlone(telemetry.WriteCSV)},
	{Name: "nvidia-smi", Reads: "what nvidia-smi --query-gpu=timestamp,index,memory.used --format=csv prints",
		Sniff:  telemetry.IsSMI,
		Decode: reads(telemetry.ReadSMI, asRecording)},
	{Name: "nvidia-smi-monitor", Reads: "what nvidia-smi dmon and pmon print with -s m", Sniff: telemetry.IsMonitor,
		Decode: reads(telemetry.ReadMonitor, asRecording)},
	{Name: "xpu-smi", Reads: "what xpu-smi dump -m 18 prints", Sniff: telemetry.IsXPU,
		Decode: reads(telemetry.ReadXPU, asRecording)},
	{Name: "mprof", Reads: "readings of memory_profiler's mprof (*.dat)", Sniff: telemetry.IsMprof,
		Decode: reads(telemetry.ReadMprof, asRecording)},
	{Name: "torch-json", Reads: "the same as JSON", Sniff: torch.IsJSON, Decode: reads(torch.ReadJSON, asSnapshot)},
	{Name: "onnxruntime", Reads: "a profile of ONNX Runtime (SessionOptions.enable_profiling)",
		Sniff:  profiler.IsONNXRuntime,
		Decode: reads(profiler.ReadONNXRuntime, func(d *Document, p *mem.NodeProfile) { d.Nodes = p })},
	{Name: "profiler-trace", Reads: "a trace of PyTorch's profiler with memory events", Sniff: torch.IsTrace,
		Decode: reads(torch.ReadTrace, asSnapshot)},
	{Name: "xspace", Reads: "a profile of tf.profiler with memory events (*.xplane.pb)", Sniff: profiler.IsXSpace,
		Decode: reads(profiler.ReadXSpace, asSnapshot)},
	{Name: "hlo", Reads: "a program of XLA with its buffers (*after_optimizations.hlo.pb of --xla_dump_hlo_as_proto)",
		Sniff: profiler.IsHLO, Decode: reads(profiler.ReadHLO, asProfile)},
	{Name: "pprof", Extension: ".pb.gz", Reads: "a memory profile of pprof, as JAX saves them", Sniff: stacks.IsPprof,
		Decode: reads(stacks.ReadPprof, asProfile),
		Writes: "memory by call stack, for go tool pprof", Binary: true, Takes: Runs | Snapshots | Profiles, Measures: true,
		Write: ofProfile(stacks.WritePprof)},
	{Name: "speedscope", Extension: ".speedscope.json", Writes: "memory by call stack, for speedscope",
		Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(stacks.WriteSpeedscope)},
	{Name: "folded", Extension: ".folded", Writes: "memory by call stack as folded stacks, for flamegraph.pl",
		Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(stacks.WriteFolded)},
	{Name: "dot", Extension: ".dot", Writes: "memory by call stack as a call graph, for Graphviz",
		Takes: Runs | Snapshots | Profiles, Measures: true, Write: ofProfile(stacks.WriteDot)},
	{Name: "perfetto", Extension: ".perfetto.json", Writes: "curves and spans over time, for ui.perfetto.dev",
		Takes: Runs | Snapshots, Write: writePerfetto},
	{Name: "memray", Reads: "a capture of memray (where memray is installed)", Sniff: stacks.IsMemray,
		Decode: refuseMemray},
	{Name: "memray-table", Reads: "what memray transform csv makes of it", Sniff: stacks.IsMemrayTable,
		Decode: reads(stacks.ReadMemrayTable, asProfile)},
	{Name: "smaps", Reads: "smaps of Linux (/proc/PID/smaps)", Sniff: smaps.Is,
		Decode: reads(smaps.Read, func(d *Document, m *mem.Mappings) { d.Mappings = m })},
	{Name: "oom-message", Reads: "a pasted out-of-memory message", Sniff: oomtext.IsMessage,
		Decode: reads(oomtext.Read, func(d *Document, m *mem.OOMMessage) { d.OOM, d.Words = m, oomtext.Words(m) })},
	{Name: "gpu-table", Reads: "the tables of nvidia-smi, gpustat and rocm-smi --showmeminfo vram",
		Sniff: telemetry.IsShown, Decode: decodeShown},
}

// ofRunAlone is the Write of a format that needs nothing but a run.
func ofRunAlone(write func(io.Writer, *mem.Run) error) func(io.Writer, Source, *Table) error {
	return func(w io.Writer, from Source, _ *Table) error { return write(w, from.Run) }
}

func isRecording(head []byte) bool { return bytes.HasPrefix(head, []byte(wire.Magic)) }

func writeTorch(w io.Writer, from Source, _ *Table) error { return torch.Write(w, from.Snapshot) }

// reads is the Decode of a format: a function that reads it, and where that belongs in a Document.
func reads[T any](read func(io.Reader) (T, error), put func(*Document, T)) func(io.Reader, int64) (*Document, error) {
	return func(r io.Reader, _ int64) (*Document, error) {
		value, err := read(r)
		if err != nil {
			return nil, err
		}
		var d Document
		put(&d, value)
		return &d, nil
	}
}

func asRecording(d *Document, run *mem.Run)            { d.Recording = run }
func asSnapshot(d *Document, s *mem.AllocatorSnapshot) { d.Snapshot = s }
func asProfile(d *Document, p *mem.Profile)            { d.Profile = p }

// decodeTorch reads a pickle, for whose rows there is room at once where the file's size is known.
func decodeTorch(r io.Reader, size int64) (*Document, error) {
	snapshot, err := torch.ReadSized(r, size)
	if err != nil {
		return nil, err
	}
	return &Document{Snapshot: snapshot}, nil
}

// decodeShown reads what tools show of GPUs. An out-of-memory message further down in the text is what it was pasted
// for.
func decodeShown(r io.Reader, _ int64) (*Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	if err != nil {
		return nil, err
	}
	if m, err := oomtext.Read(bytes.NewReader(text)); err == nil {
		return &Document{OOM: m, Words: oomtext.Words(m)}, nil
	}
	all, err := telemetry.ReadShown(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if run := telemetry.OverTime(all); run != nil {
		return &Document{Recording: run}, nil
	}
	return &Document{Words: all[len(all)-1].Words(len(all))}, nil
}

func refuseMemray(io.Reader, int64) (*Document, error) { return nil, stacks.ErrMemray }
