package oomtext

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// Words explains a message in sentences: what was asked, who held the memory, why it did not fit,
// and what that points to. Every figure is the message's own or a difference of two of them.
func Words(m *mem.OOMMessage) []string {
	var out []string
	if says := sayings(m.Wording); says != nil {
		for _, sentence := range says {
			if text := fillIn(sentence, m); text != "" {
				out = append(out, text)
			}
		}
		if len(out) == 0 {
			out = append(out, "Memory ran out; the message does not say how much was asked for, nor what there is.")
		}
		return append(append(out, listed(m)...), another(m)...)
	}
	out = append(out, asked(m))
	out = append(out, deviceWords(m)...)
	if line := holders(m); line != "" {
		out = append(out, line)
	}
	if line := cause(m); line != "" {
		out = append(out, line)
	}
	out = append(out, listed(m)...)
	if m.Cut {
		out = append(out, "What PyTorch itself held is not in this text: if there is more of the message, paste all of it.")
	}
	if m.Rounding > 0 {
		out = append(out, fmt.Sprintf("Figures are as printed, exact to %v.", m.Rounding))
	}
	return append(out, another(m)...)
}

// gpu says whether the device is one.
func gpu(m *mem.OOMMessage) bool {
	return m.Backend == "cuda" || m.Backend == "hip" || m.Backend == "xpu"
}

// sayings are the sentences of a wording; nil: its figures are explained.
func sayings(wording string) []string {
	for i := range others {
		if others[i].name == wording {
			return others[i].says
		}
	}
	for i := range wordings {
		if wordings[i].name == wording {
			return wordings[i].says
		}
	}
	return nil
}

// another names a message on other memory that stands in the same text.
func another(m *mem.OOMMessage) []string {
	if m.Elsewhere == "" {
		return nil
	}
	memory := "host memory"
	if w := (wording{backend: m.Backend}); w.onHost() {
		memory = "a device's memory"
	}
	return []string{fmt.Sprintf("The text holds another message, on %s (“%s”): paste that alone to have it explained.",
		memory, m.Elsewhere)}
}

func names(m *mem.OOMMessage) string {
	return map[string]string{"pytorch": "PyTorch", "jax": "JAX (XLA)", "tensorflow": "TensorFlow"}[m.Framework]
}

func of(o mem.Optional) mem.Bytes { return mem.Bytes(o.Or(0)) }

// anySize is a size asked for, also one that cannot be.
var anySize = words.Lazy(`[Tt]ried to allocate (\d[\d.]* ?\w+)`)

func asked(m *mem.OOMMessage) string {
	where := ""
	if n, ok := m.Device.Get(); ok {
		where = fmt.Sprintf(" on GPU %d", n)
		if !gpu(m) {
			where = fmt.Sprintf(" on %s %d", strings.ToUpper(m.Backend), n)
		}
	} else if m.Backend == "mps" {
		where = " on Apple's GPU (MPS)"
	} else if m.Backend == "cpu" {
		where = " of host memory"
	}
	version := ""
	// others took it over later
	if m.Framework == "pytorch" && m.Versions != "" && (m.Backend == "cuda" || m.Backend == "hip" || m.Backend == "mps") {
		version = fmt.Sprintf(" (the wording is that of %s)", m.Versions)
	}
	tensor := ""
	if len(m.Shape) > 0 {
		tensor = fmt.Sprintf(" for a tensor of shape %v", m.Shape)
		if m.Type != "" {
			tensor += " of type " + m.Type
		}
	}
	if beyond := group(anySize, m.Text); beyond != "" && !m.Requested.Known() {
		return fmt.Sprintf("%s%s was asked for %s%s, more than any machine has: a size in the program is negative or "+
			"overflowed. This is not a lack of memory.", names(m), version, beyond, where)
	}
	if !m.Requested.Known() {
		return fmt.Sprintf("%s%s ran out of memory%s%s; the message does not say how much it asked for.", names(m), version,
			where, tensor)
	}
	return fmt.Sprintf("%s%s asked for %v%s%s%s and could not get it.", names(m), version, of(m.Requested), tensor, where,
		inProgram(m.Text))
}

// inProgram names the compiled function that XLA says it is of; JAX calls what it jitted jit_ and the function's name.
func inProgram(text string) string {
	name := strings.TrimPrefix(group(executableOf, text), "jit_")
	if name == "" {
		return ""
	}
	return " for the compiled function " + name
}

