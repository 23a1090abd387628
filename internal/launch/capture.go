package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"
)

// Capture takes what a program writes and keeps its beginning and its end, however much there is between.
type Capture struct {
	File *os.File // the program's stream

	from       *os.File
	head, tail []byte
	total      int64
	done       chan struct{}
}

// keptOutput is how much is kept of each end.
const keptOutput = 64 << 10

// NewCapture begins to take.
func NewCapture() (*Capture, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	to.Fd() // makes it block: a program that writes faster than we read must wait, not fail
	c := &Capture{File: to, from: from, done: make(chan struct{})}
	go c.take()
	return c, nil
}

func (c *Capture) take() {
	defer close(c.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.from.Read(buffer)
		c.keepText(buffer[:n])
		if err != nil {
			return
		}
	}
}

func (c *Capture) keepText(text []byte) {
	c.total += int64(len(text))
	if room := keptOutput - len(c.head); room > 0 {
		n := min(room, len(text))
		c.head = append(c.head, text[:n]...)
		text = text[n:]
	}
	if c.tail = append(c.tail, text...); len(c.tail) > 2*keptOutput {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keptOutput:]...)
	}
}

// lingering is how long is waited for the output of what a program left behind.
const lingering = time.Second

// Close ends the taking. What programs that were left behind write from now on is refused.
func (c *Capture) Close() {
	_ = c.File.Close()
	_ = c.from.SetReadDeadline(time.Now().Add(lingering))
	<-c.done
	_ = c.from.Close()
}

// Text is what was kept, after Close.
func (c *Capture) Text() []byte {
	tail := c.tail[max(0, len(c.tail)-keptOutput):]
	left := c.total - int64(len(c.head)+len(tail))
	if left == 0 {
		return append(bytes.Clone(c.head), tail...)
	}
	return fmt.Appendf(bytes.Clone(c.head), "\n[hightide: %d bytes are left out here]\n%s", left, tail)
}

// LastLine is the last line that is not empty; the last of those that begin so, where there are any.
func (c *Capture) LastLine(begins string) string { return LastLine(c.Text(), begins) }

// LastLine is the same of a text.
func LastLine(text []byte, begins string) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	last := lines[len(lines)-1]
	for _, line := range slices.Backward(lines) {
		if begins != "" && bytes.HasPrefix(line, []byte(begins)) {
			last = line
			break
		}
	}
	if i := bytes.LastIndexByte(last, '\r'); i >= 0 { // of a progress bar, what it showed last
		last = last[i+1:]
	}
	return string(bytes.ToValidUTF8(bytes.TrimSpace(last), []byte("?")))
}
