package psutil

import (
	"sync"
	"unsafe"

	"hightide/internal/processes"

	"github.com/ebitengine/purego"
)

const (
	pidTaskInfo  = 4 // PROC_PIDTASKINFO
	rusageInfoV2 = 2 // RUSAGE_INFO_V2
)

var libproc = sync.OnceValue(func() (calls struct {
	pidInfo   func(pid, flavor int32, arg uint64, buffer unsafe.Pointer, size int32) int32
	pidRusage func(pid, flavor int32, buffer unsafe.Pointer) int32
}) {
	library, err := purego.Dlopen("/usr/lib/libSystem.B.dylib", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err == nil {
		purego.RegisterLibFunc(&calls.pidInfo, library, "proc_pidinfo")
		purego.RegisterLibFunc(&calls.pidRusage, library, "proc_pid_rusage")
	}
	return calls
})

// askLibproc adds what libproc tells of a process of this user.
func askLibproc(pid int, f *processes.Figures) {
	calls := libproc()
	if calls.pidInfo == nil {
		return
	}
	var task [taskInfoBytes / 8]uint64 // aligned as the structs are
	if n := calls.pidInfo(int32(pid), pidTaskInfo, 0, unsafe.Pointer(&task), taskInfoBytes); n == taskInfoBytes {
		addTaskInfo(f, unsafe.Slice((*byte)(unsafe.Pointer(&task)), taskInfoBytes))
	}
	var usage [rusageBytes / 8]uint64
	if calls.pidRusage(int32(pid), rusageInfoV2, unsafe.Pointer(&usage)) == 0 {
		addRusage(f, unsafe.Slice((*byte)(unsafe.Pointer(&usage)), rusageBytes))
	}
}
