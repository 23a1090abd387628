package oomtext

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
)

// cause says what the figures point to, where they point somewhere.
func cause(m *mem.OOMMessage) string {
	if !m.Requested.Known() {
		return ""
	}
	if line := contradiction(m); line != "" {
		return line
	}
	limited := m.Allowed.Known()
	m = bound(m)
	asked, limit, whole := of(m.Requested), of(m.Total), "the device"
	if m.Allowed.Known() {
		limit, whole = of(m.Allowed), "what the process may take"
	}
	_, others, _ := beside(m)
	switch {
	case limit > 0 && asked > limit:
		return fmt.Sprintf("The request alone is larger than %s: no setting of the allocator helps; %v must become "+
			"smaller (batch, sequence, resolution) or be split.", whole, asked)
	case m.Allocated.Known() && limit > 0 && of(m.Allocated) > limit:
		return fmt.Sprintf("More is allocated than %s: on Windows the driver spills to host memory, and some engines "+
			"(vLLM's sleep mode) map memory themselves.", whole)
	case oneAllocation(m):
		return fmt.Sprintf("Intel's driver limits a single allocation, on many of its GPUs to 4 GiB. This request of %v "+
			"is of that size or larger, and the device had room: that limit is the likely cause, not a lack of memory. Split "+
			"the tensor, or see whether a newer driver or PyTorch allows larger ones.", asked)
	case limitAlone(m):
		return limitReached(m)
	case limited && !m.Allowed.Known() && of(m.Free) >= segment(m):
		return "By these figures neither the device nor the process's limit was in the way. Memory may have been freed " +
			"before the message was made: it does not tell."
	case !m.Allowed.Known() && m.Free.Known() && of(m.Free) >= segment(m):
		return "The device had enough free for that. Perhaps a limit is set that this wording does not show, or memory " +
			"was freed before the message was made: it does not tell."
	case m.Unused.Known() && of(m.Unused) >= asked && nearlyAll(m):
		return fmt.Sprintf("The unused %v would have held the request if they lay in one piece, unless they belong to "+
			"other streams or pools. %s", of(m.Unused), atMost(m, of(m.Unused)))
	case m.Unused.Known() && of(m.Unused) >= asked:
		line := fmt.Sprintf("The unused %v would have held the request if they lay in one piece: this is fragmentation, "+
			"unless they belong to other streams or pools. Set %s.", of(m.Unused), unfragment(m))
		if outside(m) > of(m.Allocated) {
			line += " " + fullness(m)
		}
		return line
	case !m.Allowed.Known() && m.Free.Known() && of(m.Free) >= asked:
		return fullness(m)
	case m.Unused.Known() && room(m).Known() && of(m.Unused)+of(room(m)) >= asked && nearlyAll(m):
		return fmt.Sprintf("The unused %v and the %v that PyTorch could still take would have held the request together, "+
			"and neither alone. %s", of(m.Unused), of(room(m)), atMost(m, of(m.Unused)+of(room(m))))
	case m.Unused.Known() && room(m).Known() && of(m.Unused)+of(room(m)) >= asked:
		return fmt.Sprintf("The unused %v and the %v that PyTorch could still take would have held the request together, "+
			"and neither alone: this is fragmentation, unless the unused memory belongs to other streams or pools. Set %s.",
			of(m.Unused), of(room(m)), unfragment(m))
	case others.Or(0) > 0 && m.Free.Known() && of(others)+of(m.Free) >= asked && of(others) > of(m.Reserved)/4:
		return fmt.Sprintf("Other processes held %v: without them the request would have fit.", of(others))
	case m.Total.Known() && m.Allocated.Known():
		return fullness(m)
	case m.Backend == "mps" && m.Allowed.Known():
		return "The limit is PyTorch's own share of the unified memory: hold less at once, or raise " +
			"PYTORCH_MPS_HIGH_WATERMARK_RATIO with care."
	}
	return ""
}

