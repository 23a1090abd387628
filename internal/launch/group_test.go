package launch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGroup: a program begins in the control group that it is given, and this thread is where it was.
func TestGroup(t *testing.T) {
	before, _ := os.ReadFile("/proc/thread-self/cgroup")
	for _, g := range []struct {
		version int
		mount   string
	}{{1, "/sys/fs/cgroup/memory"}, {2, "/sys/fs/cgroup"}, {2, "/sys/fs/cgroup/unified"}} {
		folder := filepath.Join(ownFolder(string(before), g.mount, g.version), fmt.Sprintf("hightide-test-%d", os.Getpid()))
		if os.Mkdir(folder, 0o755) != nil {
			continue
		}
		t.Run(g.mount, func(t *testing.T) {
			defer os.Remove(folder)
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			program, err := Find("cat", os.Environ())
			if err != nil {
				t.Fatal(err)
			}
			child, err := program.Start([]string{"cat", "/proc/self/cgroup"}, os.Environ(), &Runtime{Stdout: writer,
				Group: Group{g.version, folder}})
			writer.Close()
			if err != nil {
				t.Skipf("nothing can be started there: %v", err)
			}
			text, _ := io.ReadAll(reader)
			for range child.Changes {
			}
			child.Close()
			if !strings.Contains(string(text), "/"+filepath.Base(folder)) {
				t.Errorf("it began in\n%s", text)
			}
			if after, _ := os.ReadFile("/proc/thread-self/cgroup"); string(after) != string(before) {
				t.Errorf("this thread is in\n%s\nand was in\n%s", after, before)
			}
		})
	}
}

// ownFolder is this process's group in a mounted hierarchy.
func ownFolder(groups, mount string, version int) string {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if version == 2 && parts[0] == "0" || version == 1 && parts[1] == "memory" {
			return filepath.Join(mount, parts[2])
		}
	}
	return mount
}
