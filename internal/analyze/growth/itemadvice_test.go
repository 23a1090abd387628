package growth

import (
	"strings"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestItemAdvice: what to store follows from what an item is, and nothing is advised that would raise or save nothing.
func TestItemAdvice(t *testing.T) {
	const KiB, MiB = 1 << 10, 1 << 20
	part := func(at string, elements, bytes, storage int64, grad string) mem.HeldPart {
		return mem.HeldPart{At: at, Type: "Tensor", Elements: elements, Bytes: bytes, Storage: storage, GradFn: grad}
	}
	for name, test := range map[string]struct {
		source  string
		holder  mem.Holder
		want    []string
		without string
	}{
		"one number": {"history.append(loss)", mem.Holder{Graph: true, Saved: mem.Some(MiB),
			Parts: []mem.HeldPart{part("", 1, 4, 4, "MeanBackward0")}},
			[]string{"`loss.item()`", "That saves 1.00 MiB per step"}, "detach"},
		"many elements": {"history.append(losses)", mem.Holder{Graph: true, Saved: mem.Some(MiB),
			Parts: []mem.HeldPart{part("", 640, 2560, 2560, "PowBackward0")}},
			[]string{"`losses.detach()`", "The tensors themselves stay, 2.50 KiB an item"}, "item()"},
		"a dict of both": {"outs.append(log)", mem.Holder{Graph: true, Saved: mem.Some(MiB), Parts: []mem.HeldPart{
			part("['prediction']", 1<<18, MiB, MiB, "AddmmBackward0"), part("['loss']", 1, 4, 4, "MeanBackward0")}},
			[]string{"`log['prediction'].detach()` and `log['loss'].item()`", "That saves 512 KiB per step",
				"stay, 1.00 MiB an item"}, ""},
		"no graph alive": {"outs.append(out)", mem.Holder{Graph: true, Saved: mem.Some(0),
			Parts: []mem.HeldPart{part("", 1<<18, MiB, MiB, "AddmmBackward0")}},
			[]string{"Bound `kept`", "`.detach()` would save nothing"}, "out.detach"},
		"a view": {"sheet.append(x)", mem.Holder{Parts: []mem.HeldPart{part("", 6144, 24*KiB, 3*MiB, "")}},
			[]string{"24.0 KiB of 3.00 MiB", "`x.clone()`", "MALLOC_MMAP_THRESHOLD_=131072", "That saves 1016 KiB per step"},
			"Bound"},
		"a view of NumPy": {"sheet.append(x[0])",
			mem.Holder{Parts: []mem.HeldPart{{Type: "ndarray", Elements: 6144, Bytes: 48 * KiB, Storage: 96 * KiB}}},
			[]string{"`x[0].copy()`"}, "MALLOC"},
		"plain": {"kept[step] = make()", mem.Holder{Parts: []mem.HeldPart{{Type: "ndarray", Elements: 1 << 17, Bytes: MiB,
			Storage: MiB}}},
			[]string{"Bound `kept`", "That saves 1.00 MiB per step, 100 MiB over this run"}, "clone"},
		"exceptions": {"errors.append(e)", mem.Holder{Contains: "ValueError", Traceback: true},
			[]string{"At train.py:7 store what is needed of them", "That saves 1.00 MiB per step", "`.with_traceback(None)`"},
			"deque"},
		"log records": {"", mem.Holder{Contains: "LogRecord"}, []string{"give it a target", "Where `kept` is a list"}, "deque"},
		"timers": {"", mem.Holder{Contains: "TimerHandle"},
			[]string{"Cancel the timers", "until then `kept` keeps", "That saves"}, "deque"},
	} {
		t.Run(name, func(t *testing.T) {
			h := test.holder
			h.Name, h.Kind, h.Where = "kept", "list", mem.Location{File: "train.py", Line: 7}
			in := Find(facts.Of(mem.NewRun(), func(string, int) string { return test.source }))
			g := growing{holder: &h, slope: MiB, kept: 100 * MiB, graph: keepsGraph(h), source: "heap"}
			said := in.itemAdvice(&g, h.Where)
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("without %q: %s", want, said)
				}
			}
			if test.without != "" && strings.Contains(said, test.without) {
				t.Errorf("with %q: %s", test.without, said)
			}
		})
	}
}
