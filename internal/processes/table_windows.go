package processes

import (
	"unsafe"

	"hightide/internal/mem"

	"golang.org/x/sys/windows"
)

// Windows is the table of Windows: one call answers for all processes, whoever they are of.
type Windows struct {
	answer  []byte
	figures map[int]Figures
}

// List implements Table.
func (w *Windows) List() ([]Process, error) {
	if w.answer == nil {
		w.answer = make([]byte, 512<<10)
	}
	for {
		var needed uint32
		err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&w.answer[0]),
			uint32(len(w.answer)), &needed)
		if err == windows.STATUS_INFO_LENGTH_MISMATCH {
			w.answer = make([]byte, max(2*len(w.answer), int(needed)))
			continue
		}
		if err != nil {
			return nil, err
		}
		all, figures, err := parseSnapshot(w.answer)
		w.figures = figures
		return all, err
	}
}

// Figures implements Table.
func (w *Windows) Figures(pid int) (Figures, bool) {
	f, ok := w.figures[pid]
	return f, ok && f.Threads.Or(0) > 0 // one that has ended stays listed for as long as somebody holds it
}

// commandLine is ProcessCommandLineInformation, from Windows 8.1 on.
const commandLine = 60

// Command implements Table.
func (*Windows) Command(pid int) []string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(process)
	answer := make([]uint64, 8<<10)
	var size uint32
	if windows.NtQueryInformationProcess(process, commandLine, unsafe.Pointer(&answer[0]), uint32(len(answer)*8),
		&size) == nil {
		text := (*windows.NTUnicodeString)(unsafe.Pointer(&answer[0]))
		if words, err := windows.DecomposeCommandLine(text.String()); err == nil && len(words) > 0 {
			return words
		}
	}
	image := make([]uint16, windows.MAX_LONG_PATH)
	length := uint32(len(image))
	if windows.QueryFullProcessImageName(process, 0, &image[0], &length) != nil {
		return nil
	}
	return []string{windows.UTF16ToString(image[:length])}
}

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                                         uint32
	total, available, totalPage, availablePage, totalVirtual, availableVirtual, extended uint64
}

var globalMemory = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// Memory implements Table.
func (*Windows) Memory() (m Memory) {
	var status memoryStatus
	status.length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := globalMemory.Call(uintptr(unsafe.Pointer(&status))); ok != 0 {
		m.Total, m.Available = mem.Some(int64(status.total)), mem.Some(int64(status.available))
	}
	return m
}
