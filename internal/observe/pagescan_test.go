package observe

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestScanTellsWhatThePageMapTells: both ways give the same count, in runs of any length. The page of zeros that is
// only read is resident in the page map, and in no resident set.
func TestScanTellsWhatThePageMapTells(t *testing.T) {
	const page, pages = 4096, 4 * runsAtOnce
	block, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(block)
	if err := unix.Madvise(block, unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	first := uint64(uintptr(unsafe.Pointer(&block[0]))) / page
	scanning, reading := pagemap{}, pagemap{noScan: true}
	defer scanning.close()
	defer reading.close()
	if !scanning.ready(os.Getpid()) || !reading.ready(os.Getpid()) {
		t.Skip("the kernel shows no pages here")
	}
	same := func(what string, want int) {
		t.Helper()
		_, read := reading.count(first, first+pages)
		all, scanned := scanning.count(first, first+pages)
		if scanning.noScan {
			t.Skip("this kernel tells no runs of pages")
		}
		if all != pages || read != want || scanned != want {
			t.Errorf("%s: %d scanned of %d, %d read, want %d", what, scanned, all, read, want)
		}
	}
	same("nothing touched", 0)
	for i := 0; i < pages; i += 2 { // more runs than are told at once
		block[i*page] = 1
	}
	same("every other page", pages/2)
	for i := range pages {
		block[i*page] = 1
	}
	same("all", pages)
	if err := unix.Madvise(block, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	sum := byte(0)
	for i := range pages {
		sum += block[i*page]
	}
	if _, scanned := scanning.count(first, first+pages); scanned != 0 || sum != 0 {
		t.Errorf("%d pages of zeros count as resident", scanned)
	}
}
