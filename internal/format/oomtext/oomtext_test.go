package oomtext

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"hightide/internal/mem"
)

type knownMessage struct {
	Message, Framework, Backend, Format string
	Total                               *float64 `json:"total_GiB"`
	Overhead                            *float64 `json:"overhead_MiB"`
	Basis                               string   `json:"overhead_basis"`
}

func knownMessages(t testing.TB) []knownMessage {
	t.Helper()
	file, err := os.Open("testdata/oom-messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []knownMessage
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var m knownMessage
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	if len(list) < 267 {
		t.Fatalf("%d messages, want 267", len(list))
	}
	return list
}

// TestMessages reads every message people posted: kind, figures that the collection states, and that
// the figures agree with each other and the words with the figures.
func TestMessages(t *testing.T) {
	for i, want := range knownMessages(t) {
		m, err := Parse(want.Message)
		if err != nil {
			t.Errorf("%d: %v: %.100q", i, err, want.Message)
			continue
		}
		wording := strings.TrimSuffix(want.Format, " (excerpt ends early)")
		if m.Wording != wording || want.Framework != m.Framework || want.Framework == "pytorch" && want.Backend != m.Backend {
			t.Errorf("%d: read as %s %s %s, want %s %s %s", i, m.Framework, m.Backend, m.Wording, want.Framework, want.Backend,
				wording)
		}
		if want.Total != nil && !near(m.Total, *want.Total*float64(mem.GiB), 0.006*float64(mem.GiB)) {
			t.Errorf("%d: total %v, want %v GiB: %q", i, m.Total, *want.Total, want.Message)
		}
		if strings.Contains(want.Message, "to allocate ") && !m.Requested.Known() {
			t.Errorf("%d: no request in %q", i, want.Message)
		}
		if strings.HasSuffix(want.Format, "torch2-sentence") && !(m.Allocated.Known() && m.Unused.Known() && m.Free.Known()) {
			t.Errorf("%d: no breakdown in %q", i, want.Message)
		}
		if want.Overhead != nil && want.Basis == "this process" {
			got := m.InUse.Or(0) - m.Allocated.Or(0) - m.Unused.Or(0)
			if math.Abs(float64(got)/float64(mem.MiB)-*want.Overhead) > 0.11 {
				t.Errorf("%d: outside the allocator %v, want %v MiB", i, mem.Bytes(got), *want.Overhead)
			}
		}
		words := strings.Join(Words(m), " ")
		if m.Requested.Known() && !strings.Contains(words, of(m.Requested).String()) || strings.Contains(words, "%!") ||
			len(words) < 40 {
			t.Errorf("%d: %q", i, words)
		}
		if _, err := Read(strings.NewReader(want.Message + "\n")); err != nil || !IsMessage([]byte(want.Message)) {
			t.Errorf("%d: pasted: %v", i, err)
		}
	}
}

func near(got mem.Optional, want, tolerance float64) bool {
	value, ok := got.Get()
	return ok && math.Abs(float64(value)-want) <= tolerance
}

// TestWords are sentences as people read them, for the causes that a message can show.
func TestWords(t *testing.T) {
	for _, test := range []struct {
		name, message string
		want          []string
	}{
		{"fragmentation", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.69 GiB of " +
			"which 1.00 GiB is free. Including non-PyTorch memory, this process has 22.60 GiB memory in use. Of the " +
			"allocated memory 17.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated. If " +
			"reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid " +
			"fragmentation.",
			[]string{"asked for 2.00 GiB on GPU 1", "1.00 GiB short", "Tensors held 17.0 GiB", "kept 5.00 GiB more",
				"614 MiB of this process were outside", "this is fragmentation, unless they belong to other streams or pools. " +
					"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}},
		{"a leak", "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 7.62 GiB of which 4.00 " +
			"MiB is free. Including non-PyTorch memory, this process has 7.61 GiB memory in use. Of the allocated memory 7.30 " +
			"GiB is allocated by PyTorch, and 61.50 MiB is reserved by PyTorch but unallocated.",
			[]string{"The unused 61.5 MiB would have held the request if they lay in one piece, unless they belong to other " +
				"streams or pools. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True wins about that much at most (61.5 MiB): the " +
				"other 7.30 GiB that PyTorch held are allocated", "! this is fragmentation"}},
		{"a leak, with pieces on both sides", "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity " +
			"of 7.62 GiB of which 40.00 MiB is free. Including non-PyTorch memory, this process has 7.58 GiB memory in use. Of " +
			"the allocated memory 7.30 GiB is allocated by PyTorch, and 30.50 MiB is reserved by PyTorch but unallocated.",
			[]string{"and neither alone. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True wins about that much at most (70.5 " +
				"MiB)", "hightide run` names the line", "! this is fragmentation"}},
		{"larger than the device", "RuntimeError: CUDA out of memory. Tried to allocate 166.42 GiB (GPU 0; 23.69 GiB " +
			"total capacity; 11.34 GiB already allocated; 10.20 GiB free; 12.25 GiB reserved in total by PyTorch)",
			[]string{"1.4 to 2.0", "alone is larger than the device", "kept 932 MiB more", "the other 1.24 GiB were outside"}},
		{"others", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 148.00 MiB. GPU 0 has a total capacity " +
			"of 79.25 GiB of which 11.19 MiB is free. Process 2635308 has 62.69 GiB memory in use. Including non-PyTorch " +
			"memory, this process has 16.54 GiB memory in use. Of the allocated memory 15.94 GiB is allocated by PyTorch, " +
			"and 25.65 MiB is reserved by PyTorch but unallocated.",
			[]string{"Process 2635308 held 62.7 GiB", "without them the request would have fit"}},
		{"mps", "MPS backend out of memory (MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB). " +
			"Tried to allocate 768.00 MB on private pool.",
			[]string{"768 MiB on Apple's GPU",
				"PyTorch held 5.56 GiB and others 1.10 GiB; 6.80 GiB are allowed, which leaves 143 MiB"}},
		{"tensor", "ResourceExhaustedError: OOM when allocating tensor with shape[16,112,112,147] and type float on " +
			"/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
			[]string{"asked for 113 MiB for a tensor of shape [16 112 112 147] of type float on GPU 0"}},
		{"in a log", "step 1 loss 2\nCUDA out of memory. Tried to allocate 1.00 GiB.\nstep 2\nCUDA out of memory. Tried " +
			"to allocate 3.00 GiB.",
			[]string{"asked for 3.00 GiB", "if there is more of the message"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Parse(test.message)
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Join(Words(m), "\n")
			for _, want := range test.want {
				if not, ok := strings.CutPrefix(want, "! "); ok == strings.Contains(words, cmp.Or(not, want)) {
					t.Errorf("%q is not so:\n%s", want, words)
				}
			}
		})
	}
}
