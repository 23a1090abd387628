package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hightide/heap"
	"hightide/internal/mem"
	"hightide/internal/pythons"
	"hightide/internal/sampler"
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

// Ability is something hightide observes, and whether it can here.
type Ability struct {
	Name string `json:"name"`
	Can  Can    `json:"can"`
	Text string `json:"text"`           // how, or why not
	Hint string `json:"hint,omitempty"` // what would change that
}

// Can is yes, partly or no.
type Can string

const (
	Yes    Can = "yes"
	Partly Can = "partly"
	No     Can = "no"
)

// channelBytes is what the channels of one observed Python process take: agent and heap.
const channelBytes = 1280 << 10

// Info looks at the machine. python names an interpreter to prefer; empty: none. It starts the
// interpreters it finds and a small program, writes its helpers to the cache, and changes nothing
// else. It never fails: what cannot be found out is said in its place.
func (e *Engine) Info(ctx context.Context, python string) *Info {
	vendors := sampler.OpenVendors("/")
	defer func() {
		for _, v := range vendors {
			v.Close()
		}
	}()
	found := make(chan []pythons.Interpreter, 1)
	go func() { found <- pythons.Find(ctx, python) }()
	info := &Info{
		Version: 1, Hightide: Version, Host: sampler.Host("/", vendors),
		Data: Place{e.Dir(), freeBytes(e.Dir())}, Channels: Place{e.Runtime.SharedDir(), freeBytes("/dev/shm")},
	}
	devices := deviceAbilities(vendors)
	info.Pythons = <-found
	info.Abilities = append([]Ability{
		processAbility(), pssAbility(), groupAbility(info.Host), channelAbility(info.Channels), dataAbility(info.Data),
		agentAbility(info.Chosen()), e.heapAbility(ctx, info.Chosen()),
	}, devices...)
	info.Abilities = append(info.Abilities, historyAbility(info.Chosen(), info.Host), imagineAbility(info.Chosen()), gitAbility())
	return info
}

// Chosen is the interpreter that a verb without a command would use; nil where there is none.
func (i *Info) Chosen() *pythons.Interpreter {
	for k := range i.Pythons {
		if i.Pythons[k].Chosen {
			return &i.Pythons[k]
		}
	}
	return nil
}

// freeBytes is the room for this user on the file system of a folder, or of the first one above it
// that exists.
func freeBytes(dir string) mem.Optional {
	for {
		var s syscall.Statfs_t
		if syscall.Statfs(dir, &s) == nil {
			return mem.Some(int64(s.Bavail) * s.Bsize)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return mem.Optional{}
		}
		dir = parent
	}
}

func processAbility() Ability {
	a := Ability{"processes", Yes, "RSS, VMS, swap, faults, CPU, threads and files of the process tree; no ptrace needed", ""}
	if _, err := os.ReadFile("/proc/self/stat"); err != nil {
		a.Can, a.Text, a.Hint = No, "/proc: "+reason(err), "mount proc"
	}
	return a
}

func pssAbility() Ability {
	a := Ability{"PSS and USS", Yes, "smaps_rollup, as often as half a percent of one core allows", ""}
	if _, err := os.ReadFile("/proc/self/smaps_rollup"); err != nil {
		a.Can, a.Text, a.Hint = No, "/proc/PID/smaps_rollup: "+reason(err), "it needs Linux 4.14"
	}
	return a
}

func groupAbility(host mem.Host) Ability {
	group := sampler.OpenCgroup("/")
	defer group.Close()
	a := Ability{Name: "control group", Can: Yes}
	if group.Version == 0 {
		a.Can, a.Text = No, "no memory controller is mounted: its use, limit and OOM kills are not seen"
		return a
	}
	a.Text = "version " + strconv.Itoa(group.Version) + ", no limit set"
	if limit, ok := host.Limit.Get(); ok {
		a.Text = "version " + strconv.Itoa(group.Version) + ", limit " + mem.Bytes(limit).String()
	}
	if _, kills := group.Events(); !kills.Known() {
		a.Can, a.Text = Partly, a.Text+"; the kernel does not count OOM kills"
	}
	return a
}

func channelAbility(p Place) Ability {
	a := Ability{Name: "channels", Can: Yes}
	free, known := p.Free.Get()
	room := free / channelBytes
	a.Text = fmt.Sprintf("/dev/shm has room for %d Python processes", room)
	switch {
	case !known:
		a.Can, a.Text, a.Hint = No, "there is no /dev/shm: programs are watched from outside only", "mount a tmpfs at /dev/shm"
	case room < 1:
		a.Can, a.Text, a.Hint = No, "/dev/shm is full: programs are watched from outside only", "make room in /dev/shm, or start the container with --shm-size=1g"
	case room < 16:
		a.Can, a.Hint = Partly, "start the container with --shm-size=1g"
	case room > 1000:
		a.Text = "/dev/shm has room for more than 1000 Python processes"
	}
	return a
}

