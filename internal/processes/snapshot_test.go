package processes

import (
	"encoding/binary"
	"os"
	"testing"

	"hightide/internal/mem"
)

// TestSnapshot reads what Wine 8 answered, and an answer of Windows' layout with counts that Wine does not keep.
func TestSnapshot(t *testing.T) {
	answer, err := os.ReadFile("testdata/wine-8.bin")
	if err != nil {
		t.Fatal(err)
	}
	all, figures, err := parseSnapshot(answer)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d processes: %v", len(all), err)
	}
	last := len(all) - 1 // the program that asked
	if f := figures[all[last].PID]; all[last] != (Process{220, 56, 1795803012204}) || f.RSS != 14929920 ||
		f.MaxRSS != mem.Some(14929920) || f.Threads != mem.Some(7) || f.CPU != mem.Some(20e6) {
		t.Errorf("the last is %v, %+v", all[last], f)
	}
	for pid, f := range figures {
		if f.RSS <= 0 || f.Private.Known() || f.MinorFaults.Known() || f.MajorFaults.Known() || f.Files.Known() {
			t.Errorf("%d: %+v: Wine counts neither faults nor private memory, and nobody counts files", pid, f)
		}
	}
	entry := make([]byte, entryBytes)
	for at, value := range map[int]uint64{atPID: 4711, atParent: 12, atCreated: filetimeOf1970 + 1_500_000_0000,
		atUserTime: 30, atKernelTime: 20, atVirtual: 9 << 30, atRSS: 5 << 20, atPeakRSS: 6 << 20, atPrivate: 4 << 20} {
		binary.LittleEndian.PutUint64(entry[at:], value)
	}
	for at, value := range map[int]uint32{atThreads: 3, atFaults: 1000, atHardFaults: 10} {
		binary.LittleEndian.PutUint32(entry[at:], value)
	}
	all, figures, err = parseSnapshot(entry)
	want := Figures{RSS: 5 << 20, VMS: mem.Some(9 << 30), MaxRSS: mem.Some(6 << 20), Private: mem.Some(4 << 20),
		CPU: mem.Some(5000), Threads: mem.Some(3), MinorFaults: mem.Some(990), MajorFaults: mem.Some(10)}
	if err != nil || len(all) != 1 || all[0] != (Process{4711, 12, 1_500_000}) || figures[4711] != want {
		t.Errorf("%v, %+v, %v", all, figures, err)
	}
}

// FuzzSnapshot: an answer gives processes with figures each, or an error.
func FuzzSnapshot(f *testing.F) {
	if answer, err := os.ReadFile("testdata/wine-8.bin"); err == nil {
		f.Add(answer)
	}
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		all, figures, err := parseSnapshot(data)
		if err != nil && (all != nil || figures != nil) {
			t.Fatalf("%v and %v", all, err)
		}
		for _, p := range all {
			if _, ok := figures[p.PID]; !ok {
				t.Fatalf("%d has no figures", p.PID)
			}
		}
	})
}
