package shm

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"
)

// The layout of include/hightide_device.h; device_test.go compares it with the C compiler's.
const (
	DeviceMagic = 0x3142545645445448 // "HTDEVTB1" in memory
	DeviceABI   = 3

	gpuHeaderBytes = 4096
	gpuBytes       = 1024
	useBytes       = 192
	oomBytes       = 216
	readBytes      = 256
	callBytes      = 80
	maxGPUs        = 16
	slotHead       = 224
	oomCount       = 64
	readCount      = 128
	callCount      = 512
	usesAt         = slotHead
	oomsAt         = usesAt + maxGPUs*useBytes
	readsAt        = oomsAt + oomCount*oomBytes
	callsAt        = readsAt + readCount*readBytes
	slotBytes      = callsAt + callCount*callBytes
	maxSlots       = 4096

	offTableSequence = 72
	offTableLacking  = 80
	offTableUsed     = 2208
)

// DeviceKind is what device memory is used for, enum ht_gpu_kind.
type DeviceKind int

// Kinds of device memory. Pinned host memory is counted with them and is none.
const (
	DeviceAllocation DeviceKind = iota
	DeviceMapped
	DevicePool
	DeviceContext
	DeviceCUBLAS
	DeviceCUDNN
	DeviceNCCL
	DeviceOther
	DeviceGraph
	DevicePinned
	DeviceKinds
)

// DeviceKindNames are indexed by DeviceKind.
var DeviceKindNames = [DeviceKinds]string{"allocated", "mapped", "pools", "context", "cublas", "cudnn", "nccl",
	"other", "graphs", "pinned"}

// DeviceTable tells of a run's imaginary GPUs and who uses them, mapped from shared memory. Every value it gives is
// as the library wrote it: unjudged, and from a process that may be anyone's.
type DeviceTable struct {
	mapping []byte
	devices int
	slots   int
	devAt   int
	slotsAt int
	scratch []byte
}

// GPU is one imaginary GPU.
type GPU struct {
	Index    int
	Name     string
	Slug     string
	UUID     string
	Total    uint64 // bytes
	Reserved uint64 // that the driver keeps
	Context  uint64 // of each process
	Used     uint64
	Peak     uint64
	PeakTime int64 // ns, CLOCK_MONOTONIC
	Failed   uint64
	Major    int
	Minor    int
	SMs      int
}

// DeviceUse is what one process has on one GPU, by DeviceKind.
type DeviceUse struct {
	Used     [DeviceKinds]uint64
	Peak     uint64 // of the sum without pinned
	PeakTime int64
	AtPeak   [DeviceKinds]uint64
	Failed   uint64
	Launches uint64
}

// Sum is what the process has on the device now.
func (u *DeviceUse) Sum() uint64 {
	var sum uint64
	for kind, bytes := range u.Used {
		if DeviceKind(kind) != DevicePinned {
			sum += bytes
		}
	}
	return sum
}

// DeviceProcess is one process that touched a GPU.
type DeviceProcess struct {
	Slot    int
	State   DeviceState
	PID     int
	Start   uint64 // field 22 of /proc/PID/stat
	CUDA    int    // 12040; 0: not known
	Rank    int    // -1: none
	Visible uint64 // bit i: it can see GPU i
	Devices []DeviceUse

	CallsLost     uint64
	ReadCount     uint64
	ReadBytes     uint64
	OOMCount      uint64
	ShadowBytes   uint64
	ShadowDropped uint64
}

// DeviceState is the life of a process in the table, enum ht_gpu_state.
type DeviceState uint32

// States of a process; one that was killed stays live until another process notices.
const (
	DeviceFree DeviceState = iota
	DeviceLive
	DeviceEnded
	DeviceReaped
)

// DeviceCall counts calls of one library function.
type DeviceCall struct {
	Name  string
	Kind  CallKind
	Count uint64
}

// CallKind says how a call was answered, enum ht_gpu_call_kind.
type CallKind uint32

// Kinds of calls.
const (
	CallModelled CallKind = 1
	CallCommand  CallKind = 2 // it succeeded and did nothing
	CallRefused  CallKind = 3 // it has an output that is not modelled, and failed
)

// DeviceRead counts reads, at one Python line, of memory that a kernel would have written.
type DeviceRead struct {
	Count    uint64
	Bytes    uint64
	Smallest uint32
	Line     int
	File     string
	Function string
}

