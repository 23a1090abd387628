package diagnose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/system"
)

// within is what stands between programs here and Linux on a machine of their own, and what it takes
// away beyond what the other abilities find out by trying. arch is what this program is built for.
func within(root, arch string) []Ability {
	read := func(path string) string {
		text, _ := os.ReadFile(filepath.Join(root, path))
		return string(text)
	}
	var found []Ability
	add := func(name string, a Ability) {
		a.Name = name
		found = append(found, a)
	}
	version := read("proc/version")
	if gvisor(version) {
		add("gVisor", partly("its own kernel answers instead of Linux: memory is what that one counts, without "+
			"what gVisor itself takes; a limit set from outside and a kill by it are not seen", "the container's runtime knows both"))
	}
	if strings.Contains(strings.ToLower(version), "microsoft") {
		add("WSL", partly("memory is that of a virtual machine, which Windows gives a part of its own; what "+
			"Windows' programs take is not seen", "for more, memory= under [wsl2] in .wslconfig, then wsl --shutdown"))
	}
	if outside, ok := mapped(read("proc/self/uid_map")); ok {
		add("user namespace", partly("as in rootless Podman: user "+outside[0]+" here is user "+outside[1]+" outside; "+
			"where a container is limited by control groups of version 1, rootless Podman sets no limit", ""))
	}
	if readOnly(read("proc/self/mounts")) {
		add("read-only root", partly("files are written only to what is mounted beside the root",
			"name such a folder with --data-dir or $HIGHTIDE_DATA; in a container, a volume that outlasts it"))
	}
	if other := translated(read("proc/cpuinfo"), arch); other != "" {
		add("translation", partly("this hightide is built for "+arch+", and the processor is "+other+": Rosetta or "+
			"qemu translates programs, and their memory has the translator's own in it", "use hightide and Python for "+other))
	}
	return found
}

// gvisor says whether a kernel's version is gVisor's: its releases name one moment, newer ones gVisor too.
func gvisor(version string) bool {
	return strings.Contains(version, "Sun Jan 10 15:06:54 PST 2016") || strings.Contains(version, "-gvisor")
}

// mapped is the first user of this namespace and who that is outside; false where users are what they are outside.
func mapped(uidMap string) (users [2]string, ok bool) {
	words := strings.Fields(uidMap)
	if len(words) < 3 || len(words) == 3 && words[0] == "0" && words[1] == "0" && words[2] == "4294967295" {
		return users, false
	}
	return [2]string{words[0], words[1]}, true
}

// readOnly says whether the root of a table of mounts may not be written to. What is mounted there last counts.
func readOnly(mounts string) bool {
	found := false
	for line := range strings.Lines(mounts) {
		if words := strings.Fields(line); len(words) > 3 && words[1] == "/" {
			found = slices.Contains(strings.Split(words[3], ","), "ro")
		}
	}
	return found
}

// translated is the kind of processor that the machine has, where it is not what a program is built for; "" else.
func translated(cpuinfo, arch string) string {
	switch {
	case arch == "amd64" && strings.Contains(cpuinfo, "CPU implementer"):
		return "arm64"
	case arch == "arm64" && strings.Contains(cpuinfo, "vendor_id"):
		return "amd64"
	}
	return ""
}

// notCounted is what this kernel does not count for a process, by what it says of this one, which has
// made page faults.
func notCounted(stat, status string) []string {
	var missing []string
	if !strings.Contains(status, "\nVmSwap:") {
		missing = append(missing, "swap")
	}
	_, after, _ := strings.Cut(stat, ") ")
	if words := strings.Fields(after); len(words) > 9 && words[7] == "0" && words[9] == "0" {
		missing = append(missing, "page faults")
	}
	return missing
}

// processAbility tries what is read of every process.
func processAbility() Ability {
	if !system.Procfs {
		return partly("RSS, address space, faults, CPU and threads of the process tree; "+system.Untried, "")
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return no("/proc: "+reason(err), "mount proc")
	}
	status, _ := os.ReadFile("/proc/self/status")
	if missing := notCounted(string(stat), string(status)); len(missing) > 0 {
		return partly("RSS, VMS, CPU, threads and files of the process tree; this kernel does not count "+
			strings.Join(missing, " and "), "")
	}
	return yes("RSS, VMS, swap, faults, CPU, threads and files of the process tree; no ptrace needed")
}
