package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"hightide/internal/mem"
)

// everyKind is at least one frame of each kind, with each field set, and the awkward values.
func everyKind() []mem.Frame {
	where := mem.Location{File: "train.py", Line: 41, Function: "main"}
	return []mem.Frame{
		mem.RunInfo{
			ID: "0abc", Name: "first", Tags: map[string]string{"model": "bert"}, Verb: "run", Label: mem.Measured,
			Command: []string{"python", "train.py", "ünï"}, Cwd: "/home/u", Env: map[string]string{"A": "1"}, Version: "1",
			Host: mem.Host{Name: "h", OS: "linux", Kernel: "6", CPU: "x", CPUs: 8, Memory: mem.Some(1 << 40), PageSize: 4096,
				GPUs: []mem.GPU{{Index: 1, UUID: "u", Vendor: "nvidia", Name: "A10", Memory: mem.Some(24 << 30), Driver: "5"}}},
			Git: &mem.Git{Commit: "c0ffee", Branch: "main", Dirty: true}, StartMono: 5, StartWall: 6,
			Options: map[string]string{"interval": "100ms"},
		},
		mem.Process{ID: 1, PID: 99, Parent: 0, StartTicks: 7, Command: []string{"python"}, Role: "main", Rank: mem.Some(0),
			Python: "3.11", Frameworks: map[string]string{"torch": "2.15"}, Start: 8, End: mem.Some(9),
			MaxRSS: mem.Some(1 << 33)},
		mem.SeriesDef{ID: 1, Process: 1, Device: "cuda:0", Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Sampled,
			Error: 3},
		mem.Samples{Series: 1, Times: []int64{100, 200, 300, 300, math.MaxInt64},
			Values: []int64{0, -1, math.MaxInt64, math.MinInt64, 7}},
		mem.Samples{Series: 1, Times: []int64{}, Values: []int64{}},
		mem.Spans{
			{Process: 1, Thread: 12345, Phase: mem.PhaseForward, Step: 3, Start: 100, End: 150, RSSStart: mem.Some(10),
				RSSEnd: mem.Some(30), RSSPeak: mem.Some(25)},
			{Process: math.MaxUint32, Phase: mem.PhaseModule, Name: "encoder", Step: math.MaxUint64, Start: 120, End: 110,
				DeviceEnd: mem.Some(0)},
			{Phase: mem.PhaseUser, Name: "mine", RSSPeak: mem.Some(-5), DeviceStart: mem.Some(1 << 50)},
		},
		mem.PhaseStats{Process: 2, Phase: mem.PhaseBackward, Name: "n", Count: 3, Total: 4, Max: 5, RSSPeak: mem.Some(6),
			RSSNet: mem.Some(-7), DevicePeak: mem.Some(8)},
		mem.Steps{
			{Process: 1, Number: 1, Time: 10, RSS: mem.Some(100), Heap: mem.Some(5)},
			{Process: 1, Number: 2, Time: 20, Duration: 10, RSS: mem.Some(90), Micro: 4, Skipped: true, Device: mem.Some(0)},
		},
		mem.StepTotal{Process: 1, Steps: 2, Skipped: 1},
		mem.StackDef{ID: 7, Locations: []mem.Location{where, {File: "libc.so", Function: "malloc", Native: true}}},
		mem.HeapUse{Process: 1, Time: 50, Step: 2, Live: 1 << 30, Variance: 1.5e18, Peak: true, Sites: []mem.SiteUse{
			{Stack: 7, Phase: mem.PhaseForward, Live: 1 << 29, Count: 12, Allocated: 1 << 31}, {Stack: 3, Live: -1}}},
		mem.HeapAges{Process: 1, Time: 55, From: 10, Width: 1 << 26, Peak: true,
			Sites: []mem.SiteAges{{Stack: 7, Born: []mem.Bytes{0, 1 << 29}, Outlived: 3}}},
		mem.HeapUse{Process: 1, Time: 55, Step: 2, Live: 1 << 20, Absent: 1 << 30,
			Sites: []mem.SiteUse{{Stack: 7, Live: 1 << 20, Count: 1, Absent: 1 << 30}, {Stack: 3}}},
		mem.HeapUse{Process: 1, Time: 56, Step: 2, Live: 1 << 20,
			Sites: []mem.SiteUse{{Stack: 7, Live: 1 << 20, Count: 1, Excess: 3 << 20}, {Stack: 3}}},
		mem.Holder{Process: 1, Time: 60, Step: 2, Kind: "list", Name: "history", Where: where, Items: 2, PerStep: 1.25,
			Contains: "Tensor", Tensors: mem.Some(4), Graph: true,
			Parts: []mem.HeldPart{{At: ".logits", Type: "Tensor", Elements: 6, Bytes: 24, Storage: 48,
				GradFn: "MulBackward0"}}, Saved: mem.Some(0),
			Bound: mem.Some(64), BoundBy: "maxlen=64", Others: []mem.Location{where}, Ran: true},
		mem.Cell{File: "/tmp/ipykernel_7/1629780061.py", Name: "cell [3]", Text: "x = 1\n"},
		mem.Module{Process: 1, Name: "encoder", Class: "Linear", Parameters: 1, Buffers: 2},
		mem.ModelUse{Process: 1, Step: 2, Device: "cpu", Parameters: mem.Some(3), Optimizer: mem.Some(0)},
		mem.Event{Time: 70, Process: 1, Kind: "oom", Text: "…", Step: mem.Some(2), Bytes: mem.Some(3), Where: &where,
			Facts: map[string]string{"source": "torch"}},
		mem.Snapshot{Process: 1, Time: 80, Name: "oom.pickle", Format: "torch-pickle", Piece: []byte{0, 1, 2, 255},
			Last: true},
		mem.Drop{Process: 1, Place: "ring", Records: 9, Bytes: 10},
		mem.End{Time: 90, ExitCode: mem.Some(0), Reason: "exit"},
		mem.Found{Findings: 3, Places: []mem.Place{{Kind: "leak", Severity: "critical", File: "/a/train.py", Line: 7,
			Function: "step", Bytes: mem.Some(8)}, {File: "/a/model.py", Line: 9}}},
	}
}