// DeviceOOM is a request that did not fit.
type DeviceOOM struct {
	Number uint64
	Time   int64
	Asked  uint64
	Free   uint64
	Own    uint64
	Device int
	Kind   DeviceKind
	Line   int
	File   string
}

// OpenDeviceTable checks the header of a mapped table. The mapping must be shared and stay mapped while it
// is used; it may be read-only. Errors: ErrNotReady while it is being set up, ErrCorrupt, or an
// unknown version.
func OpenDeviceTable(mapping []byte) (b *DeviceTable, err error) {
	defer caught(debug.SetPanicOnFault(true), mapping, &err)
	if len(mapping) < gpuHeaderBytes {
		return nil, fmt.Errorf("%w: %d bytes are less than the header of the device table", ErrNotReady, len(mapping))
	}
	if uintptr(unsafe.Pointer(&mapping[0]))%8 != 0 {
		return nil, fmt.Errorf("%w: mapping is not aligned", ErrCorrupt)
	}
	switch magic := load64(mapping, 0); magic {
	case DeviceMagic:
	case 0:
		return nil, ErrNotReady
	default:
		return nil, fmt.Errorf("%w: magic %#x", ErrCorrupt, magic)
	}
	if abi := load32(mapping, 8); abi != DeviceABI {
		return nil, fmt.Errorf("device table of version %d: this hightide reads version %d", abi, DeviceABI)
	}
	devices, slots := load32(mapping, 16), load32(mapping, 24)
	if load32(mapping, 20) != gpuBytes || load32(mapping, 28) != slotBytes || devices == 0 || devices > maxGPUs ||
		slots > maxSlots {
		return nil, fmt.Errorf("%w: %d GPUs of %d bytes, %d processes of %d", ErrCorrupt, devices, load32(mapping, 20),
			slots, load32(mapping, 28))
	}
	devAt, slotsAt, size := load64(mapping, 32), load64(mapping, 40), uint64(len(mapping))
	if devAt%8 != 0 || slotsAt%8 != 0 || !inside(devAt, uint64(devices)*gpuBytes, size) ||
		!inside(slotsAt, uint64(slots)*slotBytes, size) {
		return nil, fmt.Errorf("%w: table of %d bytes with GPUs at %d and processes at %d", ErrCorrupt, size, devAt, slotsAt)
	}
	return &DeviceTable{mapping: mapping, devices: int(devices), slots: int(slots), devAt: int(devAt),
		slotsAt: int(slotsAt), scratch: make([]byte, slotBytes)}, nil
}

// inside says whether n bytes at off end within size.
func inside(off, n, size uint64) bool { return off >= gpuHeaderBytes && off <= size && n <= size-off }

// copyOut copies a stretch of the mapping, each word at once.
func (b *DeviceTable) copyOut(off, n int) []byte {
	to := b.scratch[:n]
	for i := 0; i < n; i += 8 {
		putU64(to[i:], load64(b.mapping, off+i))
	}
	return to
}

func putU64(to []byte, v uint64) {
	_ = to[7]
	for i := range 8 {
		to[i] = byte(v >> (8 * i))
	}
}

// Sequence is odd while something changes under the writers' lock. A copy between two equal even
// ones is of one moment.
func (b *DeviceTable) Sequence() uint64 {
	var gone error
	defer caught(debug.SetPanicOnFault(true), b.mapping, &gone)
	return load64(b.mapping, offTableSequence)
}

// Consistent calls read until nothing changed meanwhile, at most 8 times; false: the last copy may
// mix two moments, or its writer was killed.
func (b *DeviceTable) Consistent(read func() error) (whole bool, err error) {
	for range 8 {
		before := b.Sequence()
		if err := read(); err != nil {
			return false, err
		}
		if before%2 == 0 && b.Sequence() == before {
			return true, nil
		}
	}
	return false, nil
}

// Lacking is how many processes found no slot, or no memory for one: nothing here tells of them.
func (b *DeviceTable) Lacking() (n uint64) {
	var gone error
	defer caught(debug.SetPanicOnFault(true), b.mapping, &gone)
	return load64(b.mapping, offTableLacking)
}

