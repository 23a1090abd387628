package pickle

import (
	"io"
	"io/fs"
)

// SizeOf is the bytes that a file or a reader in memory will give, 0 where nobody knows. It only
// spares copies.
func SizeOf(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	case interface{ Len() int }:
		return int64(r.Len())
	}
	return 0
}
