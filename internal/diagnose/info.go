package diagnose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/heap"
	"hightide/internal/engine"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/pythons"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// Info is what this machine has and what hightide can observe on it. Its JSON form is printed by
// `hightide info --json`.
type Info struct {
	Version   int                   `json:"version"` // of this form
	Hightide  string                `json:"hightide"`
	Host      mem.Host              `json:"host"`
	Data      Place                 `json:"data"`     // where recordings go
	Channels  Place                 `json:"channels"` // shared memory between programs and engine
	Pythons   []pythons.Interpreter `json:"pythons"`
	Abilities []Ability             `json:"abilities"`
}

// Place is a folder and the room on its file system.
type Place struct {
	Path string       `json:"path"`
	Free mem.Optional `json:"free_bytes,omitzero"`
}

// channelBytes is what the channels of one observed Python process take: agent and heap.
const channelBytes = 1280 << 10

// Look looks at the machine. python names an interpreter to prefer; empty: none. It starts the
// interpreters it finds and a small program, writes its helpers to the cache, and changes nothing
// else. It never fails: what cannot be found out is said in its place.
func Look(ctx context.Context, e *engine.Engine, python string) *Info {
	vendors := sampler.OpenVendors("/")
	defer func() {
		for _, v := range vendors {
			v.Close()
		}
	}()
	found := make(chan []pythons.Interpreter, 1)
	go func() { found <- pythons.Find(ctx, python) }()
	info := &Info{
		Version: 1, Hightide: engine.Version, Host: sampler.Host("/", 0, vendors),
		Data: Place{e.Dir(), freeBytes(existing(e.Dir()))}, Channels: Place{e.Runtime.SharedDir(), freeBytes(system.SharedMemory())},
	}
	add := func(name string, a Ability) {
		a.Name = name
		info.Abilities = append(info.Abilities, a)
	}
	if system.Procfs {
		info.Abilities = within("/", runtime.GOARCH)
	}
	add("processes", processAbility())
	add("PSS and USS", pssAbility())
	add("control group", groupAbility(info.Host))
	add("channels", channelAbility(info.Channels))
	add("recordings", dataAbility(info.Data))
	info.Pythons = <-found
	chosen := info.Chosen()
	add("steps and phases", agentAbility(chosen))
	add("heap by line", heapAbility(ctx, e, chosen))
	for _, name := range []string{"NVIDIA", "AMD", "Intel"} {
		add(name+" GPUs", deviceAbility(name, vendors))
	}
	add("flight recorder", historyAbility(chosen, info.Host))
	add("imaginary GPUs", imagineAbility(chosen))
	add("git", gitAbility())
	return info
}

// Chosen is the interpreter that a verb without a command would use; nil where there is none.
func (i *Info) Chosen() *pythons.Interpreter {
	if n := slices.IndexFunc(i.Pythons, func(p pythons.Interpreter) bool { return p.Chosen }); n >= 0 {
		return &i.Pythons[n]
	}
	return nil
}

// noSuchDisk is what no file system has free: gVisor says 8 EiB of every one.
const noSuchDisk = 1 << 60

// freeBytes is the room for this user on the file system of a folder; unknown where there is no folder.
func freeBytes(dir string) mem.Optional {
	if free, err := system.FreeBytes(dir); err == nil && free < noSuchDisk {
		return mem.Some(free)
	}
	return mem.Optional{}
}

// existing is a folder, or the first one above it that exists.
func existing(dir string) string {
	for {
		info, err := os.Stat(dir)
		parent := filepath.Dir(dir)
		if err == nil && info.IsDir() || parent == dir {
			return dir
		}
		dir = parent
	}
}

