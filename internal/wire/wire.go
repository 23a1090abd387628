// Package wire writes and reads recordings: a header, then blocks, each with a checksum and found
// again after damage, each holding frames.
//
//	mem.Frame ──▶ kinds.go: kind, length, payload ──▶ block.go: zstd, CRC-32C ──▶ io.Writer
//	               columns.go (what is many)                                          │
//	               JSON      (what is few)                                            ▼
//	mem.Run ◀── Load ◀── mem.Frame ◀── Reader.Next: skips damage, says where   recording file
//
// The format is specified in docs/formats/recording.md. Frame kinds and their numbers are in
// kinds.go; a number is never reused, and a reader skips kinds it does not know. Everything read is
// taken for a stranger's: sizes and counts are bounded before memory is asked for. Start reading at
// Writer in writer.go.
package wire

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// Magic starts every recording. Like PNG's it shows transfers that drop the eighth bit or change
// line ends.
const Magic = "\x89htide\r\n"

// Version of the format. A change of Major means that older readers cannot read it.
const (
	Major = 1
	Minor = 0
)

// blockSync starts every block.
const blockSync = "\xf5HTblk\x1a\n"

const (
	fileHeaderSize  = 16
	blockHeaderSize = 40

	// MaxBlock bounds a block's frames before compression, and so (less a little) any one frame.
	MaxBlock = 8 << 20

	// blockTarget is where a block is closed without being asked to.
	blockTarget = 256 << 10
)

// Block kinds.
const blockFrames = 1

// Codecs of a block.
const (
	codecStored = 0
	codecZstd   = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrFormat says that the input is not a recording at all.
var ErrFormat = errors.New("not a hightide recording")

// ErrTooLarge says that a frame, or what a recording adds up to, is beyond the limits.
var ErrTooLarge = errors.New("recording is beyond the limits")

// ErrNewer says that the recording needs a newer hightide.
type ErrNewer struct{ Major, Minor int }

func (e ErrNewer) Error() string {
	return fmt.Sprintf("recording has format %d.%d and this hightide reads up to %d: install a newer hightide to read it",
		e.Major, e.Minor, Major)
}
