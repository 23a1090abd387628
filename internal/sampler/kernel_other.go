//go:build !linux

package sampler

import (
	"errors"
	"syscall"

	"hightide/internal/system"
)

// Other systems have no /proc: what Linux says there is absent. Files of recorded machines cannot be read either.

var errElsewhere = errors.ErrUnsupported

func openFile(string, int) (int, error)             { return -1, errElsewhere }
func pread(int, []byte) (int, error)                { return 0, errElsewhere }
func preadAt(int, []byte, int64) (int, error)       { return 0, errElsewhere }
func readSlowly(string, []byte) (int, error)        { return 0, errElsewhere }
func eachName(int, []byte, func(name []byte)) error { return errElsewhere }
func closeFile(int)                                 {}
func sizeOf(int) int64                              { return 0 }
func ownerOf(string) (uint32, bool)                 { return 0, false }
func inodeOf(string) (uint64, bool)                 { return 0, false }
func memoryOf(string) (inode uint64, user int, bytes, changed int64, ok bool) {
	return 0, 0, 0, 0, false
}

const (
	processClock = iota
	threadClock
	otherClock
)

func clockOf(int) int { return otherClock }

// clock reads the processor time of this process in ns; that of a thread is not told.
func clock(int) (int64, bool) { return 0, false }

type fileSystem struct{}

func (*fileSystem) inMemory(int) (used, total int64) { return 0, 0 }

func sendIf(pid int, signal syscall.Signal, same func() bool) error {
	if !same() {
		return syscall.ESRCH
	}
	return system.Kill(pid, signal)
}
