package imagine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/shm"
	"hightide/internal/system"
)

// imaginary is the vendor of a run's imaginary GPUs. It reads the state that the preloaded library
// keeps in shared memory, so that sampler and views serve real and imaginary devices alike.
type imaginary struct {
	spec     []mem.GPU
	states   []*deviceState
	readings []sampler.Reading
	closed   bool

	// what was found at the end
	devices []mem.ImaginedDevice
	uses    []found[mem.DeviceUse]
	calls   map[string]mem.LibraryCall
	reads   []found[mem.ReadBack]
	problem error
}

// deviceState is one file of state: that of the run, or of a played rank.
type deviceState struct {
	path    string
	rank    mem.Optional // of a played rank: its number
	mapping []byte
	table   *shm.DeviceTable
	peaks   map[string]uint64 // highest told so far, by series
	mixed   int               // looks in a row that no moment was whole
}

// found is what was found of a process, which is known by pid and start until the run has ended.
type found[F mem.Frame] struct {
	pid   int
	start uint64
	frame F
}

// newImaginary is the vendor of these files; they need not be there yet. gpus are those of the spec.
func newImaginary(gpus []mem.GPU, states ...*deviceState) *imaginary {
	for _, b := range states {
		b.peaks = map[string]uint64{}
	}
	return &imaginary{spec: gpus, states: states, calls: map[string]mem.LibraryCall{}}
}

// Name implements sampler.Vendor.
func (v *imaginary) Name() string { return "imaginary" }

// Devices implements sampler.Vendor.
func (v *imaginary) Devices() []mem.GPU { return v.spec }

// mapTable maps the table once it is there. The file is the observed program's: only a regular one of
// a sensible size is mapped, and read-only.
func (b *deviceState) mapTable() error {
	if b.table != nil {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_RDONLY|system.NoFollow|system.NonBlock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxTable {
		return fmt.Errorf("%s holds no device table", b.path)
	}
	if info.Size() == 0 {
		return shm.ErrNotReady
	}
	mapping, err := system.Map(f, int(info.Size()), false)
	if err != nil {
		return fmt.Errorf("map device table: %w", err)
	}
	if b.table, err = shm.OpenDeviceTable(mapping); err != nil {
		_ = system.Unmap(mapping)
		return err
	}
	b.mapping = mapping
	return nil
}

const maxTable = 1 << 30 // bytes

// readMoment reads GPUs and processes as they were at one moment. ok is false where there is nothing to
// tell yet.
func (b *deviceState) readMoment() (gpus []shm.GPU, processes []shm.DeviceProcess, ok bool, err error) {
	if err := b.mapTable(); err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, shm.ErrNotReady) {
			err = nil // no process has touched a GPU
		}
		return nil, nil, false, err
	}
	whole, err := b.table.Consistent(func() (err error) {
		if gpus, err = b.table.GPUs(); err == nil {
			processes, err = b.table.Processes()
		}
		return err
	})
	if !whole {
		b.mixed++
	} else {
		b.mixed = 0
	}
	// A writer that was killed leaves the table as between two moments: then it is taken as it is.
	return gpus, processes, err == nil && (whole || b.mixed > 2), err
}

// Sample implements sampler.Vendor. Between two looks a peak can come and go: it is told at the
// moment it was.
func (v *imaginary) Sample(live []*sampler.Process) ([]sampler.Reading, error) {
	v.readings = v.readings[:0]
	var problem error
	for _, b := range v.states {
		gpus, processes, ok, err := b.readMoment()
		if err != nil {
			problem = err
		}
		if !ok {
			continue
		}
		for _, g := range gpus {
			v.tellReading(b, b.device(g.Index), nil, mem.SeriesDeviceUsed, g.Used, g.Peak, g.PeakTime)
		}
		for i := range processes {
			p := &processes[i]
			for _, alive := range live {
				if alive.PID != p.PID || alive.StartTicks != p.Start {
					continue
				}
				for device := range p.Devices {
					if use := &p.Devices[device]; use.Peak > 0 {
						v.tellReading(b, b.device(device), alive, mem.SeriesDeviceProcess, use.Sum(), use.Peak, use.PeakTime)
					}
				}
			}
		}
	}
	return v.readings, problem
}

// device is what the series of a GPU are called: "nvidia:0", of a played rank "rank 127 nvidia:7".
func (b *deviceState) device(index int) string {
	name := "nvidia:" + strconv.Itoa(index)
	if rank, ok := b.rank.Get(); ok {
		name = fmt.Sprintf("rank %d %s", rank, name)
	}
	return name
}

// tellReading adds a reading, and before it the peak where that is new.
func (v *imaginary) tellReading(b *deviceState, device string, p *sampler.Process, name mem.Quantity, now, peak uint64,
	at int64) {
	key := device + " " + string(name)
	if p != nil {
		key += " " + strconv.Itoa(p.PID)
	}
	if peak > b.peaks[key] && peak > now && peak < tooMuch {
		v.readings = append(v.readings, sampler.Reading{Device: device, Process: p, Name: name, Time: at, Value: int64(peak)})
	}
	b.peaks[key] = max(b.peaks[key], peak)
	if now < tooMuch {
		v.readings = append(v.readings, sampler.Reading{Device: device, Process: p, Name: name, Value: int64(now)})
	}
}

