package frameworks

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Torch is how recordings and interpreters call PyTorch.
const Torch = "torch"

// What its processes tell of it, as names of facts.
const (
	FactCUDA          = "torch.cuda"        // the version of CUDA that it was built for: 13.2
	FactArchitectures = "torch.arch_list"   // what it has kernels for: sm_75 sm_80 compute_90
	FactHIP           = "torch.hip"         // the version of ROCm that it was built for
	FactAccelerator   = "torch.accelerator" // which other accelerator it was built for
	FactRuntime       = "torch.runtime"     // RuntimeIsInside, or absent

	RuntimeIsInside = "inside"

	NumberFakeRank  = "torch.fake_rank"  // a rank of a world of which nobody else is there
	NumberFakeWorld = "torch.fake_world" // how many ranks that world has
)

// How its allocator's history is recorded, and written to a file.
const (
	RecordHistory = "torch.cuda.memory._record_memory_history"
	DumpSnapshot  = "torch.cuda.memory._dump_snapshot"

	// A backward pass that keeps the graphs of gradients, and what gives gradients with a graph and keeps none.
	KeepsOwnGraph = `\bbackward\(.*\bcreate_graph *= *True`
	OwnGraph      = "backward(create_graph=True)"
	WithoutGraph  = "torch.autograd.grad(…, create_graph=True)"
)

// OwnLimit is how a program limits itself to a part of a device.
const OwnLimit = "torch.cuda.set_per_process_memory_fraction"

// Hints for a file or run that lacks that history.
const (
	WasHistoryOn       = "was recording on? " + RecordHistory + "()"
	RecordWithHistory  = "record it with " + RecordHistory
	SnapshotsOrHistory = "hightide run --snapshot-on exit records one; " + RecordHistory + " must be on"
)

// Advice on how tensors are shared between processes.
const (
	LoadShared = "Load with torch.load(…, mmap=True) so that ranks share the file's pages, or on one rank and broadcast."
	ShareFiles = "call torch.multiprocessing.set_sharing_strategy('file_system')"

	// SharedPrefix begins the names of the blocks of shared memory that it sends tensors in.
	SharedPrefix = "torch_"
)

// Compile is what compiles a model.
const Compile = "torch.compile"

// ImportedByStep is what the first step of PyTorch's optimizers imports. That takes longer than all else that a small
// training does.
const ImportedByStep = "torch._dynamo"

// torchProbe tells how PyTorch was built. version.py is read as text: importing torch takes a second and hundreds of
// megabytes.
const torchProbe = `
    spec = find_spec("torch") if "torch" in out["frameworks"] else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        with open(folder + "/version.py") as f:
            for key, value in re.findall(r"^(cuda|hip)\b[^=\n]*= *'([^']*)'", f.read(), re.M):
                out[{"cuda": "torch_cuda", "hip": "torch_rocm"}[key]] = value
        library = folder + "/lib/libc10_cuda.so"
        if "torch_cuda" in out and os.path.exists(library):
            with open(library, "rb") as f:
                out["torch_runtime_inside"] = b"libcudart.so" not in f.read()
`

var torch = Framework{
	Name: Torch, Title: "PyTorch", Short: "Torch", Bench: "pytorch",
	Code:     []string{"/torch/"},
	Carriers: []string{"torch", "functorch", "torchgen", "triton"},
	Unwinder: []string{"torch::unwind::unwind", "torch::CapturedTraceback::gather"},
	Freed: map[string]Cache{"compiled graphs": {
		Code: []string{"/torch/_", "/torch/fx/"},
		Advice: "Call %s with few shapes and without Python numbers that differ from call to call, or with " +
			"dynamic=True: each is compiled again. torch.compiler.reset() drops them.",
	}},
	Launcher: &Launcher{Name: "torchrun", Modules: []string{"torch.distributed.run", "torch.distributed.launch"},
		Switches: []string{"standalone", "module", "m", "no-python", "run-path", "virtual-local-rank"},
		PerNode:  []string{"nproc-per-node"}},
	AgainstGaps: expandable,
	Changes:     torchChanges,
	Imagined:    torchImagined,
}

