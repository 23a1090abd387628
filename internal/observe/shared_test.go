package observe

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/launch"
)

// left are the names of the runs whose leftovers a look finds.
func left(root string) (runs []string) {
	Leftovers(&launch.Runtime{Shared: root}, func(l Leftover) { runs = append(runs, l.ID) })
	return runs
}

// TestHeldFolderIsLeftAlone: a folder is its engine's for as long as that lives, and then goes to one
// that recovers it, or goes if nobody will.
func TestHeldFolderIsLeftAlone(t *testing.T) {
	root, out := filepath.Join(t.TempDir(), "root"), t.TempDir()
	wanted, err := Hold(SharedPath(root, "wanted"), "wanted", out)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := Hold(SharedPath(root, "deleted"), "deleted", filepath.Join(out, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	trial, err := Hold(SharedPath(root, "trial"), "trial", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := left(root); len(got) != 0 {
		t.Errorf("engines live, and %q were taken for leftovers", got)
	}
	for _, s := range []*Shared{wanted, deleted, trial} {
		if _, err := os.Stat(s.Dir); err != nil {
			t.Errorf("an engine that lives lost its folder: %v", err)
		}
		s.lock.Close() // as the kernel does for an engine that was killed
	}
	if got := left(root); len(got) != 1 || got[0] != "wanted" {
		t.Errorf("leftovers %q, want the one that has a recording", got)
	}
	for _, s := range []*Shared{deleted, trial} {
		if _, err := os.Stat(s.Dir); err == nil {
			t.Errorf("%s is nobody's, and stays", s.Dir)
		}
	}
	again := 0
	Leftovers(&launch.Runtime{Shared: root}, func(Leftover) { again = len(left(root)) })
	if again != 0 {
		t.Error("a leftover that is being recovered was given to another one too")
	}
	wanted.Close()
	if _, err := os.Stat(wanted.Dir); err == nil {
		t.Error("a closed folder stays")
	}
}

// TestEnginesOfOtherContainers: an engine whose process and files are not seen from here holds its
// folder as any other does. What it leaves is not deleted for want of its files.
func TestEnginesOfOtherContainers(t *testing.T) {
	if root := os.Getenv("HIGHTIDE_TEST_HOLD"); root != "" {
		holdInContainer(root)
		return
	}
	root := filepath.Join(t.TempDir(), "root")
	c := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--mount", "--mount-proc", "--fork",
		"--kill-child", os.Args[0], "-test.run=TestEnginesOfOtherContainers")
	c.Env = append(os.Environ(), "HIGHTIDE_TEST_HOLD="+root)
	end, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	defer c.Wait()
	defer end.Close()
	said, _ := bufio.NewReader(out).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(said), "holds ")
	if !ok {
		t.Skipf("no namespaces here: %s", said)
	}
	if got := left(root); len(got) != 0 {
		t.Errorf("%q were taken for leftovers of dead engines", got)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the folder of an engine in another container is gone: %v", err)
	}
	end.Close()
	_ = c.Wait()
	if got := left(root); len(got) != 1 || got[0] != "there" {
		t.Errorf("leftovers %q after the engine's death, want there", got)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("deleted, though its recording is in another container: %v", err)
	}
}

// holdInContainer holds a folder until its input ends, then dies as an engine that is killed.
func holdInContainer(root string) {
	if os.Getpid() != 1 {
		fmt.Println("not in a namespace of its own")
		os.Exit(1)
	}
	s, err := Hold(SharedPath(root, "there"), "there", "/a folder/of that container")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holds " + s.Dir)
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// TestFolderOfOthers: a link, and what others can write, is refused in one line that names it.
func TestFolderOfOthers(t *testing.T) {
	base := t.TempDir()
	mine, open, link, file := filepath.Join(base, "mine"), filepath.Join(base, "open"), filepath.Join(base, "link"),
		filepath.Join(base, "file")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{open, link, file} {
		s, err := Hold(SharedPath(root, "x"), "x", "")
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line that names it", filepath.Base(root), err)
		}
	}
	s, err := Hold(SharedPath(open+"er", "x"), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	first, second := SharedPath(mine, "fit"), SharedPath(mine, "fit")
	if first == second {
		t.Error("two folders of one name")
	}
}
