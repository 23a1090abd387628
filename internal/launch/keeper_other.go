//go:build !linux

package launch

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"hightide/internal/system"
)

// Kept is a program's output on its way through this process, which keeps it for as long as it lives. (On Linux
// processes keep it that outlive this one.)
type Kept struct {
	ours    []*os.File // the program's ends
	ended   sync.WaitGroup
	file    *os.File
	room    sync.Mutex
	written int64
	limit   int64
}

// Keep has what a program writes kept in a file that is open for appending, and gives its streams in r another end, a
// pipe. Where shows is set, it also goes where it would have gone; else only what is not a terminal does. Of more than
// limit bytes (0: any number) the beginning is kept.
func Keep(r *Runtime, file *os.File, shows bool, limit int64) (*Kept, error) {
	again, err := os.OpenFile(file.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	k := &Kept{file: again, limit: limit}
	for _, stream := range []**os.File{&r.Stdout, &r.Stderr} {
		if *stream == nil {
			continue
		}
		source, end, err := os.Pipe()
		if err != nil {
			k.Close(0)
			return nil, fmt.Errorf("make a pipe for the program's output: %w", err)
		}
		to := *stream
		if system.IsTerminal(to) && !shows {
			to = nil
		}
		k.ours = append(k.ours, end)
		*stream = end
		k.ended.Go(func() { k.copy(source, to) })
	}
	return k, nil
}

func (k *Kept) copy(source, to *os.File) {
	defer source.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := source.Read(buffer)
		k.keep(buffer[:n])
		if to != nil && n > 0 { // writing nothing to a pipe waits for its reader under Wine
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (k *Kept) keep(text []byte) {
	k.room.Lock()
	defer k.room.Unlock()
	if k.limit > 0 {
		text = text[:min(int64(len(text)), max(k.limit-k.written, 0))]
	}
	n, _ := io.Writer(k.file).Write(text)
	k.written += int64(n)
}

// Close gives back this process's ends and waits a while for all that was written.
func (k *Kept) Close(patience time.Duration) {
	for _, f := range k.ours {
		f.Close()
	}
	done := make(chan struct{})
	go func() {
		k.ended.Wait()
		k.file.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience): // programs that were left behind hold their ends
	}
}

// Resize does nothing: a pipe has no size.
func (*Kept) Resize(int, int) {}
