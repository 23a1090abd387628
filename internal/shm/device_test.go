package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestDeviceLayout compares our constants of the table with what the C compiler makes of the header.
func TestDeviceLayout(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to read include/hightide_device.h with")
	}
	var program, want strings.Builder
	program.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include \"hightide_device.h\"\nint main(void) {\n")
	for _, c := range []struct {
		expression string
		value      uint64
	}{
		{"HT_GPU_MAGIC", DeviceMagic}, {"HT_GPU_ABI", DeviceABI}, {"sizeof(struct ht_gpu_header)", gpuHeaderBytes},
		{"sizeof(struct ht_gpu)", gpuBytes},
		{"sizeof(struct ht_gpu_use)", useBytes}, {"sizeof(struct ht_gpu_oom)", oomBytes},
		{"sizeof(struct ht_gpu_read)", readBytes},
		{"sizeof(struct ht_gpu_call)", callBytes}, {"sizeof(struct ht_gpu_process)", slotBytes},
		{"HT_GPU_DEVICES", maxGPUs}, {"HT_GPU_OOMS", oomCount},
		{"HT_GPU_READS", readCount}, {"HT_GPU_CALLS", callCount}, {"HT_KINDS", uint64(DeviceKinds)},
		{"HT_KIND_PINNED", uint64(DevicePinned)},
		{"HT_KIND_CONTEXT", uint64(DeviceContext)}, {"HT_KIND_NCCL", uint64(DeviceNCCL)},
		{"HT_CALL_REFUSED", uint64(CallRefused)}, {"HT_GPU_REAPED", uint64(DeviceReaped)},
		{"offsetof(struct ht_gpu_header, device_count)", 16}, {"offsetof(struct ht_gpu_header, device_bytes)", 20},
		{"offsetof(struct ht_gpu_header, slot_count)", 24},
		{"offsetof(struct ht_gpu_header, slot_bytes)", 28}, {"offsetof(struct ht_gpu_header, devices_at)", 32},
		{"offsetof(struct ht_gpu_header, slots_at)", 40},
		{"offsetof(struct ht_gpu_header, sequence)", offTableSequence},
		{"offsetof(struct ht_gpu_header, slots_lacking)", offTableLacking},
		{"offsetof(struct ht_gpu_header, slots_used)", offTableUsed},
		{"offsetof(struct ht_gpu, total)", 192}, {"offsetof(struct ht_gpu, peak_mono_ns)", 232},
		{"offsetof(struct ht_gpu, failed)", 240},
		{"offsetof(struct ht_gpu, cc_major)", 252}, {"offsetof(struct ht_gpu, sm_count)", 260},
		{"offsetof(struct ht_gpu_use, peak)", 80}, {"offsetof(struct ht_gpu_use, at_peak)", 96},
		{"offsetof(struct ht_gpu_use, failed)", 176},
		{"offsetof(struct ht_gpu_use, launches)", 184}, {"offsetof(struct ht_gpu_process, calls_lost)", 40},
		{"offsetof(struct ht_gpu_process, ooms_count)", 64},
		{"offsetof(struct ht_gpu_process, cuda)", 88}, {"offsetof(struct ht_gpu_process, rank)", 92},
		{"offsetof(struct ht_gpu_process, visible)", 96},
		{"offsetof(struct ht_gpu_process, devices)", usesAt}, {"offsetof(struct ht_gpu_process, ooms)", oomsAt},
		{"offsetof(struct ht_gpu_process, reads)", readsAt},
		{"offsetof(struct ht_gpu_process, calls)", callsAt}, {"offsetof(struct ht_gpu_read, line)", 16},
		{"offsetof(struct ht_gpu_read, file)", 24},
		{"offsetof(struct ht_gpu_read, function)", 184}, {"offsetof(struct ht_gpu_oom, line)", 48},
		{"offsetof(struct ht_gpu_oom, file)", 56}, {"offsetof(struct ht_gpu_call, name)", 16},
	} {
		fmt.Fprintf(&program, "printf(\"%%s = %%llu\\n\", %q, (unsigned long long)(%s));\n", c.expression, c.expression)
		fmt.Fprintf(&want, "%s = %d\n", c.expression, c.value)
	}
	program.WriteString("return 0; }\n")
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(source, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-I", "../../include", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("C says\n%s\nGo says\n%s", got, want.String())
	}
}