func pssAbility() Ability {
	if !system.Procfs {
		return elsewhere("nobody tells what processes share")
	}
	if _, err := os.ReadFile("/proc/self/smaps_rollup"); err != nil {
		if version, _ := os.ReadFile("/proc/version"); gvisor(string(version)) {
			return no("gVisor has no /proc/PID/smaps_rollup", "")
		}
		return no("/proc/PID/smaps_rollup: "+reason(err), "it needs Linux 4.14")
	}
	return yes("smaps_rollup, as often as half a percent of one core allows")
}

func groupAbility(host mem.Host) Ability {
	if !system.Procfs {
		return elsewhere("there are none")
	}
	group := sampler.OpenCgroup("/", 0)
	defer group.Close()
	if group.Version == 0 {
		return no("no memory controller is mounted: its use, limit and OOM kills are not seen", "")
	}
	text := "version " + strconv.Itoa(group.Version) + ", no limit set"
	if limit, ok := host.Limit.Get(); ok {
		text = "version " + strconv.Itoa(group.Version) + ", limit " + mem.Bytes(limit).String()
	}
	if _, kills := group.Events(); !kills.Known() {
		return partly(text+"; the kernel does not count OOM kills", "")
	}
	return yes(text)
}

func channelAbility(p Place) Ability {
	if !system.Procfs {
		return yes("files in " + p.Path + ", mapped by both sides")
	}
	const larger = "start the container with --shm-size=1g"
	free, known := p.Free.Get()
	room := free / channelBytes
	text := fmt.Sprintf("/dev/shm has room for %d Python processes", room)
	switch {
	case !known:
		return no("there is no /dev/shm: programs are watched from outside only", "mount a tmpfs at /dev/shm")
	case room < 1:
		return no("/dev/shm is full: programs are watched from outside only", "make room in /dev/shm, or "+larger)
	case room < 16:
		return partly(text, larger)
	case room > 1000:
		return yes("/dev/shm has room for more than 1000 Python processes")
	}
	return yes(text)
}

func dataAbility(p Place) Ability {
	if err := system.MayWrite(existing(p.Path)); err != nil {
		return no(p.Path+" cannot be written: "+reason(err), "name another folder with --data-dir or $HIGHTIDE_DATA")
	}
	if free, ok := p.Free.Get(); ok && free < 256<<20 {
		return partly(fmt.Sprintf("%s has only %v left", p.Path, mem.Bytes(free)), "hightide prune makes room")
	}
	return yes(p.Path)
}

func agentAbility(p *pythons.Interpreter) Ability {
	switch {
	case p == nil:
		return no("no Python found: programs are watched from outside only",
			"install Python 3.8 or newer, or name one with --python")
	case minor(p.Version) < 8:
		return no("Python "+p.Version+" is older than 3.8: watched from outside only", "")
	case p.Frameworks[frameworks.Torch] == "":
		return partly("the agent runs, but without PyTorch there are no steps to mark",
			"install torch, or activate the environment that has it")
	}
	return yes("PyTorch " + p.Frameworks[frameworks.Torch] + " in Python " + p.Version)
}

// heapAbility preloads the library into a small program, as a run would.
func heapAbility(ctx context.Context, e *engine.Engine, p *pythons.Interpreter) Ability {
	if !system.Procfs {
		return no("the heap sampler does not run on "+system.Name,
			"hightide run --tracemalloc has Python tell the lines of its own memory; or "+linuxHint)
	}
	if _, ok := heap.Library(); !ok {
		return no("this hightide was built without its heap library", "make -C heap, then build again")
	}
	_, library, err := e.UnpackAgent()
	if err != nil {
		return no("the heap library cannot be put anywhere: "+err.Error(), "")
	}
	if why := preloads(ctx, library, p); why != "" {
		return no("the heap library does not load: "+why, "")
	}
	switch {
	case p == nil:
		return partly("sampled allocations; no Python whose lines they could be blamed on", "")
	case p.FreeThreaded:
		return partly("Python "+p.Version+" is free-threaded: allocations are seen, its lines not always", "")
	case minor(p.Version) < 8 || minor(p.Version) > 13:
		return partly("allocations are seen; lines are known for Python 3.8 to 3.13, this is "+p.Version, "")
	}
	return yes("sampled allocations with Python stacks")
}

