package launch

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed all:keeper/lib
var keeperLib embed.FS

// Kept is a program's output on its way through processes that keep it (keeper/src/keeper.c). They outlive this
// process: a program whose hightide is killed writes on.
type Kept struct {
	ours  []*os.File // the program's ends
	ended []<-chan struct{}
}

// Keep has what a program writes kept in a file that is open for appending, and gives its streams in r another end.
// Where shows is set, it also goes where it would have gone; else only what is not a terminal does, as a file that
// the shell redirects to. A terminal is replaced by another, so that the program writes as it would have; a stream
// that is none by a pipe. Of more than limit bytes (0: any number) the beginning and the end are kept, with a hole of
// the file between them.
func Keep(r *Runtime, file *os.File, shows bool, limit int64) (*Kept, error) {
	image, err := keeperLib.ReadFile("keeper/lib/hightide-keeper")
	if err != nil {
		return nil, errors.New("this hightide was built without the program that keeps output (make -C internal/launch)")
	}
	k := &Kept{}
	terminals := map[uint64]*os.File{} // by device: standard output and error of one terminal stay in order
	for _, stream := range []**os.File{&r.Stdout, &r.Stderr} {
		if *stream == nil {
			continue
		}
		device := terminalOf(*stream)
		if end := terminals[device]; end != nil && device != 0 {
			*stream = end
			continue
		}
		var to *os.File
		if to = *stream; device != 0 && !shows {
			to = nil
		}
		end, err := k.startKeeper(image, file, to, device != 0, *stream, limit)
		if err != nil {
			k.Close(0)
			return nil, err
		}
		*stream = end
		terminals[device] = end
	}
	return k, nil
}

// startKeeper starts one keeper and returns the program's end.
func (k *Kept) startKeeper(image []byte, file, to *os.File, terminal bool, like *os.File, limit int64) (end *os.File,
	err error) {
	var source *os.File
	if terminal {
		source, end, err = openTerminal(like)
	} else {
		source, end, err = blockingPipe()
	}
	if err != nil {
		return nil, err
	}
	defer source.Close()
	program, err := memoryProgram("hightide-keeper", image)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	files := []uintptr{source.Fd(), file.Fd()}
	if to != nil {
		fd, err := descriptor(to)
		if err != nil {
			return nil, err
		}
		files = append(files, fd)
	}
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", program.Fd()),
		[]string{"hightide-keeper", strconv.FormatInt(limit, 10)},
		&syscall.ProcAttr{Dir: "/", Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		end.Close()
		return nil, fmt.Errorf("start what keeps the output: %w", err)
	}
	k.ours = append(k.ours, end)
	ended := make(chan struct{})
	k.ended = append(k.ended, ended)
	go func() {
		defer close(ended)
		for {
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	return end, nil
}

// Close gives back this process's ends and waits a while for all that was written. What programs that were left
// behind write later is still kept.
func (k *Kept) Close(patience time.Duration) {
	for _, f := range k.ours {
		f.Close()
	}
	late := time.After(patience)
	for _, ended := range k.ended {
		select {
		case <-ended:
		case <-late:
			return
		}
	}
}

// Resize gives the program's terminal another size.
func (k *Kept) Resize(columns, rows int) {
	for _, f := range k.ours {
		_ = unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	}
}

// terminalOf is the device of a terminal, 0 of what is none.
func terminalOf(f *os.File) uint64 {
	fd, err := descriptor(f)
	if err != nil {
		return 0
	}
	var info unix.Stat_t
	if _, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err != nil || unix.Fstat(int(fd), &info) != nil {
		return 0
	}
	return info.Rdev
}

// openTerminal makes a terminal of the size of another. It leaves every byte as the program writes it, and is
// nobody's controlling one.
func openTerminal(like *os.File) (source, end *os.File, err error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal for the program: %w", err)
	}
	source = os.NewFile(uintptr(master), "/dev/ptmx")
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	}
	slave := -1
	if err == nil {
		slave, err = unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		source.Close()
		return nil, nil, fmt.Errorf("open a terminal for the program: %w", err)
	}
	if mode, err := unix.IoctlGetTermios(slave, unix.TCGETS); err == nil {
		mode.Oflag &^= unix.OPOST
		mode.Lflag &^= unix.ECHO
		_ = unix.IoctlSetTermios(slave, unix.TCSETS, mode)
	}
	if fd, err := descriptor(like); err == nil {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			_ = unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, size)
		}
	}
	return source, os.NewFile(uintptr(slave), "/dev/pts"), nil
}

// blockingPipe is a pipe whose ends wait, as programs expect of theirs.
func blockingPipe() (source, end *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe for the program's output: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// memoryProgram is a program that lies in memory alone.
func memoryProgram(name string, image []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("put %s into memory: %w", name, err)
	}
	program := os.NewFile(uintptr(fd), name)
	if _, err := program.Write(image); err != nil {
		program.Close()
		return nil, fmt.Errorf("put %s into memory: %w", name, err)
	}
	return program, nil
}
