package sampler

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/processes"
	"hightide/internal/processes/here"
	"hightide/internal/system"
)

// Machine looks at everything that runs on a machine, at the pace of a person who watches. A Sampler follows one
// program and what it starts, many times a second; a Machine reads every process once, and keeps no file open for it.
// For one goroutine.
type Machine struct {
	root    string
	procDir int
	table   processes.Table // in place of /proc; nil: there is none
	vendors []Vendor
	cgroup  Cgroup
	known   map[int]*Seen
	round   uint64
	cpu     cpuTimes
	time    int64
	kernel  map[int]uint64 // threads of the kernel: the round in which they were read, not to read them each time
	live    []*Process     // for the vendors
	last    [][]Card       // by vendor: one that is slow to answer has told before
	entries [32 << 10]byte
	page    [16 << 10]byte
}

// Seen is a process of the machine as it was last read. PID and StartTicks together are its identity.
type Seen struct {
	PID        int          `json:"pid"`
	Parent     int          `json:"parent"`
	StartTicks uint64       `json:"start_ticks"`
	User       uint32       `json:"uid"`
	State      string       `json:"state"` // the kernel's letter: R runs, S sleeps, D waits for a disk, T stopped, Z ended
	Threads    int64        `json:"threads"`
	RSS        int64        `json:"rss_bytes"`
	VMS        int64        `json:"vms_bytes"`
	CPU        int64        `json:"cpu_ns"`                 // of processor time since it began
	Busy       mem.Optional `json:"cpu_milli,omitzero"`     // of one core, since the reading before: 1000 is all of it
	Device     mem.Optional `json:"device_bytes,omitzero"`  // on all GPUs together
	Command    []string     `json:"command"`                // secrets masked
	Name       string       `json:"name"`                   // as the kernel calls it
	Devices    []OnDevice   `json:"on_devices,omitempty"`   // the same by GPU
	Faults     int64        `json:"major_faults,omitempty"` // since it began

	round uint64
	ticks int64
	image int64
	asked *Process // what vendors take
}

// OnDevice is what a process holds on one GPU.
type OnDevice struct {
	Device string `json:"device"`
	Bytes  int64  `json:"bytes"`
}

// Card is a GPU at a moment.
type Card struct {
	mem.GPU
	Device      string       `json:"device"` // nvidia:0
	Used        mem.Optional `json:"used_bytes,omitzero"`
	Utilisation mem.Optional `json:"utilisation_milli,omitzero"`
	Temperature mem.Optional `json:"celsius,omitzero"`
	Power       mem.Optional `json:"milliwatts,omitzero"`
}

// Picture is a machine at a moment. What cannot be seen here is absent.
type Picture struct {
	Host  string `json:"host"`
	Time  int64  `json:"time_ns"` // CLOCK_MONOTONIC
	Cores int    `json:"cores"`
	// of all cores together: 1000 is all of them; absent at the first reading
	Busy      mem.Optional `json:"cpu_milli,omitzero"`
	Load      string       `json:"load,omitempty"` // over 1, 5 and 15 minutes
	Total     mem.Optional `json:"memory_bytes,omitzero"`
	Available mem.Optional `json:"available_bytes,omitzero"`
	Swap      mem.Optional `json:"swap_bytes,omitzero"`
	SwapFree  mem.Optional `json:"swap_free_bytes,omitzero"`
	Group     mem.Optional `json:"cgroup_used_bytes,omitzero"` // of the control group that hightide is in
	Limit     mem.Optional `json:"cgroup_limit_bytes,omitzero"`
	GPUs      []Card       `json:"gpus"`
	Processes []Seen       `json:"processes"` // kernel threads are left out
	Notes     []string     `json:"notes,omitempty"`
}

// cpuTimes are the processor times of a machine, in ticks.
type cpuTimes struct{ busy, all int64 }

