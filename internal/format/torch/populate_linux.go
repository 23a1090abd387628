package torch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate has the kernel provide the memory of rows [from, to) of a column. Otherwise that happens
// page by page as they are written, and takes a third as long as decoding what is written. It is a
// request: kernels before 5.14 know nothing of it.
func populate[T any](column []T, from, to int) {
	const page = 4096
	if to = min(to, len(column)); from >= to {
		return
	}
	begin := uintptr(unsafe.Pointer(&column[from]))
	skip := -begin & (page - 1)
	size := uintptr(to-from) * unsafe.Sizeof(column[0])
	if size < skip+page {
		return
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&column[from])), size)
	_ = unix.Madvise(bytes[skip:skip+(size-skip)&^(page-1)], unix.MADV_POPULATE_WRITE)
}
