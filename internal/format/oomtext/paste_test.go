package oomtext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	rank0 = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of " +
		"23.69 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of " +
		"the allocated memory 20.11 GiB is allocated by PyTorch, and 2.10 GiB is reserved by PyTorch but unallocated."
	rank3 = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 3 has a total capacity of " +
		"23.69 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 23.17 GiB memory in use. " +
		"Of the allocated memory 19.11 GiB is allocated by PyTorch, and 3.60 GiB is reserved by PyTorch but unallocated."
)

// broken is a text in lines of at most n bytes, each with something before it.
func broken(text string, n int, before string) string {
	var lines []string
	for len(text) > n {
		lines, text = append(lines, before+text[:n]), text[n:]
	}
	return strings.Join(append(lines, before+text), "\n")
}

// TestPasted: however a message is pasted, it is read as the message itself is, or as less, and never as something
// else.
func TestPasted(t *testing.T) {
	want, err := Parse(rank3)
	if err != nil {
		t.Fatal(err)
	}
	figures := func(text string) string {
		m, err := Parse(text)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(m.Requested, m.Device, m.Total, m.Free, m.InUse, m.Allocated, m.Unused)
	}
	whole := fmt.Sprint(want.Requested, want.Device, want.Total, want.Free, want.InUse, want.Allocated, want.Unused)
	for name, text := range map[string]string{
		"ranks": "[rank0]: " + rank0 + "\n[rank3]: " + rank3,
		"colours": strings.NewReplacer("torch.", "\x1b[1;31mtorch.", "GiB", "\x1b[32mGiB\x1b[0m", "512.00",
			"\x1b[1m512.00\x1b[0m").Replace(rank3),
		"lost colours": "[1;36m(EngineCore_0 pid=253)[0;0m ERROR 10-16 06:12:38 [core.py:375] " +
			strings.Replace(rank3, "2.25 GiB", "[1m2.25 GiB[0m", 1),
		"vLLM":    broken(rank3, 120, "(VllmWorker rank=3 pid=412) ERROR 03-16 06:12:38 [multiproc_executor.py:375] "),
		"times":   broken(rank3, 90, "2026-01-02 10:11:12,345 "),
		"compose": broken(rank3, 90, "trainer-1  | [2026-01-02T10:11:12Z] "),
		"mail":    broken(rank3, 70, "> > "),
		"interleaved": "[rank0]: " + rank0[:66] + "\n[rank3]: " + rank3[:66] + "\n[rank0]: " + rank0[66:] + "\n[rank3]: " +
			rank3[66:],
	} {
		if got := figures(text); got != whole {
			t.Errorf("%s: %s, want %s", name, got, whole)
		}
	}
	for width := 20; width < len(rank3); width++ { // a terminal breaks lines anywhere
		text := broken(rank3, width, "")
		if got := figures(text); got != whole {
			t.Errorf("%d columns: %s, want %s", width, got, whole)
		}
	}
}

// TestPastedAtTheEnd: of a log longer than what is read at once the end counts.
func TestPastedAtTheEnd(t *testing.T) {
	log := strings.Repeat("step 1 loss 0.5\n", 2*maxMessage/16) + rank3
	m, err := Read(strings.NewReader(log))
	if err != nil || m.Device.Or(0) != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := Read(bytes.NewReader(bytes.Repeat([]byte("no memory problem here\n"), maxMessage/8))); !errors.Is(err, ErrNoMessage) {
		t.Fatal(err)
	}
}