func deviceWords(m *mem.OOMMessage) []string {
	var out []string
	if m.Total.Known() && m.Free.Known() && of(m.Free) > of(m.Total)+slack(m) {
		return nil // see contradiction
	}
	if m.Total.Known() && m.Free.Known() {
		line := fmt.Sprintf("The device has %v, of which %v were free", of(m.Total), of(m.Free))
		if missing := of(m.Requested) - of(m.Free); m.Requested.Known() && missing > 0 {
			line += fmt.Sprintf(": %v short of the request", missing)
		} else if needed := segment(m); m.Requested.Known() && of(m.Free) < needed {
			line += fmt.Sprintf(": less than the segment of %v that PyTorch takes for a request of this size", needed)
		}
		out = append(out, line+".")
	} else if m.Total.Known() {
		out = append(out, fmt.Sprintf("The device has %v.", of(m.Total)))
	}
	if m.Allowed.Known() && m.Backend != "mps" {
		out = append(out, fmt.Sprintf("A limit is set: this process may take %v (set_per_process_memory_fraction).",
			of(m.Allowed)))
	}
	own := self(m)
	for i, p := range m.Processes {
		line := fmt.Sprintf("Process %d held %v of the device.", p.PID, p.Used)
		if i == own {
			line = fmt.Sprintf("Process %d held %v of the device: probably this one, as no other held what PyTorch had "+
				"reserved.", p.PID, p.Used)
		}
		out = append(out, line)
	}
	if len(m.Processes) > 0 && own == unclear {
		out = append(out, "One of these processes may be this one: the message does not name its own.")
	}
	return out
}

const (
	nobody  = -1 // of the processes named
	unclear = -2
)

// self is which of the processes named is this one. A message without the sentence on "this process" names it by
// its number outside the container, which the program does not know for its own.
func self(m *mem.OOMMessage) int {
	if m.InUse.Known() || len(m.Processes) == 0 {
		return nobody
	}
	at := unclear
	for i, p := range m.Processes {
		if reserved, ok := m.Reserved.Get(); ok && p.Used >= mem.Bytes(reserved) {
			if at != unclear {
				return unclear
			}
			at = i
		}
	}
	return at
}

// beside is what lay outside PyTorch's allocator: in this process, and in others; unknown where the message does not
// tell them apart, and then both are in rest.
func beside(m *mem.OOMMessage) (own, others, rest mem.Optional) {
	at := self(m)
	if used, ok := m.InUse.Get(); ok && m.Reserved.Known() {
		own = mem.Some(max(0, used-m.Reserved.Or(0)))
	} else if at >= 0 {
		own = mem.Some(max(0, int64(m.Processes[at].Used)-m.Reserved.Or(0)))
	}
	if len(m.Processes) > 0 && at != unclear {
		var sum mem.Bytes
		for i, p := range m.Processes {
			if i != at {
				sum += p.Used
			}
		}
		others = mem.Some(int64(sum))
	}
	if m.Total.Known() && m.Free.Known() && m.Reserved.Known() {
		rest = mem.Some(max(0, m.Total.Or(0)-m.Free.Or(0)-m.Reserved.Or(0)))
	}
	return own, others, rest
}

// holders splits what this process held.
func holders(m *mem.OOMMessage) string {
	if m.Backend == "mps" && m.Allocated.Known() {
		line := fmt.Sprintf("PyTorch held %v and others %v", of(m.Allocated), of(m.Other))
		if room := of(m.Allowed) - of(m.Allocated) - of(m.Other); m.Allowed.Known() && room >= 0 {
			line += fmt.Sprintf("; %v are allowed, which leaves %v", of(m.Allowed), room)
		} else if m.Allowed.Known() {
			line += fmt.Sprintf("; %v are allowed, and that is %v more", of(m.Allowed), -room)
		}
		return line + "."
	}
	if !m.Allocated.Known() {
		return ""
	}
	line := fmt.Sprintf("Tensors held %v", of(m.Allocated))
	if m.Private.Known() {
		line += fmt.Sprintf(" (%v of it in private pools, as CUDA graphs have them)", of(m.Private))
	}
	if m.Unused.Known() {
		line += fmt.Sprintf(", and PyTorch kept %v more that no tensor used", of(m.Unused))
	}
	if used, ok := m.InUse.Get(); ok && used > 0 && m.Reserved.Known() {
		if rest := mem.Bytes(used) - of(m.Reserved); rest > 0 {
			line += fmt.Sprintf("; %v of this process were outside PyTorch's allocator: the device's context, kernels, "+
				"libraries such as NCCL", rest)
		}
	} else if rest := of(m.Total) - of(m.Free) - of(m.Reserved); m.Total.Known() && m.Free.Known() && m.Reserved.Known() && len(m.Processes) == 0 && rest > 2*m.Rounding && !limitAlone(m) {
		line += fmt.Sprintf("; the other %v were outside PyTorch's allocator: the device's context, kernels, libraries "+
			"such as NCCL, other processes", rest)
	}
	return line + "."
}
