package processes

import (
	"encoding/binary"
	"errors"

	"hightide/internal/mem"
)

// What NtQuerySystemInformation(SystemProcessInformation) writes: a chain of SYSTEM_PROCESS_INFORMATION, each followed
// by its threads. Offsets are those of 64-bit Windows (winternl.h, and golang.org/x/sys/windows has the struct).
const (
	atNext       = 0
	atThreads    = 4
	atHardFaults = 16
	atCreated    = 32
	atUserTime   = 40
	atKernelTime = 48
	atPID        = 80
	atParent     = 88
	atVirtual    = 120
	atFaults     = 128
	atPeakRSS    = 136
	atRSS        = 144
	atPrivate    = 200
	entryBytes   = 256
)

// filetimeOf1970 is the start of 1970 in units of 100 ns since 1601.
const filetimeOf1970 = 116444736000000000

var errSnapshot = errors.New("the system's list of processes contradicts itself")

// parseSnapshot reads such an answer. The processes 0 and 4 are the idle loop and the kernel: they are left out.
func parseSnapshot(data []byte) (all []Process, figures map[int]Figures, err error) {
	figures = map[int]Figures{}
	for at := 0; ; {
		if at < 0 || len(data)-at < entryBytes {
			return nil, nil, errSnapshot
		}
		entry := data[at:]
		pid := int(u64(entry, atPID))
		if pid != 0 && pid != kernelPID && u64(entry, atCreated) != 0 { // to Wine one that is being made began never
			all = append(all, Process{PID: pid, Parent: int(u64(entry, atParent)), Start: millis(u64(entry, atCreated))})
			figures[pid] = entryFigures(entry)
		}
		next := int(u32(entry, atNext))
		if next == 0 {
			return all, figures, nil
		}
		if next < entryBytes {
			return nil, nil, errSnapshot
		}
		at += next
	}
}

const kernelPID = 4

// millis turns 100 ns since 1601 into ms since 1970.
func millis(filetime uint64) uint64 {
	if filetime < filetimeOf1970 {
		return 0
	}
	return (filetime - filetimeOf1970) / 10_000
}

func entryFigures(e []byte) Figures {
	f := Figures{
		RSS:     int64(u64(e, atRSS)),
		VMS:     mem.Some(int64(u64(e, atVirtual))),
		CPU:     mem.Some(int64(u64(e, atUserTime)+u64(e, atKernelTime)) * 100),
		Threads: mem.Some(int64(u32(e, atThreads))),
	}
	if private := int64(u64(e, atPrivate)); private > 0 { // to Wine all have none
		f.Private = mem.Some(private)
	}
	if peak := int64(u64(e, atPeakRSS)); peak > 0 {
		f.MaxRSS = mem.Some(peak)
	}
	faults, hard := int64(u32(e, atFaults)), int64(u32(e, atHardFaults))
	if faults > 0 && hard <= faults { // Wine counts none: a program that runs has some
		f.MinorFaults, f.MajorFaults = mem.Some(faults-hard), mem.Some(hard)
	}
	return f
}

func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
