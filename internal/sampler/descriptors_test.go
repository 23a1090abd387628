package sampler

import "testing"

// TestDescriptorKind: a library's shared memory keeps its name's beginning, a name made up by chance does not.
func TestDescriptorKind(t *testing.T) {
	for target, kind := range map[string]string{
		"socket:[8123]":                          "socket",
		"anon_inode:[eventpoll]":                 "anon_inode:[eventpoll]",
		"/data/a1.txt":                           "/data/*.txt",
		"/dev/null":                              "/dev/null",
		"/dev/shm/torch_812_3361987_4 (deleted)": "/dev/shm/torch_* (deleted)",
		"/dev/shm/psm_1f3a":                      "/dev/shm/psm_*",
		"/dev/shm/#8123 (deleted)":               "/dev/shm/* (deleted)",
		"/dev/shm/tmpab_c1d2 (deleted)":          "/dev/shm/* (deleted)",
	} {
		if got := descriptorKind(target); got != kind {
			t.Errorf("%s: %q, want %q", target, got, kind)
		}
	}
}