// OpenMachine prepares to look; it reads nothing yet but starts the vendors' helpers.
func OpenMachine(root string) *Machine {
	m := &Machine{root: root, known: map[int]*Seen{}, kernel: map[int]uint64{}, vendors: OpenVendors(root),
		cgroup: OpenCgroup(root, 0)}
	m.last = make([][]Card, len(m.vendors))
	m.table = here.Table()
	m.procDir, _ = openFile(filepath.Join(root, "proc"), system.Folder)
	return m
}

// Close gives back descriptors and ends helpers.
func (m *Machine) Close() {
	closeFile(m.procDir)
	m.cgroup.Close()
	for _, v := range m.vendors {
		v.Close()
	}
}

// HasVendors says whether the driver of a GPU is loaded: without one, nobody looks for GPUs.
func (m *Machine) HasVendors() bool { return len(m.vendors) > 0 }

// Owner is whose a file is; false: it is not there, or this system does not tell.
func Owner(path string) (uid uint32, ok bool) { return ownerOf(path) }

// Read looks once. now is CLOCK_MONOTONIC in ns.
func (m *Machine) Read(now int64) Picture {
	p := Picture{Time: now, Cores: runtime.NumCPU()}
	p.Host, _ = os.Hostname()
	if m.table != nil {
		m.byTable(&p, now)
	} else {
		m.memory(&p)
		m.processors(&p)
		m.processes(now)
	}
	m.cards(&p)
	for _, s := range m.known {
		p.Processes = append(p.Processes, *s)
	}
	m.time = now
	return p
}

func (m *Machine) memory(p *Picture) {
	n, err := readFile(filepath.Join(m.root, "proc/meminfo"), m.page[:])
	if err == nil {
		text := m.page[:n]
		p.Total, p.Available = optional(field(text, "MemTotal")), optional(field(text, "MemAvailable"))
		p.Swap, p.SwapFree = optional(field(text, "SwapTotal")), optional(field(text, "SwapFree"))
	}
	p.Group, p.Limit = m.cgroup.Used(), m.cgroup.Limit()
}

func (m *Machine) processors(p *Picture) {
	if n, err := readFile(filepath.Join(m.root, "proc/loadavg"), m.page[:]); err == nil {
		p.Load = strings.Join(strings.Fields(string(m.page[:n]))[:3], " ")
	}
	n, err := readFile(filepath.Join(m.root, "proc/stat"), m.page[:])
	if err != nil {
		return
	}
	if t := parseCPU(m.page[:n]); t.all > m.cpu.all {
		if m.cpu.all > 0 {
			p.Busy = mem.Some((t.busy - m.cpu.busy) * 1000 / (t.all - m.cpu.all))
		}
		m.cpu = t
	}
}

// parseCPU reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func parseCPU(text []byte) (t cpuTimes) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for i, word := range bytes.Fields(line) {
		if i == 0 || i > 8 { // guests are in user already
			continue
		}
		n := number(word)
		t.all += n
		if i != 4 && i != 5 {
			t.busy += n
		}
	}
	return t
}

// processes reads all that /proc lists.
func (m *Machine) processes(now int64) {
	m.round++
	if eachName(m.procDir, m.entries[:], func(name []byte) {
		if name[0] >= '0' && name[0] <= '9' {
			m.process(int(number(name)), now)
		}
	}) != nil {
		return
	}
	if len(m.kernel) > manyThreads {
		clear(m.kernel)
	}
	m.live = m.live[:0]
	for pid, s := range m.known {
		if s.round != m.round {
			delete(m.known, pid)
			continue
		}
		m.live = append(m.live, s.asked)
	}
}

// kernelEvery is after how many rounds a number that was a thread of the kernel is looked at again.
const kernelEvery = 30

// manyThreads of the kernel are remembered at most.
const manyThreads = 1 << 14

// kthreadd is the parent of all threads of the kernel.
const kthreadd = 2

