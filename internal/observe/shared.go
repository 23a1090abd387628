package observe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/launch"
	"hightide/internal/system"
)

// Shared is a folder in shared memory through which an engine and the programs it runs work together.
// The engine holds a lock on it for as long as it lives. By that lock alone others see that it does:
// containers that share /dev/shm count their processes each from 1, and do not see each other's files.
type Shared struct {
	Dir  string
	lock *os.File
}

// SharedPath is a new path for such a folder. Part of its name is random: names and pids of other
// containers may be the same.
func SharedPath(root, name string) string {
	return filepath.Join(root, name+"-"+strings.ToLower(rand.Text()[:10]))
}

// Hold makes a folder and locks it. Its parent must be this user's own, and nobody else's to write; it is
// made where there is none. The folder belongs to a run; out is where the run's files go, "" where nothing of it is
// to be kept.
func Hold(path, run, out string) (*Shared, error) {
	if err := launch.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for what programs report: %w", err)
	}
	s := &Shared{Dir: path}
	var err error
	if s.lock, err = lockFolder(path); err == nil {
		text := strings.Join([]string{run, out, namespace("pid"), namespace("mnt")}, "\n")
		err = os.WriteFile(filepath.Join(path, ownerFile), []byte(text), 0o600)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("hold %s: %w", path, err)
	}
	return s, nil
}

// Close removes the folder.
func (s *Shared) Close() {
	if s.lock != nil && !system.LocksFolders { // a file in it, which cannot be removed while it is open
		_ = s.lock.Close()
	}
	_ = os.RemoveAll(s.Dir)
	if s.lock != nil && system.LocksFolders {
		_ = s.lock.Close()
	}
}

// ownerFile in a folder says whose it is: the run, where its files go, and the namespaces of processes
// and files that its engine lives in, a line each. It appears once the folder is locked.
const ownerFile = "owner"

// errHeld says that an engine lives that holds a folder.
var errHeld = errors.New("held by an engine that lives")

// lockFolder takes the lock, which ends with the process.
func lockFolder(path string) (*os.File, error) {
	flags := os.O_RDONLY | system.Folder | system.NoFollow
	if !system.LocksFolders {
		path, flags = filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE|system.NoFollow
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := system.Lock(file, false); {
	case errors.Is(err, system.ErrLocked):
		file.Close()
		return nil, errHeld
	// a disk without locks, where nobody looks
	case err != nil && !system.NoLocks(err):
		file.Close()
		return nil, err
	}
	return file, nil
}

// namespace names one of this process; two processes with the same one count pids, or see files, alike.
func namespace(kind string) string {
	name, _ := os.Readlink("/proc/self/ns/" + kind)
	return name
}

// Leftover is a folder whose engine went away: killed, or out of memory together with the training.
// What the processes wrote after that is still in it. It is locked until it is closed.
type Leftover struct {
	ID   string // of the run
	Dir  string
	lock *os.File
}

// forgotten is the age at which a leftover is deleted whose recording nobody comes for.
const forgotten = 7 * 24 * time.Hour

// Leftovers shows visit the folders in shared memory whose engine is dead, and whose processes are too: one
// that still trains would go on writing. Those that nobody will come for are deleted.
func Leftovers(r *launch.Runtime, visit func(Leftover)) {
	root := r.SharedDir()
	if launch.Private(root) != nil {
		return
	}
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		if _, err := os.Lstat(filepath.Join(dir, ownerFile)); err != nil {
			continue // the helpers' folder, or one that is being made
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue
		}
		if info, err := entry.Info(); err == nil {
			lookAtFolder(dir, lock, r.Time().Sub(info.ModTime()), visit)
		}
		lock.Close()
	}
}

// lookAtFolder decides what becomes of a folder that no engine holds.
func lookAtFolder(dir string, lock *os.File, age time.Duration, visit func(Leftover)) {
	text, err := os.ReadFile(filepath.Join(dir, ownerFile)) // again: somebody may have just come for it
	owner := strings.Split(string(text), "\n")
	if err != nil || len(owner) != 4 {
		return
	}
	run, out, pids, files := owner[0], owner[1], owner[2], owner[3]
	if pids == namespace("pid") && channelAlive(dir) {
		return
	}
	unwanted := out == "" || age > forgotten
	if files == namespace("mnt") && !unwanted {
		_, err := os.Stat(out)
		unwanted = errors.Is(err, os.ErrNotExist) // its recording was deleted
	}
	if unwanted {
		_ = os.RemoveAll(dir)
		return
	}
	visit(Leftover{run, dir, lock})
}

// channelAlive says whether a process still holds a channel of the folder.
func channelAlive(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if pid, start, ok := channelOwner(entry.Name()); ok && launch.Alive(pid, start) {
			return true
		}
	}
	return false
}

// channelOwner is the process whose a channel is by its name: ROLE-PID-START[-N].ring.
func channelOwner(name string) (pid int, start uint64, ok bool) {
	words := strings.Split(strings.TrimSuffix(name, ".ring"), "-")
	if len(words) < 3 {
		return 0, 0, false
	}
	n, _ := fmt.Sscan(words[1]+" "+words[2], &pid, &start)
	return pid, start, n == 2
}
