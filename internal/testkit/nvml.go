package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// FakeNVML compiles testdata/vendors/nvidia/fake_nvml.c, a library that answers as NVIDIA's does for two devices, and has
// the helper that asks it find it. The test runs in a folder of internal. It says that this process holds 1500 MiB of the first.
func FakeNVML(t testing.TB, flags ...string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build a library that answers as NVML does")
	}
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	if err := os.WriteFile(pid, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-DPID_FILE=\"" + pid + "\"",
		"-o", filepath.Join(dir, "libnvidia-ml.so.1"),
		"../../testdata/vendors/nvidia/fake_nvml.c"}, flags...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
}
