package sampler

import (
	"bytes"
	"encoding/binary"
)

// How much of a process' anonymous memory it shares with others, its parent and its siblings as a rule, is known without a
// walk of all its pages: the kernel's page map says of each page whether one process alone maps it, and a sample
// of pages is enough.

const (
	sampledRuns   = 1500 // of neighbouring pages, spread over all that may be shared
	pagesOfRun    = 8
	entryBytes    = 8
	fewestPages   = 200 // of a sample that says something
	pagePresent   = 1 << 63
	pageOfFile    = 1 << 61 // or shared memory
	pageExclusive = 1 << 56 // from Linux 4.2
)

// exclusive is the share of the resident anonymous pages that p alone maps, of a sample; false where the kernel does
// not tell, or has none to show.
func (p *Process) exclusive(maps []byte) (float64, bool) {
	n, err := readWhole(p.dir+"/maps", maps)
	if err != nil {
		return 0, false
	}
	file, err := openFile(p.dir+"/pagemap", 0)
	if err != nil {
		return 0, false
	}
	defer closeFile(file)
	var total uint64
	eachPrivate(maps[:n], func(from, to uint64) { total += to - from })
	distance := max(total/sampledRuns, uint64(pagesOfRun*pageSize))
	here, alone, next := 0, 0, distance/2
	var run [pagesOfRun * entryBytes]byte
	eachPrivate(maps[:n], func(from, to uint64) {
		for ; next < to-from; next += distance {
			at := (from + next) / uint64(pageSize)
			got, err := preadAt(file, run[:], int64(at*entryBytes))
			if err != nil {
				continue
			}
			for i := 0; i+entryBytes <= got; i += entryBytes {
				entry := binary.LittleEndian.Uint64(run[i:])
				if entry&pagePresent == 0 || entry&pageOfFile != 0 {
					continue
				}
				here++
				if entry&pageExclusive != 0 {
					alone++
				}
			}
		}
		next -= to - from
	})
	if here < fewestPages {
		return 0, false
	}
	return float64(alone) / float64(here), true
}

// eachPrivate visits the writable private mappings of a process, in bytes: "7f1c…-7f1d… rw-p …".
func eachPrivate(text []byte, visit func(from, to uint64)) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			return // cut
		}
		dash, space := bytes.IndexByte(line, '-'), bytes.IndexByte(line, ' ')
		if dash < 0 || space < dash || len(line) < space+5 || line[space+2] != 'w' || line[space+4] != 'p' {
			continue
		}
		from, to := hexadecimal(line[:dash]), hexadecimal(line[dash+1:space])
		if to > from {
			visit(from, to)
		}
	}
}

func hexadecimal(text []byte) (value uint64) {
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			value = value<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			value = value<<4 | uint64(c-'a'+10)
		default:
			return value
		}
	}
	return value
}

// readWhole reads a file up to the size of the buffer; the kernel gives it a page at a time.
func readWhole(path string, buffer []byte) (int, error) {
	file, err := openFile(path, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(file)
	size := 0
	for size < len(buffer) {
		n, err := preadAt(file, buffer[size:], int64(size))
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		size += n
	}
	return size, nil
}
