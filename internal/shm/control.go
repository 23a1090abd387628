package shm

import (
	"runtime/debug"

	"hightide/internal/mem"
)

// Word is what the training was doing: HT_WORD(step, phase, module).
type Word uint64

// Step is the number of optimizer steps completed, modulo 2^40.
func (w Word) Step() uint64 { return uint64(w) >> 24 }

// Module is the id of the module that runs, 0 for none.
func (w Word) Module() uint16 { return uint16(w >> 8) }

// Phase is the innermost phase; PhaseNone for a number this version does not know.
func (w Word) Phase() mem.Phase {
	if n := int(w & 0xff); n < len(mem.Phases) {
		return mem.Phases[n]
	}
	return mem.PhaseNone
}

// WriterStats are the writer's counters, cumulative. Each is read on its own: they belong to one moment only
// roughly.
type WriterStats struct {
	DroppedRecords uint64 // the ring was full
	DroppedBytes   uint64
	HeapSampled    uint64 // role heap: allocations recorded
	HeapMean       uint64 // bytes: mean of the Poisson sample in force; 0: not a heap channel
	HeapUntracked  uint64 // sampled allocations whose free will not be seen
	HeapFlags      HeapFlags
	PeakRSS        uint64 // bytes: the kernel's mark, once the process has ended in order
}

// HeapFlags says what the heap library cannot see here.
type HeapFlags uint64

const (
	HeapNoPython      HeapFlags = 1 // no interpreter in the process
	HeapUnknownPython HeapFlags = 2 // a version whose frames it cannot read
	HeapForeignMalloc HeapFlags = 4 // the allocator behind the library is not the C library's; all is seen
	HeapFreeThreaded  HeapFlags = 8
	HeapBypassed      HeapFlags = 16 // another allocator stands before the library: only mappings are seen
	HeapLate          HeapFlags = 32 // loaded into a program that ran already: what that held then is not known
)

// Writer reads the writer's counters; zero once the mapping is gone.
func (c *Channel) Writer() (s WriterStats) {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	return WriterStats{
		DroppedRecords: load64(c.mapping, offDroppedRecords),
		DroppedBytes:   load64(c.mapping, offDroppedBytes),
		HeapSampled:    load64(c.mapping, offHeapSampled),
		HeapMean:       load64(c.mapping, offHeapMeanNow),
		HeapUntracked:  load64(c.mapping, offHeapUntracked),
		HeapFlags:      HeapFlags(load64(c.mapping, offHeapFlags)),
		PeakRSS:        load64(c.mapping, offHeapPeakRSS),
	}
}

// Beat tells the writer that an engine with that pid visited at mono, ns of CLOCK_MONOTONIC.
func (c *Channel) Beat(pid int, mono int64) {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	store64(c.mapping, offEnginePID, uint64(pid))
	store64(c.mapping, offEngineBeat, uint64(mono))
}

// StopAtStep asks the agent to end the training after that many steps; 0 takes it back.
func (c *Channel) StopAtStep(step uint64) { c.set(offStopAtStep, step) }

// ScanContainers asks the agent to look for containers that grow.
func (c *Channel) ScanContainers() {
	c.control[1]++
	c.set(offScanSeq, c.control[1])
}

// CountMalloc asks the heap library what the C library's malloc holds; a Malloc record answers, if ever.
func (c *Channel) CountMalloc() {
	c.control[2]++
	c.set(offMallocSeq, c.control[2])
}

// WholeTime is all of a stretch of time, in the parts that Waiting is told in.
const WholeTime = 1 << 16

// Waiting tells the writer, which allows itself a share of the program's time, how much of that the program waited for
// a processor: so many parts of WholeTime.
func (c *Channel) Waiting(parts uint64) {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	store64(c.mapping, offWaiting, min(parts, WholeTime))
}

// MaxAlerts is how many alerts a process may ask for.
const MaxAlerts = 64

const (
	alertTaken   = 1
	alertRefused = 2
)

// Alert is one alert that a process asked for, as the engine answers it.
type Alert int

// Answer says whether it is watched. One that is out of range is nobody's.
func (c *Channel) Answer(a Alert, taken bool) {
	if a < 0 || a >= MaxAlerts {
		return
	}
	state := uint64(alertRefused)
	if taken {
		state = alertTaken
	}
	c.set(offAlertState+8*int(a), state)
}

// Sound tells the process that its alert has sounded once more, with the value that passed the limit.
func (c *Channel) Sound(a Alert, value int64) {
	if a < 0 || a >= MaxAlerts {
		return
	}
	c.sounded[a]++
	c.set(offAlertValue+8*int(a), uint64(value))
	c.set(offAlertCount+8*int(a), c.sounded[a])
}

// set stores a control word, then bumps the sequence that the writer watches.
func (c *Channel) set(off int, value uint64) {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	store64(c.mapping, off, value)
	c.control[0]++
	store64(c.mapping, offControlSeq, c.control[0])
}