// imagined is a frame of each kind that only a run on imaginary GPUs has, with each field set.
func imagined() []mem.Frame {
	line := mem.Location{File: "train.py", Line: 41, Function: "main"}
	verdict := mem.GPUVerdict{GPU: "a10", GPUName: "NVIDIA A10", Compute: "8.6", SMs: 72, Verdict: mem.VerdictTight,
		Total: 1 << 34, Context: 1 << 28, Allocated: mem.Some(1),
		Reserved: mem.Some(2), Used: mem.Some(3), Headroom: mem.Some(-4), Price: 1.29, Label: mem.Imagined, Note: "in step 1"}
	return []mem.Frame{
		mem.ImaginedSetup{GPU: "a10", Name: "NVIDIA A10", Compute: "8.6", SMs: 72, Count: 2, Total: 1 << 34,
			TotalLabel: mem.Measured, Context: 1 << 28, Tight: 1 << 30,
			Price: 1.29, Steps: "auto", Sizes: "upper", AllocConf: "default", ReadValue: "1", World: 128},
		mem.ImaginedDevice{Rank: mem.Some(127), Index: 7, GPU: "a10", Total: 1 << 34, Used: math.MaxInt64, Context: 1 << 28,
			Failed: math.MaxUint64},
		mem.DeviceUse{Process: 1, Device: "rank 127 nvidia:7", Index: 7, Used: 5,
			Parts: map[string]mem.Bytes{"context": 3, "allocated": 2}, Played: true},
		mem.LibraryCall{Name: "cusparseSpMM", Count: 3, Refused: true},
		mem.ReadBack{Process: 1, Agent: true, Location: line, Count: 12, Bytes: 96},
		mem.DevicePeak{Process: 1, Time: 70, Device: "cuda:0", Allocated: mem.Some(0), Reserved: mem.Some(1),
			Phase: mem.PhaseBackward, Step: mem.Some(0)},
		mem.PeakParts{Process: 1, Device: "cuda:0", Parameters: mem.Some(1), Gradients: mem.Some(2), Optimizer: mem.Some(3),
			Buffers: mem.Some(4), Inputs: mem.Some(5),
			Activations: mem.Some(6), Temporaries: mem.Some(7), Workspaces: mem.Some(8), Other: mem.Some(9), ByStack: 10},
		mem.DataSize{Process: 1, Op: "nonzero", Policy: "upper", Location: line, Count: 6, Elements: 1 << 40},
		mem.Unreached{Process: 1, What: "evaluation", Text: "no call of eval() was seen", Location: line},
		mem.FakeWeights{Process: 1, What: "torch.load", Name: "w.pt", Bytes: 11},
		mem.Redirected{Process: 1, Path: "out/last.pt", Count: 2},
		mem.Switch{Process: 1, Name: "bf16", Applied: true, Text: "autocast"},
		mem.Condition{Process: 1, Name: "attention", Value: "flash"},
		mem.Serving{Process: 2, Time: 90, Engine: "vLLM", Version: "0.11.0", Step: mem.ServingReady, Answers: true,
			ServingFigures: mem.ServingFigures{KVTokens: mem.Some(1 << 40), KVBytes: mem.Some(0), KVType: "auto",
				MaxConcurrency: 13.75, Utilization: 0.9, Free: mem.Some(5), CUDAGraphs: true}},
		mem.Trial{Set: mem.TrialTry, Try: mem.Try{Kind: "batch", What: "batch 16", Command: "python train.py",
			GPUVerdict: verdict}},
		mem.Trial{Set: mem.TrialCatalogue, Try: mem.Try{GPUVerdict: verdict}},
	}
}

