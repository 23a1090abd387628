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
			if text := say(sentence, m); text != "" {
				out = append(out, text)
			}
		}
		return append(out, another(m)...)
	}
	out = append(out, asked(m))
	out = append(out, deviceWords(m)...)
	if line := holders(m); line != "" {
		out = append(out, line)
	}
	if line := cause(m); line != "" {
		out = append(out, line)
	}
	for _, p := range m.Parts {
		out = append(out, fmt.Sprintf("XLA counts %v of %s.", p.Size, p.Name))
	}
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
	return []string{fmt.Sprintf("The text holds another message, on %s (“%s”): paste that alone to have it explained.", memory, m.Elsewhere)}
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
	if m.Framework == "pytorch" && m.Versions != "" && (m.Backend == "cuda" || m.Backend == "hip" || m.Backend == "mps") { // others took it over later
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
		return fmt.Sprintf("%s%s was asked for %s%s, more than any machine has: a size in the program is negative or overflowed. This is not a lack of memory.", names(m), version, beyond, where)
	}
	if !m.Requested.Known() {
		return fmt.Sprintf("%s%s ran out of memory%s%s; the message does not say how much it asked for.", names(m), version, where, tensor)
	}
	return fmt.Sprintf("%s%s asked for %v%s%s and could not get it.", names(m), version, of(m.Requested), tensor, where)
}

func deviceWords(m *mem.OOMMessage) []string {
	var out []string
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
		out = append(out, fmt.Sprintf("A limit is set: this process may take %v (set_per_process_memory_fraction).", of(m.Allowed)))
	}
	own := self(m)
	for i, p := range m.Processes {
		line := fmt.Sprintf("Process %d held %v of the device.", p.PID, p.Used)
		if i == own {
			line = fmt.Sprintf("Process %d held %v of the device: probably this one, as no other held what PyTorch had reserved.", p.PID, p.Used)
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

// beside is what lay outside PyTorch's allocator: in this process, and in others; unknown where the message does not tell
// them apart, and then both are in rest.
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
		if m.Allowed.Known() {
			line += fmt.Sprintf("; %v are allowed, which leaves %v", of(m.Allowed), of(m.Allowed)-of(m.Allocated)-of(m.Other))
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
			line += fmt.Sprintf("; %v of this process were outside PyTorch's allocator: the device's context, kernels, libraries such as NCCL", rest)
		}
	} else if rest := of(m.Total) - of(m.Free) - of(m.Reserved); m.Total.Known() && m.Free.Known() && m.Reserved.Known() && len(m.Processes) == 0 && rest > 2*m.Rounding {
		line += fmt.Sprintf("; the other %v were outside PyTorch's allocator: the device's context, kernels, libraries such as NCCL, other processes", rest)
	}
	return line + "."
}

// cause says what the figures point to, where they point somewhere.
func cause(m *mem.OOMMessage) string {
	if !m.Requested.Known() {
		return ""
	}
	asked, limit, whole := of(m.Requested), of(m.Total), "the device"
	if m.Allowed.Known() {
		limit, whole = of(m.Allowed), "what the process may take"
	}
	_, others, _ := beside(m)
	switch {
	case limit > 0 && asked > limit:
		return fmt.Sprintf("The request alone is larger than %s: no setting of the allocator helps; %v must become smaller (batch, sequence, resolution) or be split.", whole, asked)
	case m.Allocated.Known() && limit > 0 && of(m.Allocated) > limit:
		return fmt.Sprintf("More is allocated than %s: on Windows the driver spills to host memory, and some engines (vLLM's sleep mode) map memory themselves.", whole)
	case !m.Allowed.Known() && m.Free.Known() && of(m.Free) >= segment(m):
		return "The device had enough free for that. Perhaps a limit is set that this wording does not show, or memory was freed before the message was made: it does not tell."
	case m.Unused.Known() && of(m.Unused) >= asked:
		line := fmt.Sprintf("The unused %v would have held the request if they lay in one piece: this is fragmentation, unless they belong to other streams or pools. Try %s.", of(m.Unused), unfragment(m))
		if outside(m) > of(m.Allocated) {
			line += " " + fullness(m)
		}
		return line
	case !m.Allowed.Known() && m.Free.Known() && of(m.Free) >= asked:
		return fullness(m)
	case m.Unused.Known() && room(m).Known() && of(m.Unused)+of(room(m)) >= asked:
		return fmt.Sprintf("The unused %v and the %v that PyTorch could still take would have held the request together, and neither alone: this is fragmentation, unless the unused memory belongs to other streams or pools. Try %s.",
			of(m.Unused), of(room(m)), unfragment(m))
	case others.Or(0) > 0 && m.Free.Known() && of(others)+of(m.Free) >= asked && of(others) > of(m.Reserved)/4:
		return fmt.Sprintf("Other processes held %v: without them the request would have fit.", of(others))
	case m.Total.Known() && m.Allocated.Known():
		return fullness(m)
	case m.Backend == "mps" && m.Allowed.Known():
		return "The limit is PyTorch's own share of the unified memory: hold less at once, or raise PYTORCH_MPS_HIGH_WATERMARK_RATIO with care."
	}
	return ""
}

