package engine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/shm"
)

// imaginary is the vendor of a run's imaginary GPUs: it reads the books that the preloaded library
// keeps, so that sampler and views serve real and imaginary devices alike.
type imaginary struct {
	spec     []mem.GPU
	books    []*book
	readings []sampler.Reading
	closed   bool

	// what was found at the end
	devices   []report.ImaginedDevice
	processes []deviceProcess
	calls     map[string]analyze.CallFacts
	reads     []processRead
	problem   error
}

// book is one file of books: that of the run, or of a played rank.
type book struct {
	path    string
	name    string // "" or "rank 127 ", before the names of its devices
	mapping []byte
	books   *shm.Books
	peaks   map[string]uint64 // highest told so far, by series
	mixed   int               // looks in a row that no moment was whole
}

// deviceProcess is a process in the books, by its identity.
type deviceProcess struct {
	pid   int
	start uint64
	facts analyze.DeviceProcessFacts
}

type processRead struct {
	pid   int
	start uint64
	read  report.ReadBack
}

// newImaginary is the vendor of these books; they need not be there yet. gpus are those of the spec.
func newImaginary(gpus []mem.GPU, books ...*book) *imaginary {
	for _, b := range books {
		b.peaks = map[string]uint64{}
	}
	return &imaginary{spec: gpus, books: books, calls: map[string]analyze.CallFacts{}}
}

// Name implements sampler.Vendor.
func (v *imaginary) Name() string { return "imaginary" }

// Devices implements sampler.Vendor.
func (v *imaginary) Devices() []mem.GPU { return v.spec }

// open maps the books once they are there. The file is the observed program's: only a regular one of
// a sensible size is mapped, and read-only.
func (b *book) open() error {
	if b.books != nil {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBooks {
		return fmt.Errorf("%s holds no device books", b.path)
	}
	if info.Size() == 0 {
		return shm.ErrNotReady
	}
	mapping, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map device books: %w", err)
	}
	if b.books, err = shm.OpenBooks(mapping); err != nil {
		_ = syscall.Munmap(mapping)
		return err
	}
	b.mapping = mapping
	return nil
}

const maxBooks = 1 << 30 // bytes

// look reads GPUs and processes as they were at one moment. ok is false where there is nothing to
// tell yet.
func (b *book) look() (gpus []shm.GPUBook, processes []shm.DeviceProcess, ok bool, err error) {
	if err := b.open(); err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, shm.ErrNotReady) {
			err = nil // no process has touched a GPU
		}
		return nil, nil, false, err
	}
	whole, err := b.books.Consistent(func() (err error) {
		if gpus, err = b.books.GPUs(); err == nil {
			processes, err = b.books.Processes()
		}
		return err
	})
	if !whole {
		b.mixed++
	} else {
		b.mixed = 0
	}
	// A writer that was killed leaves the books as between two moments: then they are taken as they are.
	return gpus, processes, err == nil && (whole || b.mixed > 2), err
}

// Sample implements sampler.Vendor. Between two looks a peak can come and go: it is told at the
// moment it was.
func (v *imaginary) Sample(live []*sampler.Process) ([]sampler.Reading, error) {
	v.readings = v.readings[:0]
	var problem error
	for _, b := range v.books {
		gpus, processes, ok, err := b.look()
		if err != nil {
			problem = err
		}
		if !ok {
			continue
		}
		for _, g := range gpus {
			v.tell(b, b.device(g.Index), nil, mem.SeriesDeviceUsed, g.Used, g.Peak, g.PeakTime)
		}
		for i := range processes {
			p := &processes[i]
			for _, alive := range live {
				if alive.PID != p.PID || alive.StartTicks != p.Start {
					continue
				}
				for device := range p.Devices {
					if use := &p.Devices[device]; use.Peak > 0 {
						v.tell(b, b.device(device), alive, mem.SeriesDeviceProcess, use.Sum(), use.Peak, use.PeakTime)
					}
				}
			}
		}
	}
	return v.readings, problem
}

func (b *book) device(index int) string { return b.name + "nvidia:" + strconv.Itoa(index) }