// Close implements sampler.Vendor: the last look, when the command has ended, and the tables are
// given back.
func (v *imaginary) Close() {
	if v.closed {
		return
	}
	v.closed = true
	for _, b := range v.states {
		b.mixed = 99 // nobody writes any more
		gpus, processes, ok, err := b.readMoment()
		if err != nil {
			v.problem = err
		}
		if b.table == nil && err == nil {
			v.problem = cmp.Or(b.unfinished(), v.problem)
		} else if b.table != nil && b.table.Lacking() > 0 {
			v.problem = fmt.Errorf("the device table has no room for %d more of the processes: what they used is not known",
				b.table.Lacking())
		}
		if ok {
			v.conclude(b, gpus, processes)
		}
		if b.mapping != nil {
			_ = system.Unmap(b.mapping)
			b.table, b.mapping = nil, nil
		}
	}
}

// unfinished says what is in the way of a table that nobody finished; nil: no process touched a GPU.
func (b *deviceState) unfinished() error {
	info, err := os.Lstat(b.path)
	switch {
	case err != nil:
		return nil
	case info.Size() == 0: // the library leaves it so
		return errors.New("there was no room for the device table: shared memory is full")
	}
	return fmt.Errorf("%d bytes that were never finished", info.Size())
}

// conclude notes what the library's state says at the end.
func (v *imaginary) conclude(b *deviceState, gpus []shm.GPU, processes []shm.DeviceProcess) {
	used := map[int]bool{}
	for i := range processes {
		p := &processes[i]
		for device := range p.Devices {
			use := &p.Devices[device]
			if use.Peak == 0 && use.Failed == 0 {
				continue
			}
			used[device] = true
			frame := mem.DeviceUse{Device: b.device(device), Index: device, Used: bounded(use.Peak),
				Parts: map[string]mem.Bytes{}, Played: b.rank.Known()}
			for kind, bytes := range use.AtPeak {
				if bytes > 0 && bytes < tooMuch {
					frame.Parts[shm.DeviceKindNames[kind]] = mem.Bytes(bytes)
				}
			}
			v.uses = append(v.uses, found[mem.DeviceUse]{p.PID, p.Start, frame})
		}
		v.details(b, p)
	}
	for _, g := range gpus {
		if used[g.Index] {
			v.devices = append(v.devices, mem.ImaginedDevice{
				Rank: b.rank, Index: g.Index, GPU: g.Slug, Total: mem.Bytes(g.Total), Used: mem.Bytes(g.Peak),
				Context: mem.Bytes(g.Context), Failed: g.Failed})
		}
	}
}

// details are the calls that are not modelled, and the reads of what no kernel computed.
func (v *imaginary) details(b *deviceState, p *shm.DeviceProcess) {
	calls, reads, _, err := b.table.Details(p.Slot)
	if err != nil {
		v.problem = err
		return
	}
	for _, call := range calls {
		if call.Kind != shm.CallModelled {
			total := v.calls[call.Name]
			v.calls[call.Name] = mem.LibraryCall{Name: call.Name, Count: total.Count + call.Count, Refused: total.Refused ||
				call.Kind == shm.CallRefused}
		}
	}
	for _, r := range reads {
		v.reads = append(v.reads, found[mem.ReadBack]{p.PID, p.Start, mem.ReadBack{
			Location: mem.Location{File: r.File, Line: r.Line, Function: r.Function}, Count: int64(bounded(r.Count)),
			Bytes: bounded(r.Bytes)}})
	}
}

// tooMuch is beyond what can be: the state is the observed program's.
const tooMuch = 1 << 62

func bounded(n uint64) mem.Bytes { return mem.Bytes(min(n, tooMuch)) }

// frames are what the recording is to hold of the devices: written after the run.
func (v *imaginary) frames(run *mem.Run, now int64) []mem.Frame {
	var all []mem.Frame
	id := func(pid int, start uint64) uint32 {
		for _, p := range run.Processes {
			if p.PID == pid && (p.StartTicks == start || p.StartTicks == 0) {
				return p.ID
			}
		}
		return 0
	}
	for _, d := range v.devices {
		all = append(all, d)
	}
	for _, u := range v.uses {
		u.frame.Process = id(u.pid, u.start)
		all = append(all, u.frame)
	}
	for _, r := range v.reads {
		r.frame.Process = id(r.pid, r.start)
		all = append(all, r.frame)
	}
	for _, name := range slices.Sorted(maps.Keys(v.calls)) {
		all = append(all, v.calls[name])
	}
	if v.problem != nil {
		all = append(all, mem.Event{Kind: mem.EventDeviceUnread, Time: now, Text: v.problem.Error()})
	}
	return all
}