// process reads one; kernel threads and what is gone meanwhile are left out.
func (m *Machine) process(pid int, now int64) {
	if round, is := m.kernel[pid]; is && m.round-round < kernelEvery {
		return
	}
	var path [64]byte
	n, err := readFile(string(appendPath(path[:0], m.root, pid)), m.page[:])
	if err != nil {
		return
	}
	s, err := parseStat(m.page[:n])
	if delete(m.kernel, pid); err == nil && s.vms == 0 && s.state != 'Z' && s.parent == kthreadd {
		m.kernel[pid] = m.round
	}
	if err != nil || s.vms == 0 && s.state != 'Z' {
		return
	}
	seen := m.known[pid]
	if seen == nil || seen.StartTicks != uint64(s.start) {
		if s.state == 'Z' {
			return // we never saw it alive
		}
		seen = &Seen{PID: pid, StartTicks: uint64(s.start), ticks: -1,
			asked: &Process{PID: pid, dir: filepath.Join(m.root, "proc", strconv.Itoa(pid))}}
		m.known[pid] = seen
	}
	seen.takeReading(&s, now-m.time)
	seen.round = m.round
	if seen.Name != string(s.comm) || seen.image != s.image {
		seen.Name, seen.image = string(s.comm), s.image
		seen.identify(m)
	}
}

// takeReading takes in a reading, since ns after the one before.
func (s *Seen) takeReading(now *stat, since int64) {
	s.Busy = mem.Optional{}
	if s.ticks >= 0 && since > 0 {
		s.Busy = mem.Some(max(now.cpuTicks-s.ticks, 0) * clockTick * 1000 / since)
	}
	s.ticks, s.CPU = now.cpuTicks, now.cpuTicks*clockTick
	s.Parent, s.State, s.Threads = int(now.parent), string(rune(now.state)), now.threads
	s.RSS, s.VMS, s.Faults = now.rssPages*pageSize, now.vms, now.majorFaults
}

// identify reads what only changes with another program.
func (s *Seen) identify(m *Machine) {
	if user, ok := ownerOf(s.asked.dir); ok {
		s.User = user
	}
	s.Command = nil
	n, err := readFile(s.asked.dir+"/cmdline", m.page[:]) // longer ones are cut
	if text := bytes.TrimRight(m.page[:max(n, 0)], "\x00"); err == nil && len(text) > 0 {
		s.Command = mem.MaskArgs(strings.Split(string(text), "\x00"))
	}
}

// cards asks the vendors. A reading comes a round later than it was asked for: nothing here waits for a driver.
func (m *Machine) cards(p *Picture) {
	for _, s := range m.known {
		s.Device, s.Devices = mem.Optional{}, nil
	}
	for i, v := range m.vendors {
		readings, err := v.Sample(m.live)
		if err != nil {
			p.Notes = append(p.Notes, v.Name()+" devices: "+plain(err))
		}
		if len(readings) > 0 {
			m.last[i] = m.cardsOf(readings, v.Devices())
		}
		p.GPUs = append(p.GPUs, m.last[i]...)
	}
}

// cardsOf sorts readings by card, and puts down to processes what is theirs.
func (m *Machine) cardsOf(readings []Reading, gpus []mem.GPU) (cards []Card) {
	for _, r := range readings {
		if r.Process == nil {
			cards = addTo(cards, r)
		} else if s := m.known[r.Process.PID]; s != nil {
			s.Device = s.Device.Plus(mem.Some(r.Value))
			s.Devices = append(s.Devices, OnDevice{r.Device, r.Value})
		}
	}
	name(cards, gpus)
	return cards
}

