package observe

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// nativeNames names addresses of one process by the file that is mapped there and the offset in
// it. That is the same in every process and at every run of the same build.
type nativeNames struct {
	pid     int
	maps    []mapped
	missing int
	saved   int // missing, when the maps were last saved
}

type mapped struct {
	start, end, offset uint64
	file               string
}

// location names one address. The maps are read again for an address that is in none of them, but
// not over and over for one that never will be: code made at run time.
func (n *nativeNames) location(address uint64) mem.Location {
	m, ok := n.find(address)
	if !ok && n.missing < 64 {
		n.missing++
		if maps := readMaps(n.pid); len(maps) > 0 {
			n.maps = maps
		}
		m, ok = n.find(address)
	}
	if !ok {
		return mem.Location{File: "<native>", Native: true}
	}
	return mem.Location{File: filepath.Base(m.file), Function: fmt.Sprintf("+%#x", address-m.start+m.offset), Native: true}
}

func (n *nativeNames) find(address uint64) (mapped, bool) {
	at, ok := slices.BinarySearchFunc(n.maps, address, func(m mapped, a uint64) int {
		switch {
		case m.end <= a:
			return -1
		case m.start > a:
			return 1
		}
		return 0
	})
	if !ok {
		return mapped{}, false
	}
	return n.maps[at], true
}

// readMaps lists the executable mappings of files; empty where the process is gone.
func readMaps(pid int) []mapped {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	var maps []mapped
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// 7f1c…-7f1d… r-xp 00026000 08:01 1234   /usr/lib/libc.so.6
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(fields[2], 16, 64)
		if cmp.Or(err1, err2, err3) == nil {
			maps = append(maps, mapped{start, end, offset, fields[5]})
		}
	}
	return maps
}