// newTable is what the library would have made: two GPUs, room for three processes.
func newTable() []byte {
	b := aligned(gpuHeaderBytes + 2*gpuBytes + 3*slotBytes)
	put := binary.LittleEndian
	put.PutUint64(b, DeviceMagic)
	put.PutUint32(b[8:], DeviceABI)
	put.PutUint32(b[12:], gpuHeaderBytes)
	put.PutUint32(b[16:], 2)
	put.PutUint32(b[20:], gpuBytes)
	put.PutUint32(b[24:], 3)
	put.PutUint32(b[28:], slotBytes)
	put.PutUint64(b[32:], gpuHeaderBytes)
	put.PutUint64(b[40:], gpuHeaderBytes+2*gpuBytes)
	put.PutUint64(b[48:], uint64(len(b)))
	put.PutUint64(b[offTableUsed:], 2)
	for i := range 2 {
		g := b[gpuHeaderBytes+i*gpuBytes:]
		copy(g, "NVIDIA A10")
		copy(g[96:], "a10")
		put.PutUint64(g[192:], 23609475072)
		put.PutUint64(g[216:], 5<<30)
		put.PutUint64(g[224:], 7<<30)
		put.PutUint32(g[252:], 8)
		put.PutUint32(g[256:], 6)
		put.PutUint32(g[260:], 72)
	}
	p := b[gpuHeaderBytes+2*gpuBytes+slotBytes:] // the second slot
	put.PutUint32(p, uint32(DeviceEnded))
	put.PutUint32(p[4:], 4711)
	put.PutUint64(p[8:], 99)
	put.PutUint32(p[92:], 0xffffffff)
	use := p[usesAt+useBytes:] // on the second GPU
	put.PutUint64(use[8*int(DeviceAllocation):], 4<<30)
	put.PutUint64(use[8*int(DeviceContext):], 300<<20)
	put.PutUint64(use[8*int(DevicePinned):], 1<<30)
	put.PutUint64(use[80:], 6<<30)
	oom := p[oomsAt:]
	put.PutUint64(oom, 1)
	put.PutUint64(oom[16:], 2<<30)
	put.PutUint32(oom[40:], 1)
	put.PutUint32(oom[48:], 88)
	copy(oom[56:], "train.py")
	read := p[readsAt:]
	put.PutUint64(read, 12)
	put.PutUint64(read[8:], 96)
	put.PutUint32(read[16:], 31)
	put.PutUint32(read[20:], 8)
	copy(read[24:], "train.py")
	copy(read[184:], "step")
	call := p[callsAt+callBytes:]
	put.PutUint64(call, 3)
	put.PutUint32(call[8:], uint32(CallRefused))
	copy(call[16:], "cufftXtQueryPlan")
	return b
}

// aligned is memory as mmap gives it.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n]
}

func TestDeviceTable(t *testing.T) {
	b, err := OpenDeviceTable(newTable())
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := b.GPUs()
	if err != nil || len(gpus) != 2 || gpus[1].Name != "NVIDIA A10" || gpus[1].Slug != "a10" || gpus[1].Peak != 7<<30 ||
		gpus[1].SMs != 72 || gpus[1].Minor != 6 {
		t.Fatalf("%+v %v", gpus, err)
	}
	processes, err := b.Processes()
	if err != nil || len(processes) != 1 {
		t.Fatalf("%+v %v", processes, err)
	}
	p := processes[0]
	if p.PID != 4711 || p.Start != 99 || p.State != DeviceEnded || p.Rank != -1 || p.Slot != 1 || len(p.Devices) != 2 {
		t.Errorf("%+v", p)
	}
	if sum := p.Devices[1].Sum(); sum != 4<<30+300<<20 || p.Devices[1].Peak != 6<<30 || p.Devices[0].Sum() != 0 {
		t.Errorf("%d of %+v", sum, p.Devices)
	}
	calls, reads, ooms, err := b.Details(1)
	if err != nil || len(calls) != 1 || calls[0] != (DeviceCall{"cufftXtQueryPlan", CallRefused, 3}) {
		t.Errorf("%+v %v", calls, err)
	}
	if len(reads) != 1 || reads[0] != (DeviceRead{12, 96, 8, 31, "train.py", "step"}) {
		t.Errorf("%+v", reads)
	}
	if len(ooms) != 1 || ooms[0].Asked != 2<<30 || ooms[0].Device != 1 || ooms[0].Line != 88 ||
		ooms[0].File != "train.py" {
		t.Errorf("%+v", ooms)
	}
	if _, _, _, err := b.Details(99); err != nil {
		t.Error(err)
	}
}