// tell adds a reading, and before it the peak where that is new.
func (v *imaginary) tell(b *book, device string, p *sampler.Process, name mem.Quantity, now, peak uint64, at int64) {
	key := device + " " + string(name)
	if p != nil {
		key += " " + strconv.Itoa(p.PID)
	}
	if peak > b.peaks[key] && peak > now && peak < 1<<62 {
		v.readings = append(v.readings, sampler.Reading{Device: device, Process: p, Name: name, Time: at, Value: int64(peak)})
	}
	b.peaks[key] = max(b.peaks[key], peak)
	if now < 1<<62 {
		v.readings = append(v.readings, sampler.Reading{Device: device, Process: p, Name: name, Value: int64(now)})
	}
}

// Close implements sampler.Vendor: the last look, when the command has ended, and the books are
// given back.
func (v *imaginary) Close() {
	if v.closed {
		return
	}
	v.closed = true
	for _, b := range v.books {
		b.mixed = 99 // nobody writes any more
		gpus, processes, ok, err := b.look()
		if err != nil {
			v.problem = err
		}
		if info, gone := os.Lstat(b.path); b.books == nil && err == nil && gone == nil {
			v.problem = fmt.Errorf("%d bytes that were never finished", info.Size())
		}
		if ok {
			v.conclude(b, gpus, processes)
		}
		if b.mapping != nil {
			_ = syscall.Munmap(b.mapping)
			b.books, b.mapping = nil, nil
		}
	}
}

// conclude notes what the books say at the end.
func (v *imaginary) conclude(b *book, gpus []shm.GPUBook, processes []shm.DeviceProcess) {
	used := map[int]bool{}
	for _, p := range processes {
		for device := range p.Devices {
			use := &p.Devices[device]
			if use.Peak == 0 && use.Failed == 0 {
				continue
			}
			used[device] = true
			facts := analyze.DeviceProcessFacts{Device: b.device(device), Index: device, Used: int64(min(use.Peak, 1<<62)), Parts: map[string]int64{}, Played: b.name != ""}
			for kind, bytes := range use.AtPeak {
				if bytes > 0 && bytes < 1<<62 {
					facts.Parts[shm.DeviceKindNames[kind]] = int64(bytes)
				}
			}
			v.processes = append(v.processes, deviceProcess{p.PID, p.Start, facts})
		}
		calls, reads, _, err := b.books.Details(p.Slot)
		if err != nil {
			v.problem = err
			continue
		}
		for _, call := range calls {
			if call.Kind == shm.CallModelled {
				continue
			}
			total := v.calls[call.Name]
			v.calls[call.Name] = analyze.CallFacts{Name: call.Name, Count: total.Count + call.Count, Refused: total.Refused || call.Kind == shm.CallRefused}
		}
		for _, r := range reads {
			v.reads = append(v.reads, processRead{p.PID, p.Start, report.ReadBack{
				File: r.File, Line: r.Line, Function: r.Function, Count: int64(min(r.Count, 1<<62)), Bytes: mem.Bytes(min(r.Bytes, 1<<62))}})
		}
	}
	for _, g := range gpus {
		if used[g.Index] {
			v.devices = append(v.devices, report.ImaginedDevice{
				Book: b.name, Index: g.Index, GPU: g.Slug, Total: mem.Bytes(g.Total), Used: mem.Bytes(g.Peak), Context: mem.Bytes(g.Context), Failed: g.Failed})
		}
	}
}

// events are what the recording is to hold of the books: written after the run.
func (v *imaginary) events(run *mem.Run, now int64) []mem.Event {
	var events []mem.Event
	id := func(pid int, start uint64) uint32 {
		for _, p := range run.Processes {
			if p.PID == pid && (p.StartTicks == start || p.StartTicks == 0) {
				return p.ID
			}
		}
		return 0
	}
	for _, d := range v.devices {
		events = append(events, analyze.EngineEvent(analyze.KindImaginedDevice, now, 0, "", d))
	}
	for _, p := range v.processes {
		events = append(events, analyze.EngineEvent(analyze.KindDeviceProcess, now, id(p.pid, p.start), "", p.facts))
	}
	for _, r := range v.reads {
		events = append(events, analyze.EngineEvent(analyze.KindImaginedRead, now, id(r.pid, r.start), "", r.read))
	}
	for _, name := range sortedKeys(v.calls) {
		events = append(events, analyze.EngineEvent(analyze.KindImaginedCall, now, 0, "", v.calls[name]))
	}
	if v.problem != nil {
		events = append(events, mem.Event{Kind: analyze.KindImaginedBroken, Time: now, Text: v.problem.Error()})
	}
	return events
}