// nearlyAll says whether nine tenths of what PyTorch held and could still take are allocated: no setting wins much
// then. Where more lies outside its allocator, that is the cause.
func nearlyAll(m *mem.OOMMessage) bool {
	return of(m.Allocated) >= outside(m) && of(m.Unused)+of(room(m)) <= of(m.Allocated)/9
}

// atMost says how little a setting of the allocator wins where nearly all is allocated.
func atMost(m *mem.OOMMessage, most mem.Bytes) string {
	return fmt.Sprintf("%s wins about that much at most (%v): the other %v that PyTorch held are allocated, and it moves "+
		"none of them. Where they grow with the steps, the next requests fail all the same: `hightide run` names the line "+
		"that keeps them. %s", unfragment(m), most, of(m.Allocated), less)
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

// ofItsOwn says how much holding less can do where others hold more.
func ofItsOwn(m *mem.OOMMessage) string {
	if allocated := of(m.Allocated); allocated >= of(m.Requested) {
		return fmt.Sprintf("A smaller batch frees a part of the %v that tensors held, and no more.", allocated)
	}
	return "A smaller batch alone frees little."
}

const less = "Hold less at once (a smaller batch, checkpointed activations, a lighter optimizer state), or use a " +
	"larger device."

// fullness says who holds the device, where nothing but its size is in the way.
func fullness(m *mem.OOMMessage) string {
	allocated, total, whole := of(m.Allocated), of(m.Total), "the device"
	if allowed, ok := m.Allowed.Get(); ok && mem.Bytes(allowed) < total {
		total, whole = mem.Bytes(allowed), "what the process may take"
	}
	own, others, _ := beside(m)
	outside := outside(m)
	switch {
	case total <= 0:
		return ""
	// what lies outside the allocator does not count against the limit
	case m.Allowed.Known() && allocated+of(m.Unused) > total/2:
		return fmt.Sprintf("Tensors took %s of %s. %s", percent(allocated, total), whole, less)
	case outside > allocated && of(own) > of(others):
		return fmt.Sprintf("%v of the %v were this process's, but not in PyTorch's allocator: a context, libraries, "+
			"another framework in the process. %s", of(own), total, ofItsOwn(m))
	case outside > allocated && own.Known() && others.Known():
		return fmt.Sprintf("%v of the %v were held by other processes: `nvidia-smi` names them. %s", of(others), total,
			ofItsOwn(m))
	case outside > allocated:
		return fmt.Sprintf("%v of the %v were not in PyTorch's allocator: other processes (`nvidia-smi` names them), the "+
			"context, libraries. %s", outside, total, ofItsOwn(m))
	case allocated > total/2 && full(m, total):
		return fmt.Sprintf("Tensors alone took %s of %s: it is full, not fragmented. %s", percent(allocated, total), whole,
			less)
	case full(m, total):
		return fmt.Sprintf("Tensors took %s of %s. %s", percent(allocated, total), whole, less)
	case !m.Unused.Known():
		return fmt.Sprintf("Tensors took %s of %s. What PyTorch kept unused is not in this text, so it does not tell full "+
			"from fragmented.", percent(allocated, total), whole)
	}
	return fmt.Sprintf("Tensors took %s of %s. What the device had free is not in this text, so it does not tell full "+
		"from fragmented.", percent(allocated, total), whole)
}

// full says whether no arrangement of what PyTorch held could have served the request.
func full(m *mem.OOMMessage, total mem.Bytes) bool {
	asked, room := of(m.Requested), room(m)
	return of(m.Allocated)+asked > total || m.Unused.Known() && room.Known() &&
		(of(m.Unused)+of(room) < asked || asked <= of(room) && of(room) < segment(m) && of(m.Unused) < asked)
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
		// 2.9 names that one, and does not read it
		if name, _, _ := strings.Cut(advice, "="); strings.HasPrefix(name, "PYTORCH_") && name != "PYTORCH_ALLOC_CONF" {
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

// processes is what the processes that the message names hold together, with this one.
func processes(m *mem.OOMMessage) (sum mem.Bytes) {
	for _, p := range m.Processes {
		sum += p.Used
	}
	return sum + of(m.InUse)
}

// slack is how far figures that are held against each other may be apart: each is rounded, and they are read one
// after the other.
func slack(m *mem.OOMMessage) mem.Bytes { return 3*m.Rounding + 16*mem.MiB }

// contradiction says that figures of the text cannot all be right of one memory, so that nothing follows from them;
// "": they can.
func contradiction(m *mem.OOMMessage) string {
	total, free := of(m.Total), of(m.Free)
	held := max(of(m.Reserved), of(m.InUse))
	switch {
	case !m.Total.Known() || !m.Free.Known():
		return ""
	case free > total+slack(m):
		return fmt.Sprintf("The text contradicts itself: it gives the device %v in all and %v free. The two count "+
			"different memory, as on a GPU that shares the host's. "+
			"So the text does not tell what was in the way: ask the device's own tool how much there is (nvidia-smi, "+
			"rocm-smi --showmeminfo all).", total, free)
	case m.InUse.Or(0) > 0 && m.Reserved.Known() && of(m.Reserved) > of(m.InUse)+slack(m):
		return fmt.Sprintf("The text contradicts itself: this process has %v in use, and PyTorch in it %v. What PyTorch "+
			"counts is not all of this device, or the driver does not see all of it. "+
			"So the text does not tell what was in the way.", of(m.InUse), of(m.Reserved))
	case processes(m)+free > total+slack(m):
		return fmt.Sprintf("The text contradicts itself: the processes that it names hold %v, and %v are free, of a "+
			"device of %v. Memory that they share counts more than once, or some is not the device's. "+
			"So the text does not tell what was in the way.", processes(m), free, total)
	case held <= total && free+held > total+slack(m):
		return fmt.Sprintf("The text contradicts itself: %v free and %v held by PyTorch are more than the device's %v. "+
			"Memory that is not the device's is counted with it, "+
			"or some was given back while the message was made. So the text does not tell what was in the way.", free, held,
			total)
	}
	return ""
}

// bound is the message without a limit that the request would have stayed below: that was not in the way.
func bound(m *mem.OOMMessage) *mem.OOMMessage {
	if m.Allowed.Known() && m.Reserved.Known() && m.Backend != "mps" &&
		of(m.Allowed)-of(m.Reserved) >= segment(m)+slack(m) && m.Free.Known() {
		unlimited := *m
		unlimited.Allowed = mem.Optional{}
		return &unlimited
	}
	return m
}

// limitAlone says whether the process's own limit was in the way, and the device was not.
func limitAlone(m *mem.OOMMessage) bool {
	return m.Allowed.Known() && m.Reserved.Known() && m.Backend != "mps" && m.Free.Known() && of(m.Free) >= segment(m) &&
		of(m.Allowed)-of(m.Reserved) < segment(m)+slack(m)
}

// limitReached says so. What other processes hold of the device does not count against the limit.
func limitReached(m *mem.OOMMessage) string {
	line := fmt.Sprintf("The limit of %v is reached: PyTorch held %v of it, and the request would exceed it. The "+
		"device had %v free, so what other processes hold does not matter. "+
		"Raise the limit, which the program or its test runner sets (torch.cuda.set_per_process_memory_fraction; several "+
		"test processes on one GPU share it out), or hold less.",
		of(m.Allowed), of(m.Reserved), of(m.Free))
	if m.Unused.Known() && of(m.Unused) >= of(m.Requested) {
		line += fmt.Sprintf(" Within the limit, the unused %v would have held the request if they lay in one piece: %s "+
			"may help, too.", of(m.Unused), unfragment(m))
	}
	return line
}

// oneAllocation says whether a limit of Intel's driver on a single allocation is the likely cause.
func oneAllocation(m *mem.OOMMessage) bool {
	const most = 4 * mem.GiB
	if m.Backend != "xpu" || of(m.Requested) < most-m.Rounding || !m.Total.Known() {
		return false
	}
	room := of(m.Total) - of(m.Reserved)
	if m.Free.Known() {
		room = of(m.Free)
	}
	return room >= of(m.Requested)
}