// GPUs reads all GPUs.
func (b *DeviceTable) GPUs() (gpus []GPU, err error) {
	defer caught(debug.SetPanicOnFault(true), b.mapping, &err)
	for i := range b.devices {
		p := b.copyOut(b.devAt+i*gpuBytes, gpuBytes)
		gpus = append(gpus, GPU{
			Index: i, Name: zeroEnded(p[:96]), Slug: zeroEnded(p[96:128]), UUID: zeroEnded(p[128:176]),
			Total: u64(p, 192), Reserved: u64(p, 200), Context: u64(p, 208), Used: u64(p, 216), Peak: u64(p, 224),
			PeakTime: int64(u64(p, 232)),
			Failed:   u64(p, 240), Major: int(u32(p, 252)), Minor: int(u32(p, 256)), SMs: int(u32(p, 260)),
		})
	}
	return gpus, nil
}

// Processes reads what each process that touched a GPU has there.
func (b *DeviceTable) Processes() (all []DeviceProcess, err error) {
	defer caught(debug.SetPanicOnFault(true), b.mapping, &err)
	// Slots behind have no memory yet, and where the file system is full there is none for them.
	used := int(min(load64(b.mapping, offTableUsed), uint64(b.slots)))
	for slot := range used {
		at := b.slotsAt + slot*slotBytes
		if load32(b.mapping, at) == uint32(DeviceFree) {
			continue
		}
		p := b.copyOut(at, oomsAt)
		process := DeviceProcess{
			Slot: slot, State: DeviceState(u32(p, 0)), PID: int(u32(p, 4)), Start: u64(p, 8), CallsLost: u64(p, 40),
			ReadCount: u64(p, 48), ReadBytes: u64(p, 56),
			OOMCount: u64(p, 64), ShadowBytes: u64(p, 72), ShadowDropped: u64(p, 80), CUDA: int(u32(p, 88)),
			Rank: int(int32(u32(p, 92))), Visible: u64(p, 96),
		}
		for i := range b.devices {
			process.Devices = append(process.Devices, decodeUse(p[usesAt+i*useBytes:]))
		}
		all = append(all, process)
	}
	return all, nil
}

func decodeUse(p []byte) (u DeviceUse) {
	for kind := range u.Used {
		u.Used[kind] = u64(p, 8*kind)
		u.AtPeak[kind] = u64(p, 96+8*kind)
	}
	u.Peak, u.PeakTime, u.Failed, u.Launches = u64(p, 80), int64(u64(p, 88)), u64(p, 176), u64(p, 184)
	return u
}

// Details reads what a process of a slot was answered, what it read, and what it could not get, in
// the order of its requests.
func (b *DeviceTable) Details(slot int) (calls []DeviceCall, reads []DeviceRead, ooms []DeviceOOM, err error) {
	defer caught(debug.SetPanicOnFault(true), b.mapping, &err)
	if slot < 0 || slot >= b.slots {
		return nil, nil, nil, nil
	}
	all := b.copyOut(b.slotsAt+slot*slotBytes, slotBytes)
	for i := range callCount {
		p := all[callsAt+i*callBytes:][:callBytes]
		if count := u64(p, 0); count > 0 {
			calls = append(calls, DeviceCall{zeroEnded(p[16:80]), CallKind(u32(p, 8)), count})
		}
	}
	for i := range readCount {
		p := all[readsAt+i*readBytes:][:readBytes]
		if count := u64(p, 0); count > 0 {
			reads = append(reads, DeviceRead{count, u64(p, 8), u32(p, 20), int(int32(u32(p, 16))), zeroEnded(p[24:184]),
				zeroEnded(p[184:256])})
		}
	}
	for i := range oomCount {
		p := all[oomsAt+i*oomBytes:][:oomBytes]
		if number := u64(p, 0); number > 0 {
			oom := DeviceOOM{number, int64(u64(p, 8)), u64(p, 16), u64(p, 24), u64(p, 32), int(u32(p, 40)),
				DeviceKind(u32(p, 44)), int(int32(u32(p, 48))), zeroEnded(p[56:216])}
			if oom.Kind < 0 || oom.Kind >= DeviceKinds {
				oom.Kind = DeviceOther
			}
			ooms = append(ooms, oom)
		}
	}
	return calls, reads, ooms, nil
}

// zeroEnded is a text that ends with a zero byte, as UTF-8.
func zeroEnded(p []byte) string {
	if i := bytes.IndexByte(p, 0); i >= 0 {
		p = p[:i]
	}
	return strings.ToValidUTF8(string(p), "?")
}
