package sampler

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Left is a block of /dev/shm that no process maps or has open: its memory stays until somebody removes it.
type Left struct {
	Name  string
	Bytes int64 // of memory
	New   bool  // it was written to since the sampler began
}

// leftBlocks lists them; where not all processes can be looked at, those of this user alone. since: ns of the wall
// clock.
func leftBlocks(root string, since int64) (left []Left) {
	blocks := sharedBlocks(root)
	if len(blocks) == 0 {
		return nil // nor is there a need to look at all processes of the machine, which takes tens of milliseconds
	}
	used, known := usedBlocks(root)
	for _, b := range blocks {
		// one's own processes can be looked at
		if !used[b.inode] && (known || b.user == os.Geteuid()) {
			left = append(left, Left{b.name, b.bytes, b.changed >= since})
		}
	}
	return left
}

type sharedBlock struct {
	name    string
	inode   uint64
	user    int
	bytes   int64 // of memory
	changed int64 // ns of the wall clock: its content, or what is known of it
}

// sharedBlocks are the files of /dev/shm that take memory.
func sharedBlocks(root string) (blocks []sharedBlock) {
	folder := filepath.Join(root, "dev/shm")
	entries, _ := os.ReadDir(folder) // none: there is no such folder here
	for _, entry := range entries {
		if inode, user, bytes, changed, ok := memoryOf(filepath.Join(folder, entry.Name())); ok &&
			entry.Type().IsRegular() && bytes > 0 {
			blocks = append(blocks, sharedBlock{entry.Name(), inode, user, bytes, changed})
		}
	}
	return blocks
}

// usedBlocks are the files of /dev/shm that processes map or have open, by number; known is false where one could not
// be looked at.
func usedBlocks(root string) (used map[uint64]bool, known bool) {
	used, known = map[uint64]bool{}, true
	processes, _ := filepath.Glob(filepath.Join(root, "proc/[0-9]*"))
	for _, dir := range processes {
		if !mapped(dir+"/maps", used) {
			if _, err := os.Stat(dir); err == nil {
				known = false
			}
			continue
		}
		names, _ := os.ReadDir(dir + "/fd")
		for _, name := range names {
			open := dir + "/fd/" + name.Name()
			if target, err := os.Readlink(open); err == nil && strings.HasPrefix(target, "/dev/shm/") {
				if inode, ok := inodeOf(open); ok {
					used[inode] = true
				}
			}
		}
	}
	return used, known
}

// mapped adds the files of /dev/shm that a list of mappings names; false where it cannot be read.
func mapped(maps string, used map[uint64]bool) bool {
	file, err := os.Open(maps)
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // range, rights, offset, device, inode, path
		if len(fields) >= 6 && strings.HasPrefix(fields[5], "/dev/shm/") {
			if inode, err := strconv.ParseUint(fields[4], 10, 64); err == nil {
				used[inode] = true
			}
		}
	}
	return lines.Err() == nil
}