// segment is what PyTorch asks the driver for to serve the request, with default settings.
func segment(m *mem.OOMMessage) mem.Bytes {
	switch asked := of(m.Requested); {
	case m.Framework != "pytorch" || m.Backend == "mps" || m.Backend == "cpu" || m.Wording == "torch-async":
		return asked
	case asked <= mem.MiB:
		return 2 * mem.MiB
	case asked < 10*mem.MiB:
		return 20 * mem.MiB
	default:
		return (asked + 2*mem.MiB - 1) / (2 * mem.MiB) * (2 * mem.MiB)
	}
}

// outside is what of the device is known to be in use by others than PyTorch's allocator.
func outside(m *mem.OOMMessage) mem.Bytes {
	own, others, rest := beside(m)
	return max(of(rest), of(own)+of(others))
}

// fullness says who holds the device, where nothing but its size is in the way.
func fullness(m *mem.OOMMessage) string {
	const less = "Hold less at once (a smaller batch, checkpointed activations, a lighter optimizer state), or use a larger device."
	allocated, total, whole := of(m.Allocated), of(m.Total), "the device"
	if allowed, ok := m.Allowed.Get(); ok && mem.Bytes(allowed) < total {
		total, whole = mem.Bytes(allowed), "what the process may take"
	}
	own, others, _ := beside(m)
	outside := outside(m)
	switch {
	case total <= 0:
		return ""
	case outside > allocated && of(own) > of(others):
		return fmt.Sprintf("%v of the %v were this process's, but not in PyTorch's allocator: a context, libraries, another framework in the process. A smaller batch alone frees little.", of(own), total)
	case outside > allocated && own.Known() && others.Known():
		return fmt.Sprintf("%v of the %v were held by other processes: `nvidia-smi` names them. A smaller batch alone frees little.", of(others), total)
	case outside > allocated:
		return fmt.Sprintf("%v of the %v were not in PyTorch's allocator: other processes (`nvidia-smi` names them), the context, libraries. A smaller batch alone frees little.", outside, total)
	case allocated > total/2 && full(m, total):
		return fmt.Sprintf("Tensors alone took %s of %s: it is full, not fragmented. %s", percent(allocated, total), whole, less)
	case full(m, total):
		return fmt.Sprintf("Tensors took %s of %s. %s", percent(allocated, total), whole, less)
	case !m.Unused.Known():
		return fmt.Sprintf("Tensors took %s of %s. What PyTorch kept unused is not in this text, so it does not tell full from fragmented.", percent(allocated, total), whole)
	}
	return fmt.Sprintf("Tensors took %s of %s. What the device had free is not in this text, so it does not tell full from fragmented.", percent(allocated, total), whole)
}

// full says whether no arrangement of what PyTorch held could have served the request.
func full(m *mem.OOMMessage, total mem.Bytes) bool {
	asked, room := of(m.Requested), room(m)
	return of(m.Allocated)+asked > total || m.Unused.Known() && room.Known() && (of(m.Unused)+of(room) < asked || asked <= of(room) && of(room) < segment(m) && of(m.Unused) < asked)
}

// room is what PyTorch could still have taken of the device.
func room(m *mem.OOMMessage) mem.Optional {
	room, known := m.Free.Get()
	if !known {
		return mem.Optional{}
	}
	if allowed, ok := m.Allowed.Get(); ok && m.Reserved.Known() {
		room = min(room, max(0, allowed-m.Reserved.Or(0)))
	}
	return mem.Some(room)
}

func unfragment(m *mem.OOMMessage) string {
	variable := "PYTORCH_CUDA_ALLOC_CONF"
	switch m.Backend {
	case "cuda", "hip":
	case "npu":
		return "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"
	default:
		return "PYTORCH_ALLOC_CONF=expandable_segments:True, if its version has that"
	}
	for _, advice := range m.Advice {
		if name, _, _ := strings.Cut(advice, "="); strings.HasPrefix(name, "PYTORCH_") && name != "PYTORCH_ALLOC_CONF" { // 2.9 names that one, and does not read it
			variable = name
		}
	}
	if m.Wording == "torch1-cached" || m.Wording == "torch1-parenthesis" {
		return variable + "=max_split_size_mb:128 (expandable_segments:True from PyTorch 2.1 on)"
	}
	return variable + "=expandable_segments:True"
}

func percent(part, whole mem.Bytes) string {
	if whole <= 0 {
		return "all"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