// TestDeviceTableHalfWritten: an odd sequence is never taken for a whole moment, and never waited for.
func TestDeviceTableHalfWritten(t *testing.T) {
	mapping := newTable()
	b, err := OpenDeviceTable(mapping)
	if err != nil {
		t.Fatal(err)
	}
	read := func() error { _, err := b.GPUs(); return err }
	if whole, err := b.Consistent(read); !whole || err != nil {
		t.Errorf("%v %v", whole, err)
	}
	store64(mapping, offTableSequence, 7)
	if whole, err := b.Consistent(read); whole || err != nil {
		t.Errorf("%v %v", whole, err)
	}
	n := uint64(8)
	if whole, _ := b.Consistent(func() error { n += 2; store64(mapping, offTableSequence, n); return nil }); whole {
		t.Error("a copy over a change was taken for whole")
	}
}

func TestDeviceTableRefused(t *testing.T) {
	for name, spoil := range map[string]func([]byte){
		"magic":   func(b []byte) { b[0]++ },
		"version": func(b []byte) { b[8] = 9 },
		"GPUs":    func(b []byte) { b[16] = 17 },
		"no GPU":  func(b []byte) { b[16] = 0 },
		"at":      func(b []byte) { binary.LittleEndian.PutUint64(b[40:], 1<<63) },
		"wraps":   func(b []byte) { binary.LittleEndian.PutUint64(b[40:], ^uint64(7)) },
		"odd":     func(b []byte) { b[32]++ },
		"slots":   func(b []byte) { binary.LittleEndian.PutUint32(b[24:], 4) },
		"header":  func(b []byte) { binary.LittleEndian.PutUint64(b[32:], 8) },
	} {
		b := newTable()
		spoil(b)
		if _, err := OpenDeviceTable(b); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := OpenDeviceTable(newTable()[:100]); !errors.Is(err, ErrNotReady) {
		t.Error(err)
	}
	if _, err := OpenDeviceTable(aligned(gpuHeaderBytes)); !errors.Is(err, ErrNotReady) {
		t.Error(err)
	}
}

// FuzzDeviceTable: whatever the other side writes, reading stays inside the mapping and ends.
func FuzzDeviceTable(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 4, 0, 0}, uint16(16), uint16(200))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255}, uint16(32), uint16(4097))
	f.Fuzz(func(t *testing.T, content []byte, header, body uint16) {
		mapping := newTable()
		for i, v := range content {
			mapping[(int(header)+i)%gpuHeaderBytes] = v
			mapping[gpuHeaderBytes+(int(body)*8+i)%(len(mapping)-gpuHeaderBytes)] = v
		}
		b, err := OpenDeviceTable(mapping)
		if err != nil {
			return
		}
		gpus, err := b.GPUs()
		if err != nil || len(gpus) > maxGPUs {
			t.Fatal(err)
		}
		processes, err := b.Processes()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range processes {
			if len(p.Devices) != len(gpus) {
				t.Fatalf("%d GPUs, use of %d", len(gpus), len(p.Devices))
			}
			calls, reads, ooms, err := b.Details(p.Slot)
			if err != nil || len(calls) > callCount || len(reads) > readCount || len(ooms) > oomCount {
				t.Fatal(err)
			}
			for _, oom := range ooms {
				_ = DeviceKindNames[oom.Kind]
			}
		}
	})
}

// TestDeviceTableCutShort: a program that truncates the file under us ends the reading, not the engine.
func TestDeviceTableCutShort(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "devices"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content := newTable()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	mapping, err := syscall.Mmap(int(f.Fd()), 0, len(content), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(mapping) }()
	b, err := OpenDeviceTable(mapping)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GPUs(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("GPUs: %v", err)
	}
	if _, err := b.Processes(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("processes: %v", err)
	}
	if _, _, _, err := b.Details(1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("details: %v", err)
	}
	if b.Sequence() != 0 || b.Lacking() != 0 {
		t.Error("words of a file that is gone")
	}
	if _, err := OpenDeviceTable(mapping); !errors.Is(err, ErrCorrupt) {
		t.Errorf("open: %v", err)
	}
}

// TestTableOfAFullFileSystem: of slots that were never taken the file has no page, and where its file system is full
// there is none to be had.
func TestTableOfAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("this user may not mount a file system of 256 KiB: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	file, err := os.Create(filepath.Join(dir, "devices"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table := newTable()
	binary.LittleEndian.PutUint32(table[24:], 256)
	written := gpuHeaderBytes + 2*gpuBytes + 2*slotBytes
	size := gpuHeaderBytes + 2*gpuBytes + 256*slotBytes
	if _, err := file.Write(table[:written]); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = filler.Write(page)
	}
	mapping, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mapping)
	b, err := OpenDeviceTable(mapping)
	if err != nil {
		t.Fatal(err)
	}
	if processes, err := b.Processes(); err != nil || len(processes) != 1 {
		t.Errorf("%d processes, %v: want the one that was written", len(processes), err)
	}
}
