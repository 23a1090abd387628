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
	text, err := exec.Command("unshare", "-m", "sh", "-eu", "-c", script, "sh", t.TempDir(),
		pythonPath(t)).CombinedOutput()
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
	if strings.Contains(somewhere, "ld.so") || strings.Contains(somewhere, "noexec") ||
		!strings.Contains(somewhere, `"heap_bytes"`) {
		t.Errorf("the data directory would have done:\n%s", somewhere)
	}
	nowhere := inNamespace(t, `mkdir $1/cache $1/data; mount -t tmpfs -o noexec tmpfs $1/cache; mount -t tmpfs -o noexec tmpfs $1/data; mount -t tmpfs -o noexec tmpfs /dev/shm
		export XDG_CACHE_HOME=$1/cache HIGHTIDE_DATA=$1/data; `+program)
	if strings.Contains(nowhere, "ld.so") ||
		!strings.Contains(nowhere, "allocations are not seen: no library can be loaded from") ||
		strings.Contains(nowhere, `"heap_bytes"`) {
		t.Errorf("no place would have done:\n%s", nowhere)
	}
}

// TestReadOnlyRoot: info says that nothing can be kept at home, and in a folder that can be written to a run is recorded
// with its heap.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	out := inNamespace(t, `mount -t tmpfs tmpfs $1; mkdir $1/tmp; mount -o remount,ro,bind /
		export HOME=/ XDG_DATA_HOME=/kept XDG_CACHE_HOME=/cache XDG_CONFIG_HOME=/config TMPDIR=$1/tmp
		unset HIGHTIDE_DATA; hightide info; export HIGHTIDE_DATA=$1/data; hightide info
		hightide run -q --json=$1/out.json -- "$2" -c 'x = b"x" * (50 << 20); print("ran")' 2>&1; cat $1/out.json`)
	for _, want := range []string{
		"◐ read-only root ", "✗ recordings        /kept/hightide cannot be written: read-only file system",
		"✓ recordings ", "ran\n", `"heap_bytes"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
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
			if !strings.Contains(out, "ran\n") || !strings.Contains(out, "; recording into /mnt/hightide-") ||
				!strings.Contains(out, "cannot use the data directory") {
				t.Errorf("it did not run, or did not say where it recorded, or listed a stranger's runs:\n%s", out)
			}
			if strings.Contains(out, "stray ") || strings.Count(out, "kept /mnt/hightide-") != 1 {
				t.Errorf("written to a stranger's, or not kept:\n%s", out)
			}
		})
	}
}

// TestSpilled: a run whose data directory cannot be written, or has no room, lies in the temporary folder. ls and
// show know it under that data directory, and under no other.
func TestSpilled(t *testing.T) {
	t.Parallel()
	for name, place := range map[string][2]string{
		"read-only":       {`mkdir $1/data; mount -t tmpfs -o ro tmpfs $1/data`, `umount $1/data`},
		"still read-only": {`mkdir $1/data; mount -t tmpfs -o ro tmpfs $1/data`, `true`},
		"full":            {`mkdir $1/data; mount -t tmpfs -o size=64k tmpfs $1/data`, `true`},
		"no folder":       {`touch $1/data`, `rm $1/data`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := inNamespace(t, `mount -t tmpfs -o mode=1777 tmpfs /mnt; export TMPDIR=/mnt HIGHTIDE_DATA=$1/data
				`+place[0]+`
				hightide run -q --name mine -- sh -c 'echo ran' 2>&1
				`+place[1]+`
				hightide ls 2>&1; hightide show mine 2>&1; hightide rm mine 2>&1; hightide ls 2>&1
				echo other; hightide ls --data-dir $1/other 2>&1`)
			known, after, _ := strings.Cut(out, "other\n")
			if !strings.Contains(known, "; recording into /mnt/hightide-") ||
				strings.Count(known, "lie in /mnt/hightide-") != 1 {
				t.Errorf("it is not said where it lies, or more than once:\n%s", out)
			}
			if !strings.Contains(known, "mine: sh -c 'echo ran'") || !strings.Contains(known, "No runs.") ||
				strings.Contains(after, "mine") {
				t.Errorf("it is not shown, not deleted, or taken for another folder's:\n%s", out)
			}
		})
	}
}