// torchChanges are what helps most programs: no graphs that are not used, the allocator's setting, fewer bytes a number,
// less kept for the gradients.
func torchChanges(s Situation) (changes []Change) {
	for _, e := range s.Run.Events {
		if e.Kind != mem.EventUnusedGraphs || e.Where == nil || e.Numbers["used"] > 0 ||
			strings.Contains(e.Where.File, ",") {
			continue
		}
		line := fmt.Sprintf("%s:%d", path.Base(e.Where.File), e.Where.Line)
		change := Change{Kind: "no_grad:" + line, Switch: "no_grad:" + line,
			What: "no graphs at " + line + " (torch.no_grad)"}
		if !slices.ContainsFunc(changes, func(c Change) bool { return c.Kind == change.Kind }) {
			changes = append(changes, change)
		}
	}
	return append(changes, Change{Kind: "allocator", What: "expandable segments", Setting: "expandable_segments:True"},
		Change{Kind: "bf16", What: "bf16 autocast", Switch: "bf16"},
		Change{Kind: "checkpointing", What: "activation checkpointing", Switch: "checkpointing"})
}

// NoGrad is what computes without saving anything for a backward pass.
const NoGrad = "torch.no_grad()"

// expandable is the setting by which the caching allocator has few gaps, as the build takes it.
func expandable(facts map[string]string) string {
	switch {
	case facts[FactHIP] != "":
		return "Set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True; a build for ROCm that lacks them warns and goes on " +
			"without."
	case facts[FactAccelerator] != "":
		return "Set PYTORCH_ALLOC_CONF=expandable_segments:True, from PyTorch 2.9 on."
	}
	return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
}

func torchImagined(version string, b Build, path string) (note string, err error) {
	switch {
	case b.ROCm != "":
		return "", fail.Environment("install a CUDA build of torch into an environment of its own; it needs no GPU",
			"torch %s of %s is built for ROCm, and imaginary GPUs are NVIDIA's", version, path)
	case b.CUDA == "":
		return "", fail.Environment("install a CUDA build (pip install torch on Linux gives one; it needs no GPU)",
			"torch %s of %s is built for the CPU alone", version, path)
	case b.RuntimeInside:
		return "", RuntimeInside(version, path)
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 4) {
		note = fmt.Sprintf("PyTorch %s brings cuDNN 8, and imaginary GPUs know 9 alone: convolutions and recurrent layers "+
			"fail. From 2.4 on they work.", version)
	}
	return note, nil
}

// RuntimeInside refuses a PyTorch whose calls of CUDA stay within its own library: no imaginary GPU would get them, and
// a signal would end the program.
func RuntimeInside(version, where string) error {
	return fail.Environment("install PyTorch 2.0 or newer into an environment of its own: its wheels load CUDA's runtime",
		"torch %s of %s has CUDA's runtime inside its own library, where no imaginary GPU can stand in", version, where)
}

// Calibration is a program that uses each card as a small training would (context, cuBLAS, cuDNN, autograd), then
// prints what the driver says is in use and what the allocator holds.
const Calibration = `
import json, torch
out = []
for i in range(torch.cuda.device_count()):
    p = torch.cuda.get_device_properties(i)
    with torch.cuda.device(i):
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.Flatten(), torch.nn.LazyLinear(16)).cuda()
        net(torch.rand(8, 3, 32, 32, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        out.append({"index": i, "uuid": str(getattr(p, "uuid", "")), "name": p.name,
                    "compute_capability": "%d.%d" % (p.major, p.minor), "multiprocessors": p.multi_processor_count,
                    "total_bytes": p.total_memory, "used_bytes": total - free, "reserved_bytes": torch.cuda.memory_reserved()})
print(json.dumps({"torch": torch.__version__, "gpus": out}))
`

// SeesCard is how to ask whether it sees a card.
const SeesCard = "does torch see the card? python -c 'import torch; print(torch.cuda.is_available())'"
