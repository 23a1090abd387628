package oomtext

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
)

// Words explains a message in sentences: what was asked, who held the memory, why it did not fit,
// and what that points to. Every figure is the message's own or a difference of two of them.
func Words(m *mem.OOMMessage) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	out = append(out, asked(m))
	out = append(out, deviceWords(m)...)
	if line := holders(m); line != "" {
		out = append(out, line)
	}
	if line := cause(m); line != "" {
		out = append(out, line)
	}
	for _, p := range m.Parts {
		say("XLA counts %v of %s.", p.Size, p.Name)
	}
	if m.Cut {
		say("The message is cut short: paste all of it to learn what PyTorch itself held.")
	}
	if m.Rounding > 0 {
		say("Figures are as printed, exact to %v.", m.Rounding)
	}
	return out
}

func names(m *mem.OOMMessage) string {
	return map[string]string{"pytorch": "PyTorch", "jax": "JAX (XLA)", "tensorflow": "TensorFlow", "cuda": "The CUDA driver"}[m.Framework]
}

func of(o mem.Optional) mem.Bytes { return mem.Bytes(o.Or(0)) }

func asked(m *mem.OOMMessage) string {
	where := ""
	if n, ok := m.Device.Get(); ok {
		where = fmt.Sprintf(" on GPU %d", n)
	} else if m.Backend == "mps" {
		where = " on Apple's GPU (MPS)"
	} else if m.Backend == "cpu" {
		where = " of host memory"
	}
	version := ""
	if m.Framework == "pytorch" && m.Versions != "" {
		version = fmt.Sprintf(" (the wording is that of %s)", m.Versions)
	}
	tensor := ""
	if len(m.Shape) > 0 {
		tensor = fmt.Sprintf(" for a tensor of shape %v", m.Shape)
		if m.Type != "" {
			tensor += " of type " + m.Type
		}
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
		}
		out = append(out, line+".")
	} else if m.Total.Known() {
		out = append(out, fmt.Sprintf("The device has %v.", of(m.Total)))
	}
	if m.Allowed.Known() && m.Backend != "mps" {
		out = append(out, fmt.Sprintf("A limit is set: this process may take %v (set_per_process_memory_fraction).", of(m.Allowed)))
	}
	for _, p := range m.Processes {
		out = append(out, fmt.Sprintf("Process %d held %v of the device.", p.PID, p.Used))
	}
	return out
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
	asked, limit := of(m.Requested), of(m.Total)
	if m.Allowed.Known() {
		limit = of(m.Allowed)
	}
	var others mem.Bytes
	for _, p := range m.Processes {
		others += p.Used
	}
	switch {
	case !m.Requested.Known():
		return ""
	case limit > 0 && asked > limit:
		return fmt.Sprintf("The request alone is larger than the device: no setting helps; %v must become smaller (batch, sequence, resolution) or be split.", asked)
	case m.Allocated.Known() && limit > 0 && of(m.Allocated) > limit:
		return "More is allocated than the device has: on Windows the driver spills to host memory, and some engines (vLLM's sleep mode) map memory themselves."
	case m.Unused.Known() && of(m.Unused) >= asked:
		return fmt.Sprintf("The unused %v would have held the request if they lay in one piece: this is fragmentation. Try %s.", of(m.Unused), unfragment(m))
	case others > 0 && m.Free.Known() && others+of(m.Free) >= asked && others > of(m.Reserved)/4:
		return fmt.Sprintf("Other processes held %v: without them the request would have fit.", others)
	case m.Total.Known() && m.Allocated.Known():
		return fmt.Sprintf("Tensors alone took %s of the device: it is full, not fragmented. Hold less at once (a smaller batch, checkpointed activations, a lighter optimizer state), or use a larger device.", percent(of(m.Allocated), of(m.Total)))
	case m.Backend == "mps" && m.Allowed.Known():
		return "The limit is PyTorch's own share of the unified memory: hold less at once, or raise PYTORCH_MPS_HIGH_WATERMARK_RATIO with care."
	}
	return ""
}

func unfragment(m *mem.OOMMessage) string {
	variable := "PYTORCH_CUDA_ALLOC_CONF"
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
