package observe

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSnapshotPaths: what an observed program calls a snapshot is read only if it is a file of the run's folder.
func TestSnapshotPaths(t *testing.T) {
	parent := t.TempDir()
	folder := filepath.Join(parent, "run")
	inFolder := func(name string) string { return filepath.Join(folder, name) }
	for _, err := range []error{
		os.Mkdir(folder, 0o700), os.Mkdir(inFolder("folder"), 0o700), unix.Mkfifo(inFolder("pipe"), 0o600),
		os.WriteFile(inFolder("..file"), []byte("snapshot"), 0o600),
		os.WriteFile(filepath.Join(parent, "secret"), nil, 0o600),
		os.Symlink(filepath.Join(parent, "secret"), inFolder("link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, taken := range map[string]bool{
		inFolder("..file"): true, inFolder("missing"): false, inFolder("pipe"): false, inFolder("link"): false,
		inFolder("folder"): false, inFolder("../secret"): false, filepath.Join(parent, "secret"): false,
	} {
		file, err := openSnapshot(folder, path)
		if (err == nil) != taken || (file != nil) != taken {
			t.Errorf("%s: %v, want it taken: %v", path, err, taken)
		}
		if file != nil {
			file.Close()
		}
	}
}