// addTo adds a reading to its card.
func addTo(cards []Card, r Reading) []Card {
	at := 0
	for at < len(cards) && cards[at].Device != r.Device {
		at++
	}
	if at == len(cards) {
		cards = append(cards, Card{Device: r.Device})
	}
	switch c := &cards[at]; r.Name {
	case mem.SeriesDeviceUsed:
		c.Used = mem.Some(r.Value)
	case mem.SeriesDeviceUtilisation:
		c.Utilisation = mem.Some(r.Value)
	case mem.SeriesDeviceTemperature:
		c.Temperature = mem.Some(r.Value)
	case mem.SeriesDevicePower:
		c.Power = mem.Some(r.Value)
	}
	return cards
}

// name says which GPUs the cards are: "nvidia:1" is the one of index 1.
func name(cards []Card, gpus []mem.GPU) {
	for i := range cards {
		_, index, _ := strings.Cut(cards[i].Device, ":")
		for _, g := range gpus {
			if strconv.Itoa(g.Index) == index {
				cards[i].GPU = g
			}
		}
	}
}

// byTable reads the machine where there is no /proc. Load, the time of all processors, swap and control groups are
// absent there.
func (m *Machine) byTable(p *Picture, now int64) {
	memory := m.table.Memory()
	p.Total, p.Available = memory.Total, memory.Available
	all, err := m.table.List()
	if err != nil {
		p.Notes = append(p.Notes, "processes: "+plain(err))
		return
	}
	m.round++
	m.live = m.live[:0]
	hidden := 0
	for _, one := range all {
		figures, ok := m.table.Figures(one.PID)
		if !ok {
			hidden++
			continue
		}
		s := m.known[one.PID]
		if s == nil || s.StartTicks != one.Start {
			s = &Seen{PID: one.PID, Parent: one.Parent, StartTicks: one.Start, ticks: -1,
				asked: &Process{PID: one.PID, StartTicks: one.Start}}
			s.Command = mem.MaskArgs(m.table.Command(one.PID))
			if len(s.Command) > 0 {
				s.Name = filepath.Base(s.Command[0])
			}
			m.known[one.PID] = s
		}
		s.takeFigures(figures, now-m.time)
		s.round = m.round
		m.live = append(m.live, s.asked)
	}
	for pid, s := range m.known {
		if s.round != m.round {
			delete(m.known, pid)
		}
	}
	if hidden > 0 {
		p.Notes = append(p.Notes, "processes of other users, and of the system, may not be looked at: they are left out")
	}
}

// takeFigures takes in a reading, since ns after the one before.
func (s *Seen) takeFigures(f processes.Figures, since int64) {
	cpu, known := f.CPU.Get()
	s.Busy = mem.Optional{}
	if known && s.ticks >= 0 && since > 0 {
		s.Busy = mem.Some(max(cpu-s.ticks, 0) * 1000 / since)
	}
	if known {
		s.ticks, s.CPU = cpu, cpu // here ns are what is counted in
	}
	s.State, s.Threads, s.RSS, s.VMS = "", f.Threads.Or(0), f.RSS, f.VMS.Or(0)
	s.Faults = f.MajorFaults.Or(0)
}

// ErrGone says that a process ended, or that its number is another's by now.
var ErrGone = errors.New("it has ended")

// Environ is the environment that a process began with, in the order of the kernel; secrets are masked.
func Environ(root string, pid int, startTicks uint64) ([]mem.Variable, error) {
	if !sameProcess(root, pid, startTicks) {
		return nil, ErrGone
	}
	text, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return nil, errors.New(plain(err))
	}
	return mem.MaskEnv(strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")), nil
}

// sameProcess says whether a number still means the process that began then.
func sameProcess(root string, pid int, startTicks uint64) bool {
	if table := here.Table(); table != nil {
		p, ok := processes.Find(table, pid)
		return ok && p.Start == startTicks
	}
	var page [4096]byte
	n, err := readFile(filepath.Join(root, "proc", strconv.Itoa(pid), "stat"), page[:])
	if err != nil {
		return false
	}
	s, err := parseStat(page[:n])
	return err == nil && uint64(s.start) == startTicks
}
