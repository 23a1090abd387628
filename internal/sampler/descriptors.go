package sampler

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	leastNewFiles = 32 // descriptors more than at the last time, and a quarter more, for their kinds to be told again
	mostKinds     = 12
	otherKinds    = "others"
)

// descriptors counts what a process's open descriptors are, by kind.
func (p *Process) descriptors() map[string]int64 {
	counts := map[string]int64{}
	names, err := os.ReadDir(p.dir + "/fd")
	if err != nil {
		return counts
	}
	for _, name := range names {
		if target, err := os.Readlink(p.dir + "/fd/" + name.Name()); err == nil {
			counts[descriptorKind(target)]++
		}
	}
	return fewest(counts)
}

// sharedPrefix is what a library's blocks of shared memory have in common, as "psm_" of "/dev/shm/psm_1f3a". The
// names that Python's tempfile makes up begin with "tmp", and may have a "_" anywhere.
var sharedPrefix = regexp.MustCompile(`^/dev/shm/([A-Za-z]{2,}_)`)

// descriptorKind is "socket" of "socket:[8123]", "/data/*.txt" of "/data/a1.txt", "/dev/shm/* (deleted)" of a file
// without a name.
func descriptorKind(target string) string {
	if !strings.HasPrefix(target, "/") {
		if kind, _, ok := strings.Cut(target, ":["); ok && kind != "anon_inode" {
			return kind
		}
		return target
	}
	const deleted = " (deleted)"
	path, gone := strings.CutSuffix(target, deleted)
	if strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/") {
		return path
	}
	kind := filepath.Join(filepath.Dir(path), "*"+filepath.Ext(path))
	if found := sharedPrefix.FindStringSubmatch(path); found != nil && !strings.HasPrefix(found[1], "tmp") {
		kind = "/dev/shm/" + found[1] + "*"
	}
	if gone {
		kind += deleted
	}
	return kind
}

// fewest puts all but the most frequent kinds together.
func fewest(counts map[string]int64) map[string]int64 {
	for len(counts) > mostKinds {
		least := ""
		for kind, n := range counts {
			if kind != otherKinds && (least == "" || n < counts[least] || n == counts[least] && kind > least) {
				least = kind
			}
		}
		counts[otherKinds] += counts[least]
		delete(counts, least)
	}
	return counts
}