func encode(t testing.TB, flushEach bool, frames ...mem.Frame) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
		if flushEach {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func readAll(t testing.TB, data []byte) ([]mem.Frame, *Reader) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var frames []mem.Frame
	for {
		f, err := r.Next()
		if err == io.EOF {
			return frames, r
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f)
	}
}

func TestEveryKindComesBack(t *testing.T) {
	want := append(everyKind(), imagined()...)
	kinds := map[reflect.Type]bool{}
	for _, f := range want {
		kinds[reflect.TypeOf(f)] = true
	}
	if len(kinds) != len(decoders) {
		t.Errorf("%d kinds of frames are tested, %d can be read", len(kinds), len(decoders))
	}
	for _, flushEach := range []bool{false, true} {
		got, r := readAll(t, encode(t, flushEach, want...))
		if len(r.Damage()) != 0 {
			t.Errorf("damage in a sound file: %v", r.Damage())
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames, want %d", len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("frame %d:\n got %+v\nwant %+v", i, got[i], want[i])
			}
		}
	}
}

// blocks is a file of n blocks with one sample each, whose value is the block's number.
func blocks(t testing.TB, n int) []byte {
	frames := []mem.Frame{mem.SeriesDef{ID: 1, Process: 1, Name: "s"}}
	for i := range n - 1 {
		frames = append(frames, mem.Samples{Series: 1, Times: []int64{int64(i + 1)}, Values: []int64{int64(i + 1)}})
	}
	return encode(t, true, frames...)
}

// bounds finds where each block begins and ends, from the headers alone.
func bounds(data []byte) [][2]int {
	var all [][2]int
	for at := fileHeaderSize; at < len(data); {
		h, ok := parseHeader(data[at:])
		if !ok {
			panic("not a block")
		}
		end := at + blockHeaderSize + int(h.stored)
		all = append(all, [2]int{at, end})
		at = end
	}
	return all
}

// TestDamageCostsOnlyItsBlock flips bits and cuts pieces out at random places, and counts.
func TestDamageCostsOnlyItsBlock(t *testing.T) {
	const n = 60
	sound := blocks(t, n)
	where := bounds(sound)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		data := bytes.Clone(sound)
		hit := map[int]bool{}
		spoiled := int64(0)
		for range 1 + random.IntN(3) {
			b := 1 + random.IntN(n-1) // not the definition
			from, to := where[b][0], where[b][1]
			at := from + random.IntN(to-from)
			data[at] ^= 1 << random.IntN(8)
			if !hit[b] {
				spoiled += int64(to - from)
			}
			hit[b] = true
			if bytes.Equal(data[from:to], sound[from:to]) { // the same bit twice
				delete(hit, b)
				spoiled -= int64(to - from)
			}
		}
		frames, r := readAll(t, data)
		if want := n - len(hit); len(frames) != want {
			t.Fatalf("round %d: %d frames are left, want %d (blocks %v were hit)", round, len(frames), want, hit)
		}
		var reported int64
		for _, d := range r.Damage() {
			reported += d.Bytes
		}
		if reported != spoiled {
			t.Fatalf("round %d: %d bytes reported as damaged, %d were: %v", round, reported, spoiled, r.Damage())
		}
	}
}

