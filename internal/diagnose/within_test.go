package diagnose

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWithin reads the files of machines within something, listed in testdata/within/README.md.
func TestWithin(t *testing.T) {
	for _, test := range []struct{ folder, arch, name, text string }{
		{"gvisor-2022", "amd64", "gVisor", "its own kernel answers instead of Linux"},
		{"gvisor-2026", "arm64", "gVisor", "a limit set from outside and a kill by it are not seen"},
		{"wsl2", "amd64", "WSL", "what Windows' programs take is not seen"},
		{"rootless", "amd64", "user namespace", "user 0 here is user 1001 outside"},
		{"read-only", "amd64", "read-only root", "only to what is mounted beside the root"},
		{"rosetta", "amd64", "translation", "built for amd64, and the processor is arm64"},
		{"gvisor-2022", "arm64", "translation", "built for arm64, and the processor is amd64"},
		{"rosetta", "arm64", "", ""},
		{"nothing-there", "amd64", "", ""},
	} {
		found := within(filepath.Join("testdata", "within", test.folder), test.arch)
		if test.name == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", test.folder, found)
			}
			continue
		}
		i := slices.IndexFunc(found, func(a Ability) bool { return a.Name == test.name })
		if i < 0 || found[i].Can != Partly || !strings.Contains(found[i].Text, test.text) {
			t.Errorf("%s: %+v", test.folder, found)
		}
		if one := test.arch == "amd64"; one && len(found) != 1 {
			t.Errorf("%s: %+v", test.folder, found)
		}
	}
}

func TestNotCounted(t *testing.T) {
	const gvisor = "7 (a (b) R) R 1 1 1 0 0 0 0 0 0 0 3 2 0 0 20 0 1 0 13 12296192 1017 18446744073709551615 0"
	const linux = "7 (cat) R 1 1 1 0 -1 4194304 85 0 2 0 0 0 0 0 20 0 1 0 13 12296192 1017 18446744073709551615 0"
	const status = "Name:\tcat\nVmRSS:\t4588 kB\n"
	if got := notCounted(gvisor, status); !slices.Equal(got, []string{"swap", "page faults"}) {
		t.Error(got)
	}
	if got := notCounted(linux, status+"VmSwap:\t0 kB\n"); len(got) > 0 {
		t.Error(got)
	}
}
