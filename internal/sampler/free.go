package sampler

import (
	"bytes"
	"path/filepath"

	"hightide/internal/mem"
)

// Free is what programs can still take: of the machine's memory, and of this process's control group, whose cache of
// files gives way. Absent where neither says.
func Free(root string) mem.Optional {
	var free mem.Optional
	var buffer [4096]byte
	if n, err := readFile(filepath.Join(root, "proc/meminfo"), buffer[:]); err == nil {
		if value, ok := field(buffer[:n], "MemAvailable"); ok {
			free = mem.Some(value)
		}
	}
	group := OpenCgroup(root, 0)
	defer group.Close()
	limit, limited := group.Limit().Get()
	used, known := group.Used().Get()
	if !limited || !known || len(group.dirs) == 0 {
		return free
	}
	left := max(0, limit-used)
	if n, err := readFile(filepath.Join(group.dirs[0], "memory.stat"), buffer[:]); err == nil {
		for line := range bytes.Lines(buffer[:n]) {
			if cache, ok := bytes.CutPrefix(line, []byte("inactive_file ")); ok {
				left = min(limit, left+number(bytes.TrimSpace(cache)))
			}
		}
	}
	return mem.Some(min(left, free.Or(left)))
}