func TestCutAnywhere(t *testing.T) {
	sound := blocks(t, 30)
	where := bounds(sound)
	for cut := fileHeaderSize; cut < len(sound); cut += 7 {
		whole := 0
		rest := cut - fileHeaderSize
		for _, b := range where {
			if b[1] <= cut {
				whole++
				rest = cut - b[1]
			}
		}
		frames, r := readAll(t, sound[:cut])
		if len(frames) != whole {
			t.Fatalf("cut at %d: %d frames, want %d", cut, len(frames), whole)
		}
		if rest == 0 && len(r.Damage()) != 0 || rest > 0 &&
			(len(r.Damage()) != 1 || r.Damage()[0].Bytes != int64(rest) || r.Damage()[0].Offset != int64(cut-rest)) {
			t.Fatalf("cut at %d, %d bytes into a block: damage %v", cut, rest, r.Damage())
		}
	}
}

func TestGoesOnAfterACutAndAnAppend(t *testing.T) {
	sound := blocks(t, 10)
	torn := sound[:len(sound)-5]
	_, r := readAll(t, torn)
	var more bytes.Buffer
	w := Append(&more, r.Sequence())
	if err := w.Write(mem.End{Time: 5}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	frames, r := readAll(t, append(bytes.Clone(torn), more.Bytes()...))
	if len(frames) != 10 || frames[9] != (mem.End{Time: 5}) {
		t.Errorf("%d frames, the last %v; want 10 and the end", len(frames), frames[len(frames)-1])
	}
	if len(r.Damage()) != 1 {
		t.Errorf("damage %v, want the torn block", r.Damage())
	}
}

func TestMissingAndRepeatedBlocks(t *testing.T) {
	sound := blocks(t, 10)
	where := bounds(sound)
	missing := append(bytes.Clone(sound[:where[4][0]]), sound[where[6][0]:]...)
	frames, r := readAll(t, missing)
	if len(frames) != 8 || len(r.Damage()) != 1 || r.Damage()[0].Text != "2 blocks are missing" {
		t.Errorf("%d frames, damage %v", len(frames), r.Damage())
	}
	twice := append(bytes.Clone(sound[:where[6][0]]), sound[where[4][0]:]...)
	frames, r = readAll(t, twice)
	if len(frames) != 10 || len(r.Damage()) != 1 {
		t.Errorf("%d frames, damage %v", len(frames), r.Damage())
	}
}

func TestDamagedStartOfFile(t *testing.T) {
	data := blocks(t, 5)
	data[3] ^= 4
	frames, r := readAll(t, data)
	if len(frames) != 5 || len(r.Damage()) != 1 || r.Damage()[0].Bytes != fileHeaderSize {
		t.Errorf("%d frames, damage %v", len(frames), r.Damage())
	}
}

func TestRefusals(t *testing.T) {
	newer := append(fileHeader(Major+1, 3), blocks(t, 2)[fileHeaderSize:]...)
	_, err := NewReader(bytes.NewReader(newer))
	var typed ErrNewer
	if !errors.As(err, &typed) || typed.Major != Major+1 || typed.Minor != 3 {
		t.Errorf("newer major version: %v", err)
	}
	minor := append(fileHeader(Major, Minor+9), blocks(t, 2)[fileHeaderSize:]...)
	if frames, _ := readAll(t, minor); len(frames) != 2 {
		t.Errorf("newer minor version: %d frames", len(frames))
	}
	for _, data := range []string{"", "\x89hti", "PK\x03\x04", "hello, this is some other file, long enough"} {
		if _, err := NewReader(bytes.NewReader([]byte(data))); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", data, err)
		}
	}
	w, _ := NewWriter(io.Discard)
	if err := w.Write(mem.Snapshot{Piece: make([]byte, MaxBlock)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a frame larger than a block: %v", err)
	}
	if err := w.Write(mem.Samples{Times: []int64{1}}); err == nil {
		t.Error("columns of different length were written")
	}
}

func TestUnknownKindsAreCounted(t *testing.T) {
	var file bytes.Buffer
	w, _ := NewWriter(&file)
	w.raw = append(w.raw, 0xff, 0x07, 3, 'a', 'b', 'c') // kind 1023
	w.frames = 1
	if err := w.Write(mem.End{Time: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	frames, r := readAll(t, file.Bytes())
	if len(frames) != 1 || r.Unknown() != 1 || len(r.Damage()) != 0 {
		t.Errorf("%d frames, %d unknown, damage %v", len(frames), r.Unknown(), r.Damage())
	}
}

// TestBombs: sizes that lie and data that swells must not take more than a block's memory.
func TestBombs(t *testing.T) {
	zeros := newCompressor().EncodeAll(make([]byte, 64<<20), nil)
	h := header{kind: blockFrames, codec: codecZstd, raw: MaxBlock, stored: uint32(len(zeros))}
	for name, change := range map[string]func(*header){
		"swells beyond what it says": func(h *header) { h.raw = 1000 },
		"swells beyond the limit":    func(h *header) {},
		"says more than the limit":   func(h *header) { h.raw = 1 << 31 },
		"says it is longer":          func(h *header) { h.stored = MaxBlock },
	} {
		t.Run(name, func(t *testing.T) {
			h := h
			h.payloadCheck = crcOf(zeros)
			change(&h)
			data := append(h.append(fileHeader(Major, Minor)), zeros...)
			frames, r := readAll(t, data)
			if len(frames) != 0 || len(r.Damage()) == 0 {
				t.Errorf("%d frames, damage %v", len(frames), r.Damage())
			}
			if cap(r.raw) > 2*MaxBlock || cap(r.window) > 2*MaxBlock {
				t.Errorf("buffers of %d and %d bytes", cap(r.raw), cap(r.window))
			}
		})
	}
}

func TestLoadKeepsWhatCanBeKept(t *testing.T) {
	run, err := Load(bytes.NewReader(encode(t, false,
		mem.Samples{Series: 5, Times: []int64{1}, Values: []int64{2}},
		mem.Samples{Series: 5, Times: []int64{1}, Values: []int64{2}},
		mem.Event{Time: 3, Kind: "log"})))
	if err != nil || len(run.Events) != 1 || len(run.Damage) != 1 {
		t.Fatalf("%v %+v", err, run)
	}
}

type failingWriter struct{ fail bool }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.fail {
		return 0, os.ErrDeadlineExceeded
	}
	return len(p), nil
}

func TestWriterGoesOnAfterAFailure(t *testing.T) {
	out := &failingWriter{}
	var file bytes.Buffer
	w, err := NewWriter(io.MultiWriter(out, &file))
	if err != nil {
		t.Fatal(err)
	}
	for i, fail := range []bool{false, true, false} {
		out.fail = fail
		if err := w.Write(mem.Event{Kind: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); (err != nil) != fail {
			t.Fatal(err)
		}
	}
	frames, r := readAll(t, file.Bytes())
	if len(frames) != 2 || len(r.Damage()) != 0 {
		t.Errorf("%d frames, damage %v", len(frames), r.Damage())
	}
}

func TestSaveIsTheCounterpartOfLoad(t *testing.T) {
	frames := append(append(everyKind(), imagined()...),
		mem.HeapUse{Process: 1, Time: 51, Step: 2, Live: 5, Sites: []mem.SiteUse{{Stack: 3, Live: 1}, {Stack: 7, Live: 4}}},
		mem.HeapUse{Process: 1, Time: 52, Step: 2, Live: 6, Sites: []mem.SiteUse{{Stack: 7, Live: 5}}},
		mem.Snapshot{Process: 1, Time: 80, Name: "big.pickle", Piece: bytes.Repeat([]byte("x"), 3<<20)})
	want, err := Load(bytes.NewReader(encode(t, false, frames...)))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := Save(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("saved and loaded:\n%+v\nwant\n%+v", got, want)
	}
}
