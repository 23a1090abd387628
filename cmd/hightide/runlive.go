package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/system"
	"hightide/internal/tui"
)

// run --live: the views of top while the program runs, and when it has ended, or they are left, its output where it
// would have been.
//
//	the program ──▶ a terminal of its own ──▶ its keeper ──▶ output.log ──▶ a view ──▶ at the end: the terminal

// screen is the terminal that views can be drawn on; nil: there is none, or it is another's at the moment.
func (a *app) screen() *os.File {
	screen := terminal(a.stderr)
	if screen == nil || plainTerminal() {
		return nil
	}
	if !system.InForeground(screen) {
		return nil
	}
	return screen
}

// liveRun is a program that runs while its run is watched.
type liveRun struct {
	messages chan any
	left     chan struct{} // closed when the views are
	started  chan struct{} // closed when the run has its id
	done     chan struct{} // closed when the program has ended and the report is made

	result *engine.RunResult
	err    error

	mutex  sync.Mutex
	begun  engine.Begun
	alerts []string
	size   [2]int
	foot   *view // once the views are left

	back chan struct{} // closed when the stopped job goes on; only the goroutine that records has it
}

// watched runs the program with the views of top in front of it.
func (o *runOptions) watched(a *app, ctx context.Context, screen *os.File) (*engine.RunResult, error) {
	keys, err := os.Open("/dev/tty")
	if err != nil {
		return nil, fmt.Errorf("open the terminal for keys: %w", err)
	}
	defer keys.Close()
	e := a.engine()
	if terminal(os.Stdin) != nil {
		e.Runtime.Stdin = nil // keys are for the views
	}
	l := &liveRun{messages: make(chan any), left: make(chan struct{}), started: make(chan struct{}),
		done: make(chan struct{})}
	o.OutputApart, o.Events = true, l.takeEvent
	if o.pushes != nil {
		o.Events = o.pushes.watching(ctx, o.Events)
	}
	go func() {
		defer close(l.done)
		l.result, l.err = e.Run(ctx, o.RunOptions)
	}()
	if err := l.show(ctx, e, screen, keys, textOptions(a.stderr).Color, textOptions(a.stderr).ASCII); err != nil {
		fmt.Fprintf(a.stderr, "hightide: no view: %v\n", err)
	}
	l.leave(a, o.quiet)
	return l.result, l.err
}

// show draws until the program has ended or the user leaves.
func (l *liveRun) show(ctx context.Context, e *engine.Engine, screen, keys *os.File, color, ascii bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-l.done
		cancel()
	}()
	go l.tail(ctx)
	err := tui.Run(ctx, tui.Options{Engine: e, Every: time.Second, In: keys, Out: screen, Color: color, ASCII: ascii,
		Console: kernelConsole(),
		Launch:  &tui.Launch{Messages: l.messages, Interrupt: interruptGroup, Resized: l.resized}})
	close(l.left)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// interruptGroup does what Ctrl-C does where the terminal sees it: everything in our group is interrupted.
func interruptGroup() { _ = system.Kill(0, syscall.SIGINT) }

// takeEvent takes the events of the run.
func (l *liveRun) takeEvent(e event.Event) {
	l.mutex.Lock()
	foot := l.foot
	l.mutex.Unlock()
	switch e := e.(type) {
	case engine.Begun:
		l.mutex.Lock()
		l.begun = e
		if l.size[0] > 0 {
			e.Resize(l.size[0], l.size[1])
		}
		l.mutex.Unlock()
		close(l.started)
	case event.Alert:
		if foot == nil {
			l.mutex.Lock()
			l.alerts = append(l.alerts, e.Text)
			l.mutex.Unlock()
			go l.send(tui.Said{Text: e.Text}) // a terminal that stands still must not hold up who records
		}
	case event.Paused:
		l.paused(e)
	case event.Resumed:
		if l.back != nil {
			close(l.back)
			l.back = nil
		}
	}
	if foot != nil {
		foot.showEvent(e)
	}
}

// paused has the terminal as it was before this process is stopped with its job.
func (l *liveRun) paused(e event.Paused) {
	if !e.Job {
		go l.send(tui.Said{Text: "the program is stopped; kill -CONT lets it go on"})
		return
	}
	gone := make(chan struct{})
	l.back = make(chan struct{})
	l.send(tui.Stopping{Gone: gone, Back: l.back})
	select {
	case <-gone:
	case <-l.left:
	}
}

// resized gives the program's terminal the size of its view. The program hears of it once more. What the terminal
// told it came before the size was there to be read. And the terminal of its own is nobody's controlling one, which
// tells nobody.
func (l *liveRun) resized(columns, rows int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if size := [2]int{columns, rows}; size != l.size {
		first := l.size == [2]int{}
		l.size = size
		if l.begun.Resize != nil {
			l.begun.Resize(columns, rows)
		}
		if !first {
			_ = system.Kill(0, system.SIGWINCH)
		}
	}
}

// send tells the views, while there are any.
func (l *liveRun) send(message any) {
	select {
	case l.messages <- message:
	case <-l.left:
	}
}

const tailEvery = 50 * time.Millisecond

// tail hands the views what the program writes.
func (l *liveRun) tail(ctx context.Context) {
	select {
	case <-l.started:
	case <-ctx.Done():
		return
	}
	begun := l.begun
	l.send(tui.Began{ID: begun.RunID})
	from, err := begun.Output()
	if err != nil {
		l.send(tui.Said{Text: err.Error()})
		return
	}
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := from.Read(buffer)
		if n > 0 {
			l.send(tui.Wrote{Text: append([]byte(nil), buffer[:n]...)})
		}
		if err != nil {
			time.Sleep(tailEvery)
		}
	}
}

// printed again at the end is so much of a program's output, at most; the rest is in the file.
const printedAgain = 1 << 20

// leave prints what the program wrote where it would have stood, and goes on with that until it ends.
func (l *liveRun) leave(a *app, quiet bool) {
	l.mutex.Lock()
	l.foot = newView(a.stderr, quiet, false)
	for _, text := range l.alerts {
		l.foot.printAbove(text)
	}
	l.mutex.Unlock()
	defer l.foot.hide()
	select {
	case <-l.started:
	case <-l.done:
	}
	if l.begun.Output == nil {
		return // it did not start
	}
	from, err := l.begun.Output()
	if err != nil {
		<-l.done
		l.foot.printAbove(err.Error())
		return
	}
	defer from.Close()
	to := terminal(a.stdout)
	if to == nil {
		to = terminal(a.stderr)
	}
	if file, ok := from.(*os.File); ok {
		skipTo(l.foot, file)
	}
	l.stream(to, from)
}

// skipTo passes over the beginning of what is too long to print again.
func skipTo(say *view, file *os.File) {
	info, err := file.Stat()
	if err != nil || info.Size() <= printedAgain {
		return
	}
	if _, err := file.Seek(-printedAgain, io.SeekEnd); err == nil {
		say.printAbove(fmt.Sprintf("the program wrote %v; this is the end of it, all of it is kept with the run as %s",
			mem.Bytes(info.Size()), engine.OutputFile))
	}
}

// stream copies until the program has ended and everything is copied.
func (l *liveRun) stream(to io.Writer, from io.Reader) {
	for ended := false; ; {
		if n, _ := io.Copy(to, from); n == 0 && ended {
			return
		}
		select {
		case <-l.done:
			ended = true
		case <-time.After(tailEvery):
		}
	}
}