// preloads starts a program with the library; "" where it loads, else what the loader said.
func preloads(ctx context.Context, library string, p *pythons.Interpreter) string {
	program, args := "/bin/true", []string(nil)
	if p != nil {
		program, args = p.Path, []string{"-I", "-S", "-c", ""}
	}
	ctx, cancel := context.WithTimeout(ctx, pythons.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = []string{"LD_PRELOAD=" + library, "PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" +
		os.Getenv("LD_LIBRARY_PATH")}
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if strings.Contains(text, "cannot be preloaded") {
		return text
	}
	if err != nil {
		return strings.TrimSpace(err.Error() + " " + text)
	}
	return ""
}

// deviceAbility is that of a vendor, also of one that is not there.
func deviceAbility(vendor string, open []sampler.Vendor) Ability {
	if !system.Procfs {
		return elsewhere("its drivers are not asked")
	}
	n := slices.IndexFunc(open, func(v sampler.Vendor) bool { return v.Name() == vendor })
	switch {
	case n < 0 && vendor == "NVIDIA":
		return no("no driver is loaded (no /dev/nvidiactl)", "")
	case n < 0:
		return no("no card in /sys/class/drm", "")
	}
	gpus := len(open[n].Devices())
	_, err := open[n].Sample(nil)
	switch {
	case gpus == 0 && err != nil:
		return no(err.Error(), "")
	case gpus == 0:
		return no("the driver does not answer", "")
	case vendor == "Intel":
		return partly(fmt.Sprintf("%d: what our processes hold; the driver does not publish what the whole device has in "+
			"use", gpus), "")
	}
	return yes(fmt.Sprintf("%d: memory of device and processes, utilisation, temperature, power", gpus))
}

// historyAbility: the flight recorder needs CUDA in torch and a device.
func historyAbility(p *pythons.Interpreter, host mem.Host) Ability {
	nvidia := slices.ContainsFunc(host.GPUs, func(gpu mem.GPU) bool { return gpu.Vendor == "NVIDIA" })
	switch {
	case p == nil || p.Frameworks[frameworks.Torch] == "":
		return no("PyTorch's allocator history needs PyTorch", "")
	case p.CUDA == "" && p.ROCm == "":
		return no("this PyTorch is built for the CPU only: there is no caching allocator to follow", "")
	case !nvidia && p.ROCm == "":
		return no("this PyTorch is built for CUDA "+p.CUDA+", but there is no NVIDIA GPU", "")
	}
	return yes("the allocator's history is kept, and written out on an out-of-memory")
}

// imagineAbility says whether programs of this interpreter can be imagined.
func imagineAbility(p *pythons.Interpreter) Ability {
	switch {
	case !system.Imagines:
		return elsewhere("their library does not run")
	case !engine.CanImagine():
		return no("this hightide was built without its device library", "build it with make")
	case p == nil || p.Version == "":
		return partly("no Python was found; a command names its own", "")
	case p.Frameworks[frameworks.Torch] == "" || p.CUDA == "":
		return partly("this Python has no CUDA build of PyTorch; a command names its own",
			"pip install torch; it needs no GPU")
	case p.RuntimeInside:
		return partly("torch "+p.Frameworks[frameworks.Torch]+" of this Python has CUDA's runtime inside its own library; a command "+
			"names its own", "install PyTorch 2.0 or newer")
	}
	return yes(fmt.Sprintf("hightide imagine runs torch %s on any GPU of the catalogue", p.Frameworks[frameworks.Torch]))
}

func gitAbility() Ability {
	if _, err := exec.LookPath("git"); err != nil {
		return no("not installed: recordings do not say which commit they ran", "install git")
	}
	return yes("commit, branch and whether the files were changed")
}

// minor is 11 for "3.11.7"; 0 for what is not Python 3.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}