func dataAbility(p Place) Ability {
	a := Ability{"recordings", Yes, p.Path, ""}
	dir := p.Path
	for !isDir(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	if err := syscall.Access(dir, 2); err != nil { // W_OK
		a.Can, a.Text, a.Hint = No, p.Path+" cannot be written: "+reason(err), "name another folder with --data-dir or $HIGHTIDE_DATA"
	} else if free, ok := p.Free.Get(); ok && free < 256<<20 {
		a.Can, a.Text = Partly, fmt.Sprintf("%s has only %v left", p.Path, mem.Bytes(free))
		a.Hint = "hightide prune makes room"
	}
	return a
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func agentAbility(p *pythons.Interpreter) Ability {
	a := Ability{Name: "steps and phases", Can: Yes}
	switch {
	case p == nil:
		a.Can, a.Text, a.Hint = No, "no Python found: programs are watched from outside only", "install Python 3.8 or newer, or name one with --python"
	case minor(p.Version) < 8:
		a.Can, a.Text = No, "Python "+p.Version+" is older than 3.8: watched from outside only"
	case p.Frameworks["torch"] == "":
		a.Can, a.Text, a.Hint = Partly, "the agent runs, but without PyTorch there are no steps to mark", "install torch, or activate the environment that has it"
	default:
		a.Text = "PyTorch " + p.Frameworks["torch"] + " in Python " + p.Version
	}
	return a
}

// heapAbility preloads the library into a small program, as a run would.
func (e *Engine) heapAbility(ctx context.Context, p *pythons.Interpreter) Ability {
	a := Ability{Name: "heap by line", Can: Yes, Text: "sampled allocations with Python stacks"}
	if _, ok := heap.Library(); !ok {
		a.Can, a.Text, a.Hint = No, "this hightide was built without its heap library", "make -C heap, then build again"
		return a
	}
	list, notes := helpers(e.helpersDir(), true)
	var library string
	for _, h := range list {
		if h.Preload != "" {
			library = h.Preload
		}
	}
	if library == "" {
		a.Can, a.Text = No, "the heap library cannot be put anywhere: "+strings.Join(notes, "; ")
		return a
	}
	if why := preloads(ctx, library, p); why != "" {
		a.Can, a.Text = No, "the heap library does not load: "+why
		return a
	}
	switch {
	case p == nil:
		a.Can, a.Text = Partly, "sampled allocations; no Python whose lines they could be blamed on"
	case p.FreeThreaded:
		a.Can, a.Text = Partly, "Python "+p.Version+" is free-threaded: allocations are seen, its lines not always"
	case minor(p.Version) < 8 || minor(p.Version) > 13:
		a.Can, a.Text = Partly, "allocations are seen; lines are known for Python 3.8 to 3.13, this is "+p.Version
	}
	return a
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
	c.Env = []string{"LD_PRELOAD=" + library, "PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
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

// deviceAbilities has a line for each vendor, also for one that is not there.
func deviceAbilities(vendors []sampler.Vendor) []Ability {
	open := map[string]sampler.Vendor{}
	for _, v := range vendors {
		open[v.Name()] = v
	}
	var all []Ability
	for _, vendor := range []struct{ name, absent string }{
		{"NVIDIA", "no driver is loaded (no /dev/nvidiactl)"},
		{"AMD", "no card in /sys/class/drm"},
		{"Intel", "no card in /sys/class/drm"},
	} {
		a := Ability{Name: vendor.name + " GPUs", Can: No, Text: vendor.absent}
		if v := open[vendor.name]; v != nil {
			gpus := v.Devices()
			_, err := v.Sample(nil)
			switch {
			case len(gpus) == 0 && err != nil:
				a.Text = err.Error()
			case len(gpus) == 0:
				a.Text = "the driver does not answer"
			case vendor.name == "Intel":
				a.Can, a.Text = Partly, fmt.Sprintf("%d: what our processes hold; the driver does not publish what the whole device has in use", len(gpus))
			default:
				a.Can, a.Text = Yes, fmt.Sprintf("%d: memory of device and processes, utilisation, temperature, power", len(gpus))
			}
		}
		all = append(all, a)
	}
	return all
}

// historyAbility: the flight recorder needs CUDA in torch and a device.
func historyAbility(p *pythons.Interpreter, host mem.Host) Ability {
	a := Ability{Name: "flight recorder", Can: No}
	nvidia := false
	for _, gpu := range host.GPUs {
		nvidia = nvidia || gpu.Vendor == "NVIDIA"
	}
	switch {
	case p == nil || p.Frameworks["torch"] == "":
		a.Text = "PyTorch's allocator history needs PyTorch"
	case p.CUDA == "" && p.ROCm == "":
		a.Text = "this PyTorch is built for the CPU only: there is no caching allocator to follow"
	case !nvidia && p.ROCm == "":
		a.Text = "this PyTorch is built for CUDA " + p.CUDA + ", but there is no NVIDIA GPU"
	default:
		a.Can, a.Text = Yes, "the allocator's history is kept, and written out on an out-of-memory"
	}
	return a
}

func gitAbility() Ability {
	if _, err := exec.LookPath("git"); err != nil {
		return Ability{"git", No, "not installed: recordings do not say which commit they ran", "install git"}
	}
	return Ability{"git", Yes, "commit, branch and whether the files were changed", ""}
}

// minor is 11 for "3.11.7"; 0 for what is no Python 3.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// reason is an error without its path.
func reason(err error) string {
	if path, ok := err.(*os.PathError); ok {
		return path.Err.Error()
	}
	return err.Error()
}
