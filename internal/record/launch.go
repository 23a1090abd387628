package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hightide/internal/launch"

	"golang.org/x/sys/unix"
)

// LaunchError says that the command could not be started, with the code a shell would end with:
// 127 not found, 126 found but not runnable.
type LaunchError struct {
	Code int
	Err  error
}

func (e *LaunchError) Error() string { return e.Err.Error() }
func (e *LaunchError) Unwrap() error { return e.Err }

// findProgram looks a command up as a shell does: as it stands where it has a slash, else on PATH.
func findProgram(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	denied := error(nil)
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		candidate := filepath.Join(dir, name)
		if !strings.Contains(candidate, "/") {
			candidate = "./" + candidate
		}
		err := runnable(candidate)
		if err == nil {
			return candidate, nil
		}
		var launch *LaunchError
		if errors.As(err, &launch) && launch.Code == 126 && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &LaunchError{127, fmt.Errorf("%s: command not found", name)}
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &LaunchError{127, fmt.Errorf("%s: no such file", path)}
	case err != nil:
		return &LaunchError{126, fmt.Errorf("%s: cannot be looked at: %w", path, err)}
	case info.IsDir():
		return &LaunchError{126, fmt.Errorf("%s: is a folder", path)}
	case unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil:
		return &LaunchError{126, fmt.Errorf("%s: no permission to run it", path)}
	}
	return nil
}

// child is the observed command. It stays in our process group and has our very descriptors, so
// the terminal and the shell see it as they would without us; nothing ties its life to ours.
type child struct {
	pid         int
	waits       chan wait
	hadTerminal bool
}

// wait is a change of state: stopped by a signal, or ended.
type wait struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
}

// streams are the command's descriptors; done closes what was opened for it.
func streams(r *launch.Runtime) (files []uintptr, done func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range []*os.File{r.Stdin, r.Stdout, r.Stderr} {
		fd, err := descriptor(cmp.Or(f, null))
		if err != nil {
			null.Close()
			return nil, nil, fmt.Errorf("a stream of the command: %w", err)
		}
		files = append(files, fd)
	}
	return files, func() { null.Close() }, nil
}

// descriptor of a file. Unlike Fd it leaves the file's flags alone, which others may share.
func descriptor(f *os.File) (fd uintptr, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	return fd, conn.Control(func(number uintptr) { fd = number })
}

// start runs the program with these descriptors.
func start(program string, argv, env []string, files []uintptr) (*child, error) {
	attr := &syscall.ProcAttr{Env: env, Files: files}
	pid, err := syscall.ForkExec(program, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without #!: what a shell would do
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", program}, argv[1:]...), attr)
	}
	switch {
	case errors.Is(err, syscall.ENOENT): // of the interpreter that the script names
		return nil, &LaunchError{127, fmt.Errorf("%s: its interpreter does not exist", program)}
	case err != nil:
		return nil, &LaunchError{126, fmt.Errorf("%s: %w", program, err)}
	}
	c := &child{pid: pid, waits: make(chan wait, 8), hadTerminal: hasTerminal()}
	go c.watch()
	return c, nil
}

// watch reports every stop, and at last the end.
func (c *child) watch() {
	for {
		var w wait
		_, err := syscall.Wait4(c.pid, &w.status, syscall.WUNTRACED, &w.usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // somebody else took the status: as good as an end without one
			close(c.waits)
			return
		}
		c.waits <- w
		if !w.status.Stopped() {
			close(c.waits)
			return
		}
	}
}
