package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"hightide/internal/system"
)

// Kept is a program's output on its way through processes that keep it (src/keeper.c). They outlive this
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
	image, err := built.ReadFile(folder + "hightide-keeper")
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
	program, err := system.MemoryFile("hightide-keeper", image)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	files := []uintptr{source.Fd(), file.Fd()}
	if to != nil {
		fd, err := system.Descriptor(to)
		if err != nil {
			return nil, err
		}
		files = append(files, fd)
	}
	pid, err := start(fmt.Sprintf("/proc/self/fd/%d", program.Fd()),
		[]string{"hightide-keeper", strconv.FormatInt(limit, 10)},
		&syscall.ProcAttr{Dir: "/", Files: files, Sys: system.OwnSession()})
	if err != nil {
		end.Close()
		return nil, fmt.Errorf("start what keeps the output: %w", err)
	}
	k.ours = append(k.ours, end)
	ended := make(chan struct{})
	k.ended = append(k.ended, ended)
	go func() {
		defer close(ended)
		waitForEnd(pid)
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
		resize(f, columns, rows)
	}
}
