package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// inNamespace runs a shell script as root of mounts of its own: $1 is an empty folder, hightide is on PATH.
func inNamespace(t *testing.T, script string) string {
	t.Helper()
	if os.Getuid() != 0 || exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run() != nil {
		t.Skip("only root, and not in every container, may mount")
	}
	text, err := exec.Command("unshare", "-m", "sh", "-eu", "-c", script, "sh", t.TempDir(), pythonPath(t)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text)
}

// TestNoexec: a library cannot be loaded from where programs may not be; another place is taken, or a note says that
// there is none. The loader's own complaint never reaches the program's standard error.
func TestNoexec(t *testing.T) {
	t.Parallel()
	const program = `hightide run --json=$1/out.json -q -- "$2" -c 'import time; x = b"x" * (50 << 20); time.sleep(0.5)' 2>&1; cat $1/out.json`
	somewhere := inNamespace(t, `mkdir $1/cache $1/data; mount -t tmpfs -o noexec tmpfs $1/cache
		export XDG_CACHE_HOME=$1/cache HIGHTIDE_DATA=$1/data; `+program)
	if strings.Contains(somewhere, "ld.so") || strings.Contains(somewhere, "noexec") || !strings.Contains(somewhere, `"heap_bytes"`) {
		t.Errorf("the data directory would have done:\n%s", somewhere)
	}
	nowhere := inNamespace(t, `mkdir $1/cache $1/data; mount -t tmpfs -o noexec tmpfs $1/cache; mount -t tmpfs -o noexec tmpfs $1/data; mount -t tmpfs -o noexec tmpfs /dev/shm
		export XDG_CACHE_HOME=$1/cache HIGHTIDE_DATA=$1/data; `+program)
	if strings.Contains(nowhere, "ld.so") || !strings.Contains(nowhere, "allocations are not seen: no library can be loaded from") || strings.Contains(nowhere, `"heap_bytes"`) {
		t.Errorf("no place would have done:\n%s", nowhere)
	}
}

// TestFullSharedMemory: what programs tell goes over the disk then.
func TestFullSharedMemory(t *testing.T) {
	t.Parallel()
	out := inNamespace(t, `mount -t tmpfs -o size=64k tmpfs /dev/shm; dd if=/dev/zero of=/dev/shm/full bs=64k count=1 2>/dev/null; mkdir $1/data; export HIGHTIDE_DATA=$1/data
		hightide run -q --json=$1/out.json -- "$2" -c 'x = b"x" * (50 << 20); print("ran")' 2>&1; cat $1/out.json`)
	if !strings.Contains(out, "ran\n") || !strings.Contains(out, `"heap_bytes"`) {
		t.Errorf("%s", out)
	}
}

// TestFoldersOfStrangers: what another user made, or put a link or a file in the place of, is not written to, and the
// program runs all the same.
func TestFoldersOfStrangers(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"folders": `setpriv --reuid 65534 --clear-groups mkdir $TMPDIR/hightide-0 /dev/shm/hightide-0`,
		"open":    `mkdir $TMPDIR/hightide-0 /dev/shm/hightide-0; chmod 777 $TMPDIR/hightide-0 /dev/shm/hightide-0`,
		"links":   `setpriv --reuid 65534 --clear-groups mkdir $TMPDIR/theirs; setpriv --reuid 65534 --clear-groups ln -s $TMPDIR/theirs $TMPDIR/hightide-0; ln -s $TMPDIR/theirs /dev/shm/hightide-0`,
		"files":   `touch $TMPDIR/hightide-0 /dev/shm/hightide-0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := inNamespace(t, `mount -t tmpfs -o mode=1777 tmpfs /dev/shm; mount -t tmpfs -o mode=1777 tmpfs /mnt; export TMPDIR=/mnt; unset HOME XDG_CACHE_HOME XDG_DATA_HOME HIGHTIDE_DATA
				`+prepare+`
				hightide run -q -- sh -c 'echo ran' 2>&1
				find $TMPDIR/hightide-0/ $TMPDIR/theirs /dev/shm/hightide-0/ -mindepth 1 2>/dev/null | sed 's/^/stray /'
				find $TMPDIR -name run.hightide | sed 's/^/kept /'
				hightide ls 2>&1 || true`)
			if !strings.Contains(out, "ran\n") || !strings.Contains(out, "; recording into /mnt/hightide-") || !strings.Contains(out, "cannot use the data directory") {
				t.Errorf("it did not run, or did not say where it recorded, or listed a stranger's runs:\n%s", out)
			}
			if strings.Contains(out, "stray ") || strings.Count(out, "kept /mnt/hightide-") != 1 {
				t.Errorf("written to a stranger's, or not kept:\n%s", out)
			}
		})
	}
}
